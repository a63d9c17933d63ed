#pragma once
#include <string>

#include "backends/native/int8_tiles.h"
#include "backends/native/steps.h"
#include "weft/backend.hpp"

// Products of 8-bit integers with scales: sums in i32, exactly, then one pass in f32.
namespace weft::native {

/// c[m, n] = (a[m, k] b[n, k]^T) a_scale b_scale (+ bias[n]), all in rows without gaps; k < kInt8Terms.
struct Int8Product {
  int64_t m = 0, n = 0, k = 0;
  const int8_t* a = nullptr;
  const int8_t* b = nullptr;
  const uint8_t* packed_b = nullptr;  ///< in place of `b`: all of it, by pack_int8()
  const float* a_scale = nullptr;     ///< one, or one for each row where `each_a`
  const float* b_scale = nullptr;
  bool each_a = false, each_b = false;
  Stored type = Stored::f32;   ///< of bias and c: f32, f16 or bf16
  const void* bias = nullptr;  ///< or none
  void* c = nullptr;
};

/// On all threads. A few rows read b in place; more pack it, a block at a time.
void multiply_int8(const backend::Host& host, const Int8Product& p);

/// Of a whole packed b [n, k]: panels of columns one behind the other.
int64_t packed_int8_size(int64_t n, int64_t k);
std::string packed_int8_id(int64_t n, int64_t k);
void pack_int8(const backend::Host& host, int64_t n, int64_t k, const int8_t* b, uint8_t* to);

}  // namespace weft::native

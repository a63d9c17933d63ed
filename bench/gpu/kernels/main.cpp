#include <cstdio>
#include <map>
#include <optional>

#include "measure.hpp"
#include "weft/backends.h"

// Microseconds of single ops on a GPU, which scripts/gpu compares with PyTorch's (bench/gpu/kernels.py):
//
//   kernels WHAT BACKEND PLUGIN...
//
// rows: softmax, norms and cross entropy of 2^26 elements in bf16. skinny: chains of products of 1 to 16 rows
// with weights of an 8B model. rows_check, skinny_check, heads_check: their errors beside those of f32.
// heads: attention and its gradient in bf16, causal, where products of bf16 are allowed; images: convolutions
// and their gradients in f32 (TF32) and bf16. f8: products of 8-bit floats into bf16, with sums as in f32,
// and where the precision of bf16 is allowed. These three name the kernel, and the largest error beside f32.
// adamw: a step of GPT-2's parameters with clipping, in bf16 with masters. add: what an eager addition of 64
// elements takes of the host. decode=FOLDER: a token of a decoder. peers: copies to the backend's other
// devices.
//
// A program has several calls on different memory, more than the caches hold, and is replayed as one
// sequence.
namespace weft::bench {

namespace {

int run(const std::string& what) {
  const std::map<std::string, bool (*)()> checks = {{"rows_check", check_rows},
                                                    {"skinny_check", check_skinny},
                                                    {"heads_check", check_heads},
                                                    {"peers", check_peers}};
  const std::map<std::string, void (*)()> measurements = {
      {"rows", measure_rows},     {"skinny", measure_skinny}, {"heads", measure_heads}, {"f8", measure_f8},
      {"images", measure_images}, {"adamw", measure_adamw},   {"add", measure_add}};
  std::optional<NoGrad> off;
  if (!what.starts_with("heads") && what != "adamw") off.emplace();
  if (const auto at = checks.find(what); at != checks.end()) return at->second() ? 0 : 1;
  if (what.starts_with("decode=")) return measure_decoding(what.substr(7)), 0;
  const auto at = measurements.find(what);
  if (at == measurements.end()) return std::fprintf(stderr, "kernels: there is no '%s'\n", what.c_str()), 2;
  at->second();
  return 0;
}

}  // namespace

}  // namespace weft::bench

int main(int n, char** arguments) {
  if (n < 3) return std::fprintf(stderr, "kernels WHAT BACKEND PLUGIN...\n"), 2;
  try {
    for (int i = 3; i < n; ++i) weft::load_backend(arguments[i]);
    weft::set_default_backend(arguments[2]);
    return weft::bench::run(arguments[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernels: %s\n", e.what());
    return 1;
  }
}

#pragma once
#include <cstdint>
#include <string_view>

// Elementwise functions over short runs of f32 in L1: the instructions of the tile interpreter. Truth values
// are 0 and 1; halves are widened before.
namespace weft::native {

/// y[i] = f(x...[i]) for n elements, any n; bit k of `single`: operand k is one element for all. y may be an
/// operand. `past`: y is not read soon and is aligned to 64 bytes; steps cheaper than the memory then bypass
/// the caches, until end_stream().
using Step = void (*)(const float* const* x, uint32_t single, float* y, int64_t n, bool past);

struct NamedStep {
  const char* op;
  int operands;
  Step run;
  bool exact;  ///< correctly rounded: the same bits on every machine
};

/// The step in the best instruction set of this machine; null for other names.
const NamedStep* find_step(std::string_view op);
/// The number of steps, and each of them.
int step_count();
const NamedStep& step_at(int i);

/// One of a chain of cheap steps that run together in registers: v = op(v, other), or op(other, v).
struct Link {
  enum class Op : uint8_t { add, sub, mul, maximum, minimum } op;
  bool swapped;
  bool single;  ///< `other` is one element for all
  const float* other;
};
/// The step as a link; null for steps that cost more than their tiles.
const Link::Op* find_link(Step step);
/// y = x through all links. As for Step.
void run_links(const float* x, bool single, const Link* links, int n_links, float* y, int64_t n, bool past);

/// Between memory and a tile. `type` is that of memory; halves are rounded to nearest even.
enum class Stored : uint8_t { f32, f16, bf16, truth };
void widen(Stored type, const void* from, float* to, int64_t n);
void narrow(Stored type, const float* from, void* to, int64_t n);
/// To memory that is not read soon, bypassing the caches. `to` is aligned to 64 bytes.
void stream(const float* from, float* to, int64_t n);
/// Makes the writes of `stream` visible to other threads.
void end_stream();

/// The instruction set in use: "AVX3".
const char* target_name();

}  // namespace weft::native

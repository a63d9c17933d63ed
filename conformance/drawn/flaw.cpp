#include "conformance/drawn/flaw.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/element.h"
#include "conformance/drawn/default_attribute.h"
#include "conformance/liars/liar.h"

namespace weft::conformance {

Strike::Strike(const weft_launch* l, weft_error* e, uint64_t d, Good good)
    : launch(l), error(e), drawn(d), good_(std::move(good)) {
  for (uint32_t k = 0; k < n_outputs(); ++k) before_.emplace_back(bytes(k).begin(), bytes(k).end());
  code = run(l);
  for (uint32_t k = 0; k < n_outputs(); ++k) right_.emplace_back(bytes(k).begin(), bytes(k).end());
}

std::span<char> Strike::bytes(uint32_t k) const { return bytes_of(launch->outputs[k]); }

void Strike::forget() {
  for (uint32_t k = 0; k < n_outputs(); ++k)
    std::copy(before_[k].begin(), before_[k].end(), bytes(k).begin());
}

bool Strike::answer_instead(const weft_call& call) {
  const weft_kernel& kernel = *launch->plan->kernel;
  if (kernel.accepts(&kernel, launch->device, &call, error) != WEFT_OK) return false;
  weft_plan plan = *launch->plan;
  plan.call = &call, plan.data = nullptr;
  if (kernel.prepare && kernel.prepare(&kernel, launch->device, &call, &plan, error) != WEFT_OK) return false;
  weft_launch other = *launch;
  other.plan = &plan;
  if (plan.workspace <= launch->plan->workspace) {
    forget();
    code = run(&other);
  }
  if (kernel.release && plan.data) kernel.release(&plan);
  return true;
}

// Do these two elements count as the same number?
static bool same_number(DType t, const char* a, const char* b, size_t i) {
  if (!is_float(t)) return std::memcmp(a + i * byte_size(t), b + i * byte_size(t), byte_size(t)) == 0;
  const auto x = load_element<double>(t, a, i), y = load_element<double>(t, b, i);
  return std::isnan(x) ? std::isnan(y) : x == y;
}

bool Strike::told() const {
  if (beyond_the_answer || code != WEFT_OK) return true;
  for (uint32_t k = 0; k < n_outputs(); ++k)
    for (size_t i = 0; i < static_cast<size_t>(out(k).size()); ++i)
      if (!same_number(out(k).dtype(), bytes(k).data(), right_[k].data(), i)) return true;
  return false;
}

namespace {

// ---- answers

template <void (*spoil)(Strike&, uint32_t k, std::span<char> bytes)>
weft_code spoils(Strike& s) {
  for (uint32_t k = 0; k < s.n_outputs(); ++k)
    if (const auto bytes = s.bytes(k); !bytes.empty()) spoil(s, k, bytes);
  return WEFT_OK;
}
size_t width(const Strike& s, uint32_t k) { return byte_size(s.out(k).dtype()); }
// One wrong bit that no rounding excuses: in a float the exponent's highest.
void turn(Strike& s, uint32_t k, std::span<char> bytes, size_t i) {
  const size_t at = (i + 1) * width(s, k) - 1;
  bytes[at] = static_cast<char>(bytes[at] ^ (s.out(k).dtype() == DType::boolean ? 1 : 0x40));
}

void zero(Strike&, uint32_t, std::span<char> bytes) { std::fill(bytes.begin(), bytes.end(), 0); }
void constant(Strike& s, uint32_t k, std::span<char> bytes) {
  for (size_t at = width(s, k); at < bytes.size(); ++at) bytes[at] = bytes[at - width(s, k)];
}
void copied_input(Strike& s, uint32_t, std::span<char> bytes) {
  const auto from = s.has_input(0) ? bytes_of(s.launch->inputs[0]) : std::span<char>();
  for (size_t i = 0; i < bytes.size() && !from.empty(); ++i) bytes[i] = from[i % from.size()];
}
void stale(Strike& s, uint32_t k, std::span<char> bytes) {
  for (size_t i = 0; k == 0 && i < bytes.size() && !s.last.empty(); ++i) bytes[i] = s.last[i % s.last.size()];
}
void shifted(Strike& s, uint32_t k, std::span<char> bytes) {
  std::rotate(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width(s, k)), bytes.end());
}
void unwritten(Strike& s, uint32_t k, std::span<char> bytes) {
  std::copy(s.before(k).begin(), s.before(k).end(), bytes.begin());
}
void no_tail(Strike& s, uint32_t k, std::span<char> bytes) {
  std::copy(s.before(k).end() - static_cast<std::ptrdiff_t>(width(s, k)), s.before(k).end(),
            bytes.end() - static_cast<std::ptrdiff_t>(width(s, k)));
}
void no_second_half(Strike& s, uint32_t k, std::span<char> bytes) {
  const auto half = static_cast<std::ptrdiff_t>((bytes.size() / width(s, k) + 1) / 2 * width(s, k));
  std::copy(s.before(k).begin() + half, s.before(k).end(), bytes.begin() + half);
}
void one_element(Strike& s, uint32_t k, std::span<char> bytes) {
  turn(s, k, bytes, s.drawn % (bytes.size() / width(s, k)));
}
void last_element(Strike& s, uint32_t k, std::span<char> bytes) {
  turn(s, k, bytes, bytes.size() / width(s, k) - 1);
}
void repeated_row(Strike& s, uint32_t k, std::span<char> bytes) {
  if (s.out(k).rank() < 2 || s.out(k).dim(0) < 2) return;
  const size_t row = bytes.size() / static_cast<size_t>(s.out(k).dim(0));
  for (size_t at = row; at < bytes.size(); ++at) bytes[at] = bytes[at - row];
}
// Bits of a float's fraction that are kept: ten of 23, twenty of 52, six of ten, four of seven.
void less_precise(Strike& s, uint32_t k, std::span<char> bytes) {
  uint64_t mask = 0;
  switch (s.out(k).dtype()) {
    case DType::f64: mask = ~uint64_t{0} << 32; break;
    case DType::f32: mask = ~uint64_t{0} << 13; break;
    case DType::f16: mask = ~uint64_t{0} << 4; break;
    case DType::bf16: mask = ~uint64_t{0} << 3; break;
    default: return;
  }
  const auto* m = reinterpret_cast<const char*>(&mask);
  for (size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<char>(bytes[at] & m[at % width(s, k)]);
}
template <bool (*lost)(double)>
void without(Strike& s, uint32_t k, std::span<char> bytes) {
  const DType t = s.out(k).dtype();
  for (size_t i = 0; is_float(t) && i < bytes.size() / byte_size(t); ++i)
    if (lost(load_element<double>(t, bytes.data(), i))) store_element<double>(t, bytes.data(), i, 0);
}
bool nan(double x) { return std::isnan(x); }
bool infinite(double x) { return std::isinf(x); }

weft_code swapped_operands(Strike& s) {
  const auto same_type = [](const backend::TensorView& a, const backend::TensorView& b) {
    return a.dtype() == b.dtype() && std::ranges::equal(a.dims(), b.dims());
  };
  if (!s.has_input(0) || !s.has_input(1) || !same_type(s.in(0), s.in(1))) return WEFT_OK;
  std::vector<const weft_tensor*> inputs(s.launch->inputs, s.launch->inputs + s.n_inputs());
  std::swap(inputs[0], inputs[1]);
  weft_launch other = *s.launch;
  other.inputs = inputs.data();
  s.forget();
  return s.code = s.run(&other);
}

weft_code ignored_attribute(Strike& s) {
  if (const auto call = with_default_attribute(*s.launch->plan->call, s.drawn)) s.answer_instead(*call->c());
  return s.code;
}

weft_code fails(Strike& s) { return backend::fill(s.error, WEFT_INTERNAL, "not written yet"); }

// ---- sums

weft_code forgotten_sum(Strike& s) {
  weft_call call = *s.launch->plan->call;
  if (call.accumulate == 0) return WEFT_OK;
  call.accumulate = 0;
  s.answer_instead(call);
  return s.code;
}
weft_code doubled_sum(Strike& s) {
  if (s.launch->plan->call->accumulate == 0) return WEFT_OK;
  return s.code = s.run(s.launch);
}
weft_code sum_unasked(Strike& s) {
  weft_call call = *s.launch->plan->call;
  if (call.accumulate != 0 || call.updates != 0) return WEFT_OK;
  call.accumulate = 1;
  s.answer_instead(call);
  return s.code;
}

// ---- memory

volatile char seen;

weft_code writes_behind(Strike& s) {
  *static_cast<volatile char*>(s.bytes(0).data() + s.bytes(0).size()) = 0;
  s.beyond_the_answer = true;
  return WEFT_OK;
}
weft_code writes_before(Strike& s) {
  *static_cast<volatile char*>(s.bytes(0).data() - 1) = 0;
  s.beyond_the_answer = true;
  return WEFT_OK;
}
weft_code reads_behind(Strike& s) {
  if (!s.has_input(0)) return WEFT_OK;
  seen = *static_cast<volatile char*>(bytes_of(s.launch->inputs[0]).data() + s.in(0).bytes());
  s.beyond_the_answer = true;
  return WEFT_OK;
}
weft_code spoils_operand(Strike& s) {
  if (!s.has_input(0) || s.launch->plan->call->updates || s.in(0).size() == 0) return WEFT_OK;
  bytes_of(s.launch->inputs[0])[0] ^= 1;
  s.beyond_the_answer = true;
  return WEFT_OK;
}
weft_code ignores_offset(Strike& s) {
  if (!s.has_input(0) || s.launch->plan->call->updates) return WEFT_OK;
  weft_tensor first = *s.launch->inputs[0];
  first.dl.byte_offset = 0;
  std::vector<const weft_tensor*> inputs(s.launch->inputs, s.launch->inputs + s.n_inputs());
  inputs[0] = &first;
  weft_launch other = *s.launch;
  other.inputs = inputs.data();
  s.forget();
  return s.code = s.run(&other);
}

bool has_operands(const ir::OpDef& op) { return op.n_inputs > 0; }
bool has_two_operands(const ir::OpDef& op) { return op.n_inputs > 1; }
bool has_attributes(const ir::OpDef& op) { return !op.attrs.empty(); }
using Kind = Flaw::Kind;
constexpr Flaw kFlaws[] = {
    {"zero", "every result is zero", Kind::answer, 1, spoils<zero>},
    {"constant", "the first element everywhere", Kind::answer, 2, spoils<constant>},
    {"copied_input", "gives the first operand back", Kind::answer, 1, spoils<copied_input>, has_operands},
    {"shifted", "every element one place off", Kind::answer, 2, spoils<shifted>},
    {"stale", "gives what it gave the last time", Kind::answer, 1, spoils<stale>},
    {"unwritten", "writes nothing", Kind::answer, 1, spoils<unwritten>},
    {"no_tail", "leaves the last element unwritten", Kind::answer, 2, spoils<no_tail>},
    {"no_second_half", "leaves the second half unwritten", Kind::answer, 2, spoils<no_second_half>},
    {"one_element", "one element is wrong", Kind::answer, 1, spoils<one_element>},
    {"last_element", "the last element is wrong", Kind::answer, 1, spoils<last_element>},
    {"repeated_row", "the first row is every row", Kind::answer, 2, spoils<repeated_row>},
    {"less_precise", "rounds to half of a float's digits", Kind::answer, 1, spoils<less_precise>},
    {"loses_nans", "NaN becomes zero", Kind::answer, 1, spoils<without<nan>>},
    {"loses_infinities", "infinities become zero", Kind::answer, 1, spoils<without<infinite>>},
    {"swapped_operands", "takes the first two operands for each other", Kind::answer, 1, swapped_operands,
     has_two_operands},
    {"ignored_attribute", "takes the default of an attribute", Kind::answer, 1, ignored_attribute,
     has_attributes},
    {"fails", "says yes and fails", Kind::answer, 0, fails},
    {"forgotten_sum", "overwrites where += is asked", Kind::sum, 1, forgotten_sum},
    {"doubled_sum", "adds twice where += is asked", Kind::sum, 1, doubled_sum},
    {"sum_unasked", "adds where = is asked", Kind::sum, 1, sum_unasked},
    {"writes_behind", "stores a byte behind its output", Kind::memory, 1, writes_behind},
    {"writes_before", "stores a byte before its output", Kind::memory, 1, writes_before},
    {"reads_behind", "loads a byte behind its first operand", Kind::memory, 1, reads_behind, has_operands},
    {"spoils_operand", "changes its first operand", Kind::memory, 1, spoils_operand, has_operands},
    {"ignores_offset", "reads its first operand where that memory begins", Kind::memory, 1, ignores_offset,
     has_operands},
    {"refuses", "says no to what it could do", Kind::refusal, 0},
};

}  // namespace

std::span<const Flaw> all_flaws() { return kFlaws; }

}  // namespace weft::conformance

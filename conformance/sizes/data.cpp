#include "conformance/sizes/data.h"

#include <algorithm>
#include <cmath>

#include "conformance/rules.h"

namespace weft::conformance {

const char* name(Data kind) {
  constexpr const char* kNames[] = {"normal",   "integers", "ties",       "equal",    "sorted",
                                    "negative", "specials", "magnitudes", "every bit"};
  return kNames[static_cast<size_t>(kind)];
}

namespace {

Real special(DType t, Random& random) {
  const auto& f = format(t);
  const Real all[] = {
      kNan, -kNan,      kInf, -kInf, 0,    -0.0L, f.least(), -f.least() * 3, f.least_normal() / 2,
      0,    -f.least(), 1,    -1,    0.5L, 2.5L,  -1.5L,     f.eps()};
  return all[random.bits() % std::size(all)];
}

// Any integer of a dtype, with the ends of its range more often.
Real any_integer(DType t, Random& random) {
  if (t == DType::boolean) return static_cast<Real>(random.bits() % 2);
  if (random.bits() % 8 == 0) return random.bits() % 2 ? highest(t) : lowest(t);
  return wrap_to(t, static_cast<__int128>(random.bits() >> random.bits() % 64));
}

Real number(Data kind, DType t, Random& random) {
  const bool sign = !is_float(t) && lowest(t) >= 0;  // has none
  const auto normal = [&] {
    return is_float(t) ? Real(random.normal()) : std::round(Real(4 * random.normal()));
  };
  const auto small = [&] { return static_cast<Real>(random.bits() % 19) - (sign ? 0 : 9); };
  switch (kind) {
    case Data::integers: return small();
    case Data::ties: return static_cast<Real>(random.bits() % 3) - (sign ? 0 : 1);
    case Data::negative: return sign ? normal() : -std::fabs(normal()) - 1;
    case Data::specials:
      return !is_float(t) ? any_integer(t, random) : random.bits() % 8 ? normal() : special(t, random);
    case Data::magnitudes: {
      if (!is_float(t)) return any_integer(t, random);
      if (random.bits() % 16 == 0) return random.bits() % 2 ? format(t).largest : -format(t).largest;
      const int range = 1 << (format(t).exponent_bits - 2);  // so squares are finite
      return std::ldexp(normal(), static_cast<int>(random.bits() % static_cast<uint64_t>(2 * range)) - range);
    }
    case Data::every_bit: return is_float(t) ? special(t, random) : any_integer(t, random);
    default: return normal();
  }
}

Array numbers_of(DType t, const Dims& shape, Data kind, Random& random) {
  Array a{t, shape, {}};
  const auto n = static_cast<size_t>(count(shape));
  a.v.reserve(n);
  const Real one = round_to(t, number(Data::normal, t, random));
  for (size_t i = 0; i < n; ++i)
    a.v.push_back(kind == Data::equal ? one : round_to(t, number(kind, t, random)));
  if (kind == Data::sorted) std::ranges::sort(a.v);
  return a;
}

Input positions(const Input& like, int64_t count) {
  Input i = integers(like.shape, 0, static_cast<int>(count - 1));
  i.dtype = like.dtype;
  return i;
}

// As its case makes it; a list is repeated.
Array as_written(const Input& like, DType t, Random& random) {
  Input input = like;
  if (input.kind == Input::Kind::values) {
    const auto n = static_cast<size_t>(count(input.shape));
    const auto list = input.list.empty() ? std::vector<Real>{0} : input.list;
    input.list.clear();
    for (size_t i = 0; i < n; ++i) input.list.push_back(list[i % list.size()]);
  }
  return make_inputs({.inputs = {input}}, t, random.bits())[0];
}

bool keeps_its_numbers(const Input& i) { return i.dtype || i.kind == Input::Kind::uniform; }

}  // namespace

std::vector<Array> draw_operands(const DrawnCall& call, Data kind, Random& random) {
  // Padding may multiply zeros: in convolutions, only one operand has non-finite elements.
  const bool one_finite = std::string_view(call.op->name).starts_with("conv");
  const bool wild = kind == Data::specials || kind == Data::every_bit;
  const auto at = positions_of(*call.op, call.attrs, call.like);
  std::vector<Array> all;
  for (size_t i = 0; i < call.like.size(); ++i) {
    const Input& like = call.like[i];
    if (at && at->input == i)
      all.push_back(as_written(positions(like, at->count), call.dtype, random));
    else if (keeps_its_numbers(like))
      all.push_back(as_written(like, call.dtype, random));
    else
      all.push_back(
          numbers_of(call.dtype, like.shape, i > 0 && one_finite && wild ? Data::normal : kind, random));
  }
  return all;
}

// ---- exact ones

bool is_exact(const ir::OpDef& op) {
  static constexpr std::string_view kSums[] = {
      "sum",         "prod", "cumsum", "matmul", "conv", "conv_transpose", "conv_weight_grad",
      "scatter_add", "add",  "sub",    "mul"};
  const Rule* rule = find_rule(op.name);
  return rule && (rule->c == 0 || std::ranges::count(kSums, std::string_view(op.name)));
}

// The floats of exact operands.
enum class Exact : uint8_t { small, any_bits, signs, ordered };

// Ops that choose among their operands are exact on any numbers. Small integers would repeat too early.
static Exact exact_kind(const ir::OpDef& op, Random& random) {
  const std::string_view name = op.name;
  const Rule* rule = find_rule(name);
  if (name == "prod") return Exact::signs;
  for (const char* chooses : {"max", "min", "sort", "maximum", "minimum", "argmax", "argmin"})
    if (name == chooses && random.bits() % 4) return Exact::ordered;
  const bool moves = rule && rule->bitwise && rule->c == 0 && name != "cast";
  return moves && random.bits() % 2 ? Exact::any_bits : Exact::small;
}

static HostTensor exact_operand(const DrawnCall& call, size_t input, Exact kind, Random& random) {
  const DType t = call.dtype_of(input);
  const Dims& shape = call.like[input].shape;
  HostTensor out{{t, IntList(shape.begin(), shape.end())}, {}};
  out.bytes.resize(out.type.bytes());
  if (!is_float(t) || kind == Exact::any_bits) {
    uint64_t bits = 0;
    for (size_t i = 0; i < out.bytes.size(); ++i, bits >>= 8) {
      if (i % 8 == 0) bits = random.bits();
      out.bytes[i] = static_cast<std::byte>(bits & (t == DType::boolean ? 1 : 0xff));
    }
    return out;
  }
  for (size_t i = 0, n = out.bytes.size() / byte_size(t); i < n; ++i) {
    const uint64_t r = random.bits() >> 16;
    const double small = static_cast<double>(r % 7) - 3, sign = r % 2 ? -1 : 1;
    const double number = kind == Exact::signs     ? sign
                          : kind == Exact::ordered ? sign * static_cast<double>(r % 20011) / 64
                                                   : small;
    store_element<double>(t, out.bytes.data(), i, number);
  }
  return out;
}

std::vector<HostTensor> draw_exact_operands(const DrawnCall& call, Random& random) {
  const auto at = positions_of(*call.op, call.attrs, call.like);
  const Exact kind = exact_kind(*call.op, random);
  std::vector<HostTensor> all;
  for (size_t i = 0; i < call.like.size(); ++i) {
    const Input& like = call.like[i];
    if (like.dtype) {
      const Array a =
          as_written(at && at->input == i ? positions(like, at->count) : like, call.dtype, random);
      all.push_back({{a.dtype, IntList(a.shape.begin(), a.shape.end())}, encode(a)});
    } else {
      all.push_back(exact_operand(call, i, kind, random));
    }
  }
  return all;
}

}  // namespace weft::conformance

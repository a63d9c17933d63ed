#include "loops/elementwise.h"

#include "codegen/numbers.h"

// Elementwise ops and regions of them: one work item loads its element of every input, computes the steps in
// registers, and stores its element of every output. Two kernels: when every input has the output's elements
// in the output's order (or is a single element), the item number is the address; otherwise addresses are Σ
// coordinate · stride with stride 0 along broadcast axes. Strides are arguments, so every broadcast of one
// rank is one text.
namespace weft::loops {
namespace {

using codegen::Id;
using codegen::Ids;
using codegen::LoopBuilder;
using codegen::type_of;

enum Kernel : uint32_t { kFlat = 0, kStrided = 1 };

/// The operand dtypes of an op; all operands have the same one.
enum class Domain : uint8_t { floats, integers, numbers, bits, compute };
struct Spelling {
  const char* op;
  codegen::Op node;
  uint32_t arity;
  Domain domain;
  bool sure = false;  ///< the same bits on every device; others differ within the error of their language
};
constexpr Spelling kSpellings[] = {
    {"add", codegen::Op::add, 2, Domain::numbers},
    {"sub", codegen::Op::sub, 2, Domain::numbers},
    {"mul", codegen::Op::mul, 2, Domain::numbers},
    {"div", codegen::Op::div, 2, Domain::numbers},
    {"mod", codegen::Op::mod, 2, Domain::numbers},
    {"power", codegen::Op::power, 2, Domain::floats},
    {"maximum", codegen::Op::max, 2, Domain::numbers, true},
    {"minimum", codegen::Op::min, 2, Domain::numbers, true},
    {"bit_and", codegen::Op::bit_and, 2, Domain::bits, true},
    {"bit_or", codegen::Op::bit_or, 2, Domain::bits, true},
    {"bit_xor", codegen::Op::bit_xor, 2, Domain::bits, true},
    {"shift_left", codegen::Op::shift_left, 2, Domain::integers, true},
    {"shift_right", codegen::Op::shift_right, 2, Domain::integers, true},
    {"less", codegen::Op::less, 2, Domain::compute, true},
    {"equal", codegen::Op::equal, 2, Domain::compute, true},
    {"exp", codegen::Op::exp, 1, Domain::floats},
    {"log", codegen::Op::log, 1, Domain::floats},
    {"log1p", codegen::Op::log1p, 1, Domain::floats},
    {"sqrt", codegen::Op::sqrt, 1, Domain::floats},
    {"sin", codegen::Op::sin, 1, Domain::floats},
    {"cos", codegen::Op::cos, 1, Domain::floats},
    {"tanh", codegen::Op::tanh, 1, Domain::floats},
    {"erf", codegen::Op::erf, 1, Domain::floats},
    {"floor", codegen::Op::floor, 1, Domain::floats, true},
    {"round", codegen::Op::round, 1, Domain::floats, true},
};

const Spelling* find(std::string_view op) {
  for (const Spelling& s : kSpellings)
    if (s.op == op) return &s;
  return nullptr;
}
bool includes(Domain domain, DType t) {
  const bool is_bool = t == DType::boolean;
  switch (domain) {
    case Domain::floats: return is_float(t);
    case Domain::integers: return !is_float(t) && !is_bool;
    case Domain::numbers: return !is_bool;
    case Domain::bits: return !is_float(t);
    case Domain::compute: return true;
  }
  return false;
}
const char* name(Domain domain) {
  switch (domain) {
    case Domain::floats: return "floats";
    case Domain::integers: return "integers";
    case Domain::numbers: return "numbers";
    case Domain::bits: return "integers and bool";
    case Domain::compute: return "compute types";
  }
  return "";
}

Status wants_inputs(const weft_call& call, uint32_t n) {
  if (call.n_inputs != n || call.n_outputs != 1)
    return invalid("{} has {} operands and {} results, wanted {} and 1", call.op, call.n_inputs,
                   call.n_outputs, n);
  for (uint32_t i = 0; i < n; ++i)
    if (!call.inputs[i]) return invalid("{}: operand {} is absent", call.op, i);
  return {};
}
Status wants_same_dtype(const weft_call& call, uint32_t first) {
  const DType t = dtype(*call.inputs[first]);
  if (!is_compute(t))
    return fail(Code::unsupported, "{} does not compute on {}, a storage type", call.op, name(t));
  for (uint32_t i = first + 1; i < call.n_inputs; ++i)
    if (dtype(*call.inputs[i]) != t)
      return invalid("{}: operands are {} and {}, wanted one dtype", call.op, name(t),
                     name(dtype(*call.inputs[i])));
  return {};
}

Status check_step(const weft_call& call) {
  const std::string_view op = call.op;
  if (const Spelling* s = find(op)) {
    WEFT_CHECK(wants_inputs(call, s->arity));
    WEFT_CHECK(wants_same_dtype(call, 0));
    const DType t = dtype(*call.inputs[0]);
    return includes(s->domain, t)
               ? Status()
               : fail(Code::unsupported, "{} is for {} only, got {}", op, name(s->domain), name(t));
  }
  if (op == "where") {
    WEFT_CHECK(wants_inputs(call, 3));
    if (dtype(*call.inputs[0]) != DType::boolean)
      return invalid("where: condition is {}, wanted bool", name(dtype(*call.inputs[0])));
    return dtype(*call.inputs[1]) == dtype(*call.inputs[2])
               ? Status()
               : invalid("where: a is {}, b is {}", name(dtype(*call.inputs[1])),
                         name(dtype(*call.inputs[2])));
  }
  if (op == "cast" || op == "broadcast") return wants_inputs(call, 1);
  if (op == "full") return wants_inputs(call, 0);
  return fail(Code::unsupported, "{} is not elementwise, and only elementwise steps become one text", op);
}

/// The step's value for the values of its operands.
Id emit(LoopBuilder& b, const weft_call& call, std::span<const Id> in, bool literal) {
  const codegen::Type t = type_of(dtype(*call.outputs[0]));
  if (const Spelling* s = find(call.op)) {
    if (s->arity == 1) return b.unary(s->node, in[0]);
    return s->domain == Domain::compute ? b.compare(s->node, in[0], in[1]) : b.binary(s->node, in[0], in[1]);
  }
  const std::string_view op = call.op;
  if (op == "where") return b.select(in[0], in[1], in[2]);
  if (op == "cast") return b.cast(in[0], t);
  if (op == "broadcast") return in[0];
  return literal ? b.number(t, full_value(call)) : b.argument(t);
}

/// Calls visit(step) for every `full` of the call, in the order in which `emit` uses their arguments.
template <class F>
void each_full(const weft_call& call, F visit) {
  if (!call.region) {
    if (std::string_view(call.op) == "full") visit(call);
    return;
  }
  for (uint32_t i = 0; i < call.region->n_steps; ++i) each_full(*call.region->steps[i]->call, visit);
}

bool single(const weft_type& t) { return product(max_shape(t)) == 1; }

/// Whether the flat kernel reads input `k` at index 0: it has exactly one element, and the output may have
/// more.
bool reads_first(const weft_call& call, uint32_t k) {
  return single(*call.inputs[k]) && !single(*call.outputs[0]);
}

uint32_t needed(const weft_call& call) {
  const weft_type& out = *call.outputs[0];
  uint32_t kernels = 1u << kFlat;
  bool sure = true;
  for (uint32_t k = 0; k < call.n_inputs; ++k) {
    const weft_type& in = *call.inputs[k];
    if (reads_first(call, k)) continue;
    if (product(max_shape(in)) < product(min_shape(out))) return 1u << kStrided;
    sure = sure && exact(in) && exact(out);
  }
  if (!sure) kernels |= 1u << kStrided;
  return kernels;
}

codegen::LoopKernel build(const weft_call& call, uint32_t kernel) {
  LoopBuilder b;
  const size_t rank = static_cast<size_t>(call.outputs[0]->rank);
  const Id item = b.item();
  Ids at;
  if (kernel == kStrided) at = b.coordinates(item, b.arguments(rank));
  Ids values;
  for (uint32_t k = 0; k < call.n_inputs; ++k) {
    const Id address = kernel == kStrided     ? b.affine(at, b.arguments(rank))
                       : reads_first(call, k) ? b.index(0)
                                              : item;
    values.push_back(b.load(b.read(dtype(*call.inputs[k])), address));
  }
  const Ids results = elementwise_body(b, call, values, false);
  for (uint32_t k = 0; k < call.n_outputs; ++k) b.store(b.write(dtype(*call.outputs[k])), item, results[k]);
  return b.take();
}

/// Strides of `in` along the axes of `out`, 0 along broadcast axes.
Sizes broadcast_strides(std::span<const int64_t> in, std::span<const int64_t> out) {
  Sizes strides(out.size(), 0);
  int64_t stride = 1;
  for (size_t d = in.size(); d-- > 0;) {
    strides[d + out.size() - in.size()] = in[d] == 1 ? 0 : stride;
    stride *= in[d];
  }
  return strides;
}

bool bind(const Operands& o, uint32_t kernel, Job& job) {
  const Sizes out = shape(*o.out[0]);
  bool flat = true;
  for (uint32_t k = 0; k < o.in.size(); ++k)
    flat = flat && (reads_first(o.call, k) || product(shape(*o.in[k])) == product(out));
  if (flat != (kernel == kFlat)) return false;
  job.items(product(out));
  if (kernel == kStrided) job.push(out);
  for (const weft_tensor* in : o.in) {
    if (kernel == kStrided) job.push(broadcast_strides(shape(*in), out));
    job.buffers.push_back(in);
  }
  each_full(o.call,
            [&](const weft_call& full) { job.push_value(dtype(*full.outputs[0]), full_value(full)); });
  for (const weft_tensor* t : o.out) job.buffers.push_back(t);
  return true;
}

Status check_region(const weft_call& call) {
  if (!call.region) return fail(Code::unsupported, "the call carries no body");
  return check_elementwise(call);
}

constexpr const char* kDtypeAttr[] = {"dtype"};
constexpr const char* kElementwiseShape[] = {"shape"};
constexpr const char* kFullAttrs[] = {"dtype", "shape", "times", "value"};

constexpr Form form(const char* op, std::span<const char* const> reads, uint32_t determinism) {
  return {op, "elementwise", reads, determinism, Overwrite::any, check_elementwise, needed, build, bind};
}
constexpr auto kElementwiseForms = [] {
  constexpr size_t n = std::size(kSpellings);
  std::array<Form, n + 5> forms{};
  for (size_t i = 0; i < n; ++i)
    forms[i] =
        form(kSpellings[i].op, {}, kSpellings[i].sure ? WEFT_DETERMINISM_DEVICES : WEFT_DETERMINISM_THREADS);
  forms[n] = form("where", {}, WEFT_DETERMINISM_DEVICES);
  forms[n + 1] = form("cast", kDtypeAttr, WEFT_DETERMINISM_THREADS);
  forms[n + 2] = form("broadcast", kElementwiseShape, WEFT_DETERMINISM_DEVICES);
  forms[n + 3] = form("full", kFullAttrs, WEFT_DETERMINISM_DEVICES);
  forms[n + 4] = form("region", {}, WEFT_DETERMINISM_THREADS);
  forms[n + 4].check = check_region;
  return forms;
}();

/// Same sizes, an absent leading axis counting as 1.
bool broadcasts_to(const weft_type& in, const weft_type& out) {
  if (in.rank > out.rank) return false;
  for (int32_t d = 0; d < in.rank; ++d) {
    const int32_t e = d + out.rank - in.rank;
    if (in.max[d] != 1 && (in.max[d] != out.max[e] || in.min[d] > out.min[e])) return false;
  }
  return true;
}

}  // namespace

std::span<const Form> elementwise_forms() { return kElementwiseForms; }

bool is_elementwise(const weft_call& step) {
  return std::string_view(step.op) != "full" && check_step(step).ok();
}
Id elementwise_step(LoopBuilder& b, const weft_call& step, std::span<const Id> operands) {
  return emit(b, step, operands, false);
}

double full_value(const weft_call& call) {
  return float_attr(call, "value", 0) * static_cast<double>(product(ints_attr(call, "times")));
}

Status check_elementwise(const weft_call& call) {
  if (call.n_outputs == 0) return invalid("{}: no outputs", call.op);
  const weft_type& out = *call.outputs[0];
  for (uint32_t k = 1; k < call.n_outputs; ++k) {
    const weft_type& other = *call.outputs[k];
    if (max_shape(other) != max_shape(out) || min_shape(other) != min_shape(out))
      return fail(Code::unsupported,
                  "output {} has shape {}, output 0 has {}; one work item makes one element of each", k,
                  text(max_shape(other)), text(max_shape(out)));
  }
  for (uint32_t k = 0; k < call.n_inputs; ++k)
    if (call.inputs[k] && !broadcasts_to(*call.inputs[k], out))
      return fail(Code::unsupported, "input {} of shape {} does not broadcast to {}", k,
                  text(max_shape(*call.inputs[k])), text(max_shape(out)));
  if (!call.region) return check_step(call);
  for (uint32_t i = 0; i < call.region->n_steps; ++i) {
    const weft_call& step = *call.region->steps[i]->call;
    if (step.region)
      return fail(Code::unsupported, "step {} ({}) of the body is not a primitive", i, step.op);
    if (Status s = check_step(step); !s.ok()) return std::move(s).at(fmt::format("step {} of the body", i));
  }
  return {};
}

Ids elementwise_body(LoopBuilder& b, const weft_call& call, std::span<const Id> inputs, bool literal) {
  if (!call.region) return {emit(b, call, inputs, literal)};
  const weft_region& region = *call.region;
  std::vector<Id> values(region.n_values, codegen::kNone);
  std::copy(inputs.begin(), inputs.end(), values.begin());
  for (uint32_t i = 0; i < region.n_steps; ++i) {
    const weft_step& step = *region.steps[i];
    Ids in;
    for (uint32_t k = 0; k < step.call->n_inputs; ++k) in.push_back(values[step.inputs[k]]);
    values[step.outputs[0]] = emit(b, *step.call, in, literal);
  }
  Ids results;
  for (uint32_t k = 0; k < call.n_outputs; ++k) results.push_back(values[region.outputs[k]]);
  return results;
}

void Job::push_value(DType t, double value) {
  uint64_t bits = 0;
  switch (t) {
    case DType::f64: bits = std::bit_cast<uint64_t>(value); break;
    case DType::f32: bits = std::bit_cast<uint32_t>(static_cast<float>(value)); break;
    case DType::f16: bits = std::bit_cast<uint32_t>(static_cast<float>(codegen::round_f16(value))); break;
    case DType::bf16: bits = std::bit_cast<uint32_t>(static_cast<float>(codegen::round_bf16(value))); break;
    case DType::f8e4m3: bits = std::bit_cast<uint32_t>(static_cast<float>(codegen::round_e4m3(value))); break;
    case DType::f8e5m2: bits = std::bit_cast<uint32_t>(static_cast<float>(codegen::round_e5m2(value))); break;
    case DType::i32: bits = static_cast<uint32_t>(codegen::saturate<int32_t>(value)); break;
    case DType::u32: bits = codegen::saturate<uint32_t>(value); break;
    case DType::i64: bits = static_cast<uint64_t>(codegen::saturate<int64_t>(value)); break;
    case DType::u64: bits = codegen::saturate<uint64_t>(value); break;
    case DType::boolean: bits = value != 0; break;
    case DType::i8: bits = static_cast<uint32_t>(codegen::saturate<int8_t>(value)); break;
    default: bits = codegen::saturate<uint8_t>(value); break;
  }
  scalars.push_back(static_cast<int32_t>(bits));
  if (codegen::scalar_words(type_of(t)) == 2) scalars.push_back(static_cast<int32_t>(bits >> 32));
}

}  // namespace weft::loops

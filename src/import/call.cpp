#include "import/call.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/element.h"

namespace weft::importer {
namespace {

constexpr int64_t kFarthest = int64_t{1} << 60;  // what lists of integers hold; a Dim holds more

/// A parameter of AtenOp::args.
struct Parameter {
  std::string_view name, fallback;
  bool tensor = true, optional = false, list = false;
};

std::vector<Parameter> parameters_of(std::string_view args) {
  std::vector<Parameter> all;
  while (!args.empty()) {
    const size_t end = std::min(args.find(", "), args.size());
    Parameter p{.name = args.substr(0, end), .fallback = {}};
    args.remove_prefix(std::min(args.size(), end + 2));
    if (const size_t equals = p.name.find('='); equals != std::string_view::npos) {
      p.tensor = false;
      p.fallback = p.name.substr(equals + 1);
      p.name = p.name.substr(0, equals);
    } else if (p.name.ends_with("[]")) {
      p.list = true;
      p.name.remove_suffix(2);
    } else if (p.name.ends_with("?")) {
      p.optional = true;
      p.name.remove_suffix(1);
    }
    all.push_back(p);
  }
  return all;
}

// A default of AtenOp::args: a number, true, false, None, [] or a word.
Arg default_of(std::string_view text) {
  if (text == "None") return {};
  if (text == "true" || text == "false") return {text == "true"};
  if (text == "[]") return {std::vector<Arg>{}};
  int64_t whole = 0;
  const char* end = text.data() + text.size();
  if (const auto [stop, error] = std::from_chars(text.data(), end, whole);
      error == std::errc() && stop == end)
    return {whole};
  double real = 0;
  if (const auto [stop, error] = std::from_chars(text.data(), end, real); error == std::errc() && stop == end)
    return {real};
  return {std::string(text)};
}

std::optional<Number> number_of(const Arg& arg) {
  using enum Number::Kind;
  if (const auto* v = std::get_if<bool>(&arg.value)) return Number{boolean, double(*v), int64_t{*v}};
  if (const auto* v = std::get_if<int64_t>(&arg.value)) return Number{integer, static_cast<double>(*v), *v};
  if (const auto* v = std::get_if<double>(&arg.value)) return Number{real, *v, 0};
  if (const auto* v = std::get_if<std::string>(&arg.value))
    if (const auto special = number_from_text(*v)) return Number{real, *special, 0};
  return {};
}

// (x, None, bias) looks like (x, weight) then: only a name tells which one is given.
bool has_optional_bias(std::span<const Parameter> all) {
  return std::ranges::any_of(all, [](const Parameter& p) { return p.name == "bias" && p.optional; });
}

bool is_null(const Arg& arg) { return std::holds_alternative<std::monostate>(arg.value); }

const Arg kNone;

}  // namespace

const AtenOp* find_aten(std::string_view name) {
  for (const Family* family : all_families())
    for (const AtenOp& op : family->ops)
      if (name == op.name) return &op;
  return nullptr;
}

Call::Call(const NodeInfo& what, const AtenOp& how, ir::Builder& builder, ir::Values inputs)
    : node(what), op(how), b(builder), inputs_(inputs) {
  bind(inputs.size());
}

// The file lists tensors in the order of the schema, without those that are None: which of several optional
// ones is missing follows from their number where it can. A list says how many it has, and where its gaps
// are.
void Call::bind(size_t n_given) {
  const auto parameters = parameters_of(op.args);
  if (n_given > 0 && !node.inputs[0].arg.empty()) return bind_by_name();
  const auto by_number = [&](const Parameter& p) {
    const auto given = node.attrs.find(p.name);
    return given != node.attrs.end() && !is_null(given->second);
  };
  size_t wanted = 0;  // by the parameters that can't be without
  for (const auto& p : parameters) wanted += p.tensor && !p.optional && !p.list && !by_number(p);
  size_t next = 0, which_list = 0;
  for (const auto& p : parameters) {
    Bound bound{.name = p.name, .inputs = {}, .is_tensor = p.tensor, .is_list = p.list, .fallback = {}};
    if (!p.tensor) {
      bound.fallback = default_of(p.fallback);
    } else if (p.list) {
      bound.inputs = bind_list(which_list++, next, n_given - std::min(n_given, wanted));
    } else if (by_number(p)) {
      // an attribute
    } else if (!p.optional) {
      if (next < n_given) bound.inputs.push_back(static_cast<int>(next++));
      wanted -= 1;
    } else if (next + wanted < n_given) {
      const std::string& given = node.inputs[next].name;
      const bool one_of_two =
          p.name == "weight" && has_optional_bias(parameters) && n_given - next - wanted == 1;
      if (one_of_two && !given.ends_with("weight") && !given.ends_with("bias"))
        refuse(invalid(
            "'{}' may be the weight or the bias: end its name in one of these, or name the parameter in its "
            "field `arg`",
            given));
      if (!one_of_two || !given.ends_with("bias")) bound.inputs.push_back(static_cast<int>(next++));
    }
    bound_.push_back(std::move(bound));
  }
  if (next != n_given)
    refuse(invalid("takes the tensors {}, and {} of its {} belong to none of them", op.args, n_given - next,
                   n_given));
}

// A file that says for which parameter each tensor is.
void Call::bind_by_name() {
  for (const auto& p : parameters_of(op.args)) {
    Bound bound{.name = p.name, .inputs = {}, .is_tensor = p.tensor, .is_list = p.list, .fallback = {}};
    if (!p.tensor) bound.fallback = default_of(p.fallback);
    bound_.push_back(std::move(bound));
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorInfo& given = node.inputs[i];
    const auto at =
        std::find_if(bound_.begin(), bound_.end(), [&](const Bound& x) { return x.name == given.arg; });
    const auto place = static_cast<size_t>(given.place);
    const bool known = at != bound_.end() && at->is_tensor && (at->is_list || place == 0);
    if (!known || (place < at->inputs.size() && at->inputs[place] >= 0)) {
      refuse(invalid("takes the tensors {}, and '{}' is given for '{}'", op.args, given.name, given.arg));
      return;
    }
    if (place >= at->inputs.size()) at->inputs.resize(place + 1, -1);
    at->inputs[place] = static_cast<int>(i);
  }
}

std::vector<int> Call::bind_list(size_t which_list, size_t& next, size_t most) const {
  size_t count = most - std::min(most, next);
  const auto entry = [&](std::string_view name) -> const Arg* {
    const auto found = node.attrs.find(name);
    const auto* all =
        found == node.attrs.end() ? nullptr : std::get_if<std::vector<Arg>>(&found->second.value);
    return all && which_list < all->size() ? &(*all)[which_list] : nullptr;
  };
  if (const Arg* size = entry("_tensor_list_sizes"))
    if (const auto* n = std::get_if<int64_t>(&size->value); n && *n >= 0 && static_cast<size_t>(*n) <= count)
      count = static_cast<size_t>(*n);
  std::vector<int> out;
  const Arg* mask = entry("_tensor_list_none_masks");
  const auto* holes = mask ? std::get_if<std::vector<Arg>>(&mask->value) : nullptr;
  for (size_t i = 0; holes && i < holes->size(); ++i) {
    const auto* hole = std::get_if<bool>(&(*holes)[i].value);
    const bool missing = hole && *hole;
    if (!missing && count == 0) break;
    out.push_back(missing ? -1 : static_cast<int>(next++));
    count -= !missing;
  }
  for (; count > 0; --count) out.push_back(static_cast<int>(next++));
  return out;
}

const Call::Bound* Call::find(std::string_view name) const {
  const auto found =
      std::find_if(bound_.begin(), bound_.end(), [&](const Bound& x) { return x.name == name; });
  return found == bound_.end() ? nullptr : &*found;
}

const Arg& Call::argument(std::string_view name) {
  if (const auto given = node.attrs.find(name); given != node.attrs.end()) return given->second;
  if (const Bound* bound = find(name)) return bound->fallback;
  refuse(fail(Code::internal, "'{}' is no parameter of {}", name, op.args));
  return kNone;
}

void Call::wrong(std::string_view name, std::string_view wanted, const Arg& got) {
  const bool missing = !node.attrs.contains(name);
  refuse(
      invalid("argument '{}': wanted {}, got {}", name, wanted,
              missing && std::holds_alternative<std::string>(got.value) ? "nothing" : importer::text(got)));
}

bool Call::has(std::string_view name) const {
  if (const auto given = node.attrs.find(name); given != node.attrs.end()) return !is_null(given->second);
  const Bound* bound = find(name);
  return bound && (bound->is_tensor ? !bound->inputs.empty() : !is_null(bound->fallback));
}

Operand Call::operand(std::string_view name) {
  const Bound* bound = find(name);
  if (bound && bound->inputs.size() == 1 && bound->inputs[0] >= 0)
    return {inputs_[static_cast<size_t>(bound->inputs[0])], {}};
  const auto given = node.attrs.find(name);
  if (given == node.attrs.end() || is_null(given->second)) return {};
  if (const auto* size = std::get_if<Dim>(&given->second.value))
    return {b.full(1, {}, DType::i64, *size), {}};
  const auto number = number_of(given->second);
  if (!number) wrong(name, "a tensor or a number", given->second);
  return {{}, number};
}

Operand Call::required(std::string_view name) {
  const Operand o = operand(name);
  if (o.value || o.number) return o;
  refuse(invalid("argument '{}' is a tensor or a number, and missing", name));
  return {{}, Number{}};
}

ir::Value Call::maybe(std::string_view name) {
  const Operand o = operand(name);
  if (o.value || !o.number) return o.value;
  using enum Number::Kind;
  return constant(*o.number, o.number->kind == real      ? DType::f32
                             : o.number->kind == integer ? DType::i64
                                                         : DType::boolean);
}

ir::Value Call::tensor(std::string_view name) {
  if (const ir::Value v = maybe(name)) return v;
  refuse(invalid("argument '{}' is a tensor, and missing", name));
  return b.full(0, {}, DType::f32);
}

ir::ValueList Call::tensors(std::string_view name) {
  ir::ValueList out;
  if (const Bound* bound = find(name))
    for (const int i : bound->inputs) out.push_back(i < 0 ? ir::Value() : inputs_[static_cast<size_t>(i)]);
  return out;
}

Number Call::number(std::string_view name) {
  const Arg& arg = argument(name);
  const auto n = number_of(arg);
  if (!n) wrong(name, "a number", arg);
  return n.value_or(Number{});
}
double Call::real(std::string_view name) { return number(name).value; }

int64_t Call::integer(std::string_view name) {
  const Arg& arg = argument(name);
  const auto n = number_of(arg);
  if (!n || n->kind == Number::Kind::real) {
    wrong(name, "a whole number", arg);
    return 1;
  }
  return std::clamp(n->whole, -kFarthest, kFarthest);
}

Dim Call::dim(std::string_view name) {
  const Arg& arg = argument(name);
  const auto* size = std::get_if<Dim>(&arg.value);
  return size ? *size : Dim(integer(name));
}

bool Call::flag(std::string_view name) {
  const Arg& arg = argument(name);
  const auto n = number_of(arg);
  if (!n) wrong(name, "true or false", arg);
  return n && n->value != 0;
}

std::string Call::text(std::string_view name) {
  const Arg& arg = argument(name);
  if (const auto* v = std::get_if<std::string>(&arg.value)) return *v;
  wrong(name, "a text", arg);
  return {};
}

IntList Call::integers(std::string_view name) {
  const Arg& arg = argument(name);
  IntList out;
  if (const auto* one = std::get_if<int64_t>(&arg.value)) {
    out.push_back(std::clamp(*one, -kFarthest, kFarthest));
  } else if (const auto* all = std::get_if<std::vector<Arg>>(&arg.value)) {
    for (const Arg& item : *all) {
      const auto* n = std::get_if<int64_t>(&item.value);
      if (!n) wrong(name, "whole numbers", arg);
      out.push_back(n ? std::clamp(*n, -kFarthest, kFarthest) : 1);
    }
  } else {
    wrong(name, "whole numbers", arg);
  }
  return out;
}

IntList Call::integers(std::string_view name, size_t n) {
  IntList out = integers(name);
  if (out.size() == 1)
    while (out.size() < n) out.push_back(out[0]);
  if (out.size() == n) return out;
  wrong(name, fmt::format("{} whole numbers", n), argument(name));
  out = {};
  while (out.size() < n) out.push_back(1);
  return out;
}

DType Call::dtype(std::string_view name, DType otherwise) {
  const Arg& arg = argument(name);
  if (is_null(arg)) return otherwise;
  const auto* spelt = std::get_if<std::string>(&arg.value);
  const auto dtype = spelt ? dtype_from_torch(*spelt) : std::nullopt;
  if (!dtype) wrong(name, "a dtype", arg);
  return dtype.value_or(otherwise);
}

int64_t Call::axis(std::string_view name, int64_t rank) {
  const int64_t given = integer(name), most = std::max<int64_t>(rank, 1);
  if (given >= -most && given < most) return given < 0 ? given + most : given;
  refuse(invalid("argument '{}': axis {} of a tensor with {} axes", name, given, rank));
  return 0;
}

Shape Call::axes(std::string_view name, int64_t rank) {
  std::vector<bool> named(static_cast<size_t>(std::max<int64_t>(rank, 1)), !has(name));
  if (has(name)) {
    const IntList given = integers(name);
    if (given.empty()) named.assign(named.size(), true);
    for (const int64_t a : given) {
      const auto n = static_cast<int64_t>(named.size());
      if (a < -n || a >= n) {
        refuse(invalid("argument '{}': axis {} of a tensor with {} axes", name, a, rank));
        break;
      }
      named[static_cast<size_t>(a < 0 ? a + n : a)] = true;
    }
  }
  Shape out;
  for (int64_t i = 0; i < rank; ++i)
    if (named[static_cast<size_t>(i)]) out.push_back(i);
  return out;
}

const TensorType& Call::declared(size_t i) const {
  static const TensorType nothing{};
  return i < node.outputs.size() ? node.outputs[i].type : nothing;
}

ir::Value Call::constant(const Number& n, DType dtype) {
  double value = n.value;
  if (dtype == DType::boolean) value = value != 0;
  if (is_float(dtype) && !may_stand_for(dtype, value))  // a float that overflows or vanishes
    value = std::fabs(value) < 1 ? std::copysign(0.0, value) : std::copysign(INFINITY, value);
  if (!is_float(dtype) && dtype != DType::boolean) {
    if (n.kind == Number::Kind::real && std::isfinite(value)) value = std::trunc(value);
    if (n.kind == Number::Kind::integer && !is_exact(n, dtype))
      refuse(invalid("{} can't hold {}, or a float between can't", name(dtype), n.whole));
  }
  return b.full(value, {}, dtype);
}

ir::Value Call::as(const Operand& operand, DType dtype) {
  if (operand.value) return b.cast(operand.value, dtype);
  return operand.number ? constant(*operand.number, dtype) : ir::Value();
}

ir::ValueList Call::promoted(std::span<const Operand> operands) {
  const auto dtype = result_type(operands);
  if (!dtype) refuse(invalid("its operands' dtypes promote to none that Weft has"));
  ir::ValueList out;
  for (const Operand& o : operands) out.push_back(as(o, dtype.value_or(DType::f32)));
  return out;
}

void Call::unify(std::initializer_list<ir::Value*> operands) {
  std::vector<Operand> given;
  bool differ = false;
  for (ir::Value* v : operands)
    if (*v) given.push_back({*v, {}}), differ |= v->dtype() != given[0].value.dtype();
  if (!differ) return;
  const auto same = promoted(given);
  size_t i = 0;
  for (ir::Value* v : operands)
    if (*v) *v = same[i++];
  note(fmt::format("its operands have several dtypes, and are computed in {}", name(same[0].dtype())));
}

ir::Value Call::concat(ir::ValueList all, int64_t along) {
  while (all.size() > 1) {
    ir::ValueList joined;
    for (size_t i = 0; i < all.size(); i += ir::kMostOperands) {
      const auto group = ir::Values(all).subspan(i, std::min(all.size() - i, ir::kMostOperands));
      joined.push_back(group.size() == 1 ? group[0] : b.call("concat", group, {{"axis", along}})[0]);
    }
    all = std::move(joined);
  }
  return all[0];
}

}  // namespace weft::importer

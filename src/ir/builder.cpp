#include "ir/builder.h"

namespace weft::ir {

Result<std::vector<AttrValue>> order_attrs(const OpDef& op, std::span<const Attr> named) {
  std::vector<AttrValue> values = op.defaults();
  for (const auto& attr : named) {
    size_t i = 0;
    while (i < op.attrs.size() && attr.name != op.attrs[i].name) ++i;
    if (i == op.attrs.size()) return invalid("{}: no attribute named '{}'", op.name, attr.name);
    const auto* integer = std::get_if<int64_t>(&attr.value);
    if (integer && std::holds_alternative<double>(values[i])) {
      values[i] = static_cast<double>(*integer);
    } else if (integer && op.attrs[i].kind == AttrKind::dim) {
      values[i] = Shape{*integer};
    } else if (attr.value.index() != values[i].index()) {
      return invalid("{}: attribute '{}' has the wrong kind, got {}", op.name, attr.name, text(attr.value));
    } else {
      values[i] = attr.value;
    }
    if (op.attrs[i].kind == AttrKind::dtype && !dtype_from_name(std::get<std::string>(values[i])))
      return invalid("{}: attribute '{}' names no dtype, got {}", op.name, attr.name, text(attr.value));
    if (op.attrs[i].kind == AttrKind::dim && std::get<Shape>(values[i]).size() != 1)
      return invalid("{}: attribute '{}' is one dimension, got {}", op.name, attr.name, text(attr.value));
  }
  return values;
}

static Status check_operands(const OpDef& op, std::span<const TensorType* const> types) {
  const size_t least = op.n_inputs - op.n_optional;
  if (types.size() < least || types.size() > op.n_inputs)
    return invalid("{}: wants {} operands, got {}", op.name, op.n_inputs, types.size());
  for (size_t i = 0; i < types.size(); ++i)
    if (!types[i] && i < least) return invalid("{}: operand '{}' is missing", op.name, op.inputs[i]);
  return {};
}

ValueList Builder::call(const OpDef& op, Values inputs, std::vector<AttrValue> attrs) {
  if (attrs.empty() && !op.attrs.empty()) attrs = op.defaults();
  std::vector<const TensorType*> types;
  for (const Value v : inputs) types.push_back(v ? &v.type() : nullptr);
  Status checked = check_operands(op, types);
  if (checked.ok()) {
    auto inferred = op.infer(Types(types), attrs);
    if (inferred.ok() && !status_.ok()) {  // already failed: continue with types only
      ValueList out;
      for (const auto& t : *inferred) out.push_back(placeholder(t));
      return out;
    }
    if (inferred.ok()) {
      settle_attrs(op, Types(types), attrs);
      ValueList all(inputs.begin(), inputs.end());
      all.resize(op.listed(all.size()));  // absent ones too
      return emit(op, all, std::move(attrs), std::move(inferred).value());
    }
    checked = inferred.take_status();
  }
  fail(std::move(checked));
  // A placeholder, so the caller can continue to its end.
  TensorType stand_in;
  if (!types.empty() && types[0]) stand_in = *types[0];
  ValueList out;
  for (int i = 0; i < op.n_outputs; ++i) out.push_back(placeholder(stand_in));
  return out;
}

ValueList Builder::call(std::string_view name, Values inputs, std::initializer_list<Attr> attrs) {
  const OpDef* op = find_op(name);
  if (!op) {
    fail(weft::fail(Code::internal, "no op named '{}'", name));
    return ValueList(4, placeholder({}));
  }
  auto ordered = order_attrs(*op, std::span(attrs.begin(), attrs.size()));
  if (!ordered.ok()) fail(ordered.take_status());
  return call(*op, inputs, ordered.ok() ? std::move(ordered).value() : op->defaults());
}

Value Builder::binary(const char* op, Operand a, Operand b) {
  if (!a.value) a.value = full(a.number, {}, b.value.dtype());
  if (!b.value) b.value = full(b.number, {}, a.value.dtype());
  return one(op, {a.value, b.value});
}

Value Builder::neg(Value x) {
  // No unsigned integer is -1, and 0 - 0 would lose the sign of a zero.
  return is_float(x.dtype()) ? mul(x, -1) : sub(0, x);
}

Value Builder::cast(Value x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return one("cast", {x}, {{"dtype", std::string(name(dtype))}});
}

Value Builder::where(Value condition, Operand yes, Operand no) {
  if (!yes.value) yes.value = full(yes.number, {}, no.value.dtype());
  if (!no.value) no.value = full(no.number, {}, yes.value.dtype());
  return one("where", {condition, yes.value, no.value});
}

Value Builder::sum_all(Value x) { return one("sum", {x}); }

Value Builder::sum_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const size_t extra = x.shape().size() - shape.size();
  Shape axes;
  for (size_t i = 0; i < x.shape().size(); ++i)
    if (i < extra || (shape[i - extra] == Dim(1) && !(x.shape()[i] == Dim(1)))) axes.push_back(Dim(i));
  const Value folded = axes.empty() ? x : one("sum", {x}, {{"axes", axes}, {"keep", int64_t{1}}});
  return reshape(folded, shape);
}

Value Builder::matmul(Value a, Value b, bool transpose_a, bool transpose_b) {
  return one("matmul", {a, b},
             {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}});
}

Value Builder::broadcast(Value x, const Shape& shape) {
  return x.shape() == shape ? x : one("broadcast", {x}, {{"shape", shape}});
}

Value Builder::reshape(Value x, const Shape& shape) {
  return x.shape() == shape ? x : one("reshape", {x}, {{"shape", shape}});
}

Value Builder::gather(Value x, Value index, int64_t axis, int64_t batch) {
  return one("gather", {x, index}, {{"axis", axis}, {"batch", batch}});
}

Value Builder::scatter_add(Value x, Value index, Value updates, int64_t axis, int64_t batch) {
  return one("scatter_add", {x, index, updates}, {{"axis", axis}, {"batch", batch}});
}

Value Builder::full(double value, const Shape& shape, DType dtype, Dim times) {
  const Attr attrs[] = {
      {"value", value}, {"shape", shape}, {"dtype", std::string(name(dtype))}, {"times", Shape{times}}};
  return call("full", {}, {attrs[0], attrs[1], attrs[2], attrs[3]})[0];
}

ValueList expand(Builder& b, const OpDef& op, Values inputs, AttrView attrs) {
  ValueList wide(inputs.begin(), inputs.end());
  bool narrow = false;
  std::vector<const TensorType*> types;
  for (Value& v : wide) {
    types.push_back(v ? &v.type() : nullptr);
    if (v && is_half(v.dtype())) narrow = true;
  }
  if (!narrow || has(op.traits, Trait::movement)) return op.decompose(b, wide, attrs);
  auto promised = op.infer(Types(types), attrs);
  if (!promised.ok()) {
    b.fail(promised.take_status());
    return wide;
  }
  for (Value& v : wide)
    if (v && is_half(v.dtype())) v = b.cast(v, DType::f32);
  ValueList out = op.decompose(b, wide, attrs);
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] && is_float(out[i].dtype())) out[i] = b.cast(out[i], (*promised)[i].dtype);
  return out;
}

}  // namespace weft::ir

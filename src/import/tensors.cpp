#include "import/tensors.h"

namespace weft::importer {

int Tensors::add(ir::Value value) {
  tensors_.push_back({.value = value, .base = -1, .from = {}, .unknown = {}});
  return static_cast<int>(tensors_.size()) - 1;
}

int Tensors::add_view(ir::Value value, Converted from) {
  const int base = from.inputs[0];
  tensors_.push_back({.value = value,
                      .base = base,
                      .from = std::move(from),
                      .base_version = at(base).version,
                      .unknown = {}});
  return static_cast<int>(tensors_.size()) - 1;
}

int Tensors::add_missing(std::string why) {
  const int tensor = add({});
  at(tensor).unknown = std::move(why);
  return tensor;
}

static Status uncertain(const Converted& view) {
  return fail(
      Code::unsupported,
      "node '{}' ({}) is a view or a copy by the strides of its operand, which is written in place: this "
      "tensor's value depends on that; write to a clone() in the model",
      view.node->name, view.node->op);
}

Result<ir::Value> Tensors::read(int tensor, const Convert& convert) {
  Tensor& t = at(tensor);
  if (!t.unknown.empty()) return fail(Code::unsupported, "{}", t.unknown);
  if (t.base < 0) return t.value;
  WEFT_CHECK([&] { return read(t.base, convert).take_status(); }());
  if (at(t.base).version == t.base_version) return t.value;
  if (t.from.op->maybe_view) return uncertain(t.from);
  WEFT_TRY(const auto made, convert(t.from));
  t.value = made[t.from.result];
  t.base_version = at(t.base).version;
  ++t.version;
  return t.value;
}

Status Tensors::write(int tensor, ir::Value value, ir::Builder& b, const Convert& convert) {
  Tensor& t = at(tensor);
  t.value = value;
  ++t.version;
  if (t.base < 0) return {};
  Tensor& base = at(t.base);
  if (t.from.op->maybe_view) {
    base.unknown = uncertain(t.from).message();
    ++base.version;
    t.base = -1;  // what is read of it from now on is what was written
    return {};
  }
  ir::ValueList inputs;
  for (const int i : t.from.inputs) {
    WEFT_TRY(const ir::Value v, read(i, convert));
    inputs.push_back(v);
  }
  Call call(*t.from.node, *t.from.op, b, inputs);
  call.which = t.from.result;
  const ir::Value whole = t.from.op->write(call, inputs[0], value);
  WEFT_CHECK(call.status());
  WEFT_CHECK(write(t.base, whole, b, convert));
  t.base_version = at(t.base).version;
  return {};
}

}  // namespace weft::importer

#include "ir/lower.h"

namespace weft::ir {
namespace {

// Forwards primitives to another builder and decomposes composites recursively.
class Opener final : public Builder {
 public:
  explicit Opener(Builder& to) : to_(to) {}
  const TensorType& type(Value v) const override { return to_.type(outer(v)); }
  Value inner(Value v) {
    if (!v) return {};
    values_.push_back(v);
    return {this, static_cast<int32_t>(values_.size()) - 1};
  }
  Value outer(Value v) const { return v ? values_[static_cast<size_t>(v.id())] : Value(); }

 protected:
  ValueList emit(const OpDef& op, Values inputs, std::vector<AttrValue> attrs,
                 std::vector<TensorType>) override {
    if (!op.primitive()) return expand(*this, op, inputs, attrs);
    ValueList in;
    for (const Value v : inputs) in.push_back(outer(v));
    ValueList out;
    for (const Value v : to_.call(op, in, std::move(attrs))) out.push_back(inner(v));
    return out;
  }
  Value placeholder(const TensorType& type) override {
    return inner(to_.call("full", {}, {{"shape", type.shape}})[0]);
  }

 private:
  Builder& to_;
  ValueList values_;
};

}  // namespace

ValueList inline_primitives(Builder& b, const OpDef& op, Values inputs, AttrView attrs) {
  Opener opener(b);
  ValueList in, out;
  for (const Value v : inputs) in.push_back(opener.inner(v));
  in.resize(op.listed(in.size()));
  for (const Value v : expand(opener, op, in, attrs)) out.push_back(opener.outer(v));
  if (!opener.status().ok()) b.fail(opener.status());
  return out;
}

Result<Graph> lower_to_primitives(const OpDef& op, std::span<const TensorType* const> inputs,
                                  AttrView attrs) {
  Graph g;
  ValueList in;
  for (size_t i = 0; i < op.listed(inputs.size()); ++i) {
    const bool present = i < inputs.size() && inputs[i];
    const Value v = g.input(op.inputs[i], present ? *inputs[i] : TensorType{});
    in.push_back(present ? v : Value());
  }
  const auto out = inline_primitives(g, op, in, attrs);
  if (!g.status().ok()) return g.status();
  for (size_t k = 0; k < out.size(); ++k) g.output(op.outputs[k], out[k]);
  WEFT_CHECK(verify(g));
  return g;
}

}  // namespace weft::ir

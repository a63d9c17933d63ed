#include "conformance/half_gradients.h"

#include <algorithm>
#include <set>

#include "conformance/inputs.h"
#include "conformance/run.h"

namespace weft::conformance {
namespace {

Array widened(Array a) {
  if (is_half(a.dtype)) a.dtype = DType::f32;
  return a;
}

// A call whose operands and seed are inputs of a graph.
class RuleContext final : public ir::GradContext {
 public:
  RuleContext(ir::Graph& g, const GradientCall& call, const std::vector<Array>& operands, const Array& seed)
      : g_(g), call_(call) {
    for (const Array& a : operands) in_.push_back(g.input("", type_of(widened(a))));
    seed_ = g.input("", type_of(widened(seed)));
    const auto types = value_or_raise(infer_op(call.op, call.attrs, operands));
    const auto results = g.call(call.op, in_, call.attrs);
    for (size_t k = 0; k < results.size(); ++k) {
      const DType wide = results[k].dtype();
      out_.push_back(g.cast(g.cast(results[k], types[k].dtype), wide));
    }
  }
  ir::Value in(int i) const override { return in_[static_cast<size_t>(i)]; }
  ir::Value out(int i) const override { return out_[static_cast<size_t>(i)]; }
  ir::Value dout(int i) const override { return i == 0 ? seed_ : g_.zeros_like(out(i)); }
  bool flows(int i) const override { return i == 0; }
  bool wants(int i) const override { return has(i) && call_.wanted(static_cast<size_t>(i)); }
  bool has(int i) const override { return static_cast<size_t>(i) < in_.size(); }
  const TensorType& in_type(int i) const override { return in(i).type(); }
  const TensorType& out_type(int i) const override { return out(i).type(); }

 private:
  ir::Graph& g_;
  const GradientCall& call_;
  ir::ValueList in_, out_;
  ir::Value seed_;
};

std::vector<Bounded> by_rule(const GradientCall& call, const std::vector<Array>& operands,
                             const Array& seed) {
  ir::Graph g;
  const RuleContext context(g, call, operands, seed);
  const auto grads = call.op.grad(g, context, call.attrs);
  for (size_t i = 0; i < operands.size(); ++i)
    if (call.wanted(i)) g.output("", grads[i]);
  raise_if(g.status());
  std::vector<Bounded> inputs;
  for (const Array& a : operands) inputs.push_back(exactly(widened(a)));
  inputs.push_back(exactly(widened(seed)));
  const ir::Graph primitives = value_or_raise(lowered(g));
  const auto all = bound_graph(primitives, std::move(inputs));
  std::vector<Bounded> out;
  for (const auto& o : primitives.outputs) out.push_back(all[static_cast<size_t>(o.value)]);
  return out;
}

Bounded rounded(const Bounded& b, DType t) {
  const ir::OpDef& cast = *ir::find_op("cast");
  const std::vector<AttrValue> attrs = {std::string(name(t))};
  const Bounded* in[] = {&b};
  return bound_primitive(cast, attrs, in)[0];
}

Shape replaced(const Shape& shape, int64_t from, int64_t to) {
  Shape out;
  for (const Dim d : shape) out.push_back(d == Dim(from) ? Dim(to) : d);
  return out;
}

// A list of values begins again where it ends.
void stretch(Input& in, int64_t from, int64_t to, int64_t most) {
  const size_t before = in.list.size();
  std::replace(in.shape.begin(), in.shape.end(), from, to);
  for (auto i = before; before > 0 && count(in.shape) <= most && i < static_cast<size_t>(count(in.shape));
       ++i)
    in.list.push_back(in.list[i % before]);
}

bool fits(const ir::OpDef& op, const Case& c, int64_t most) {
  for (const Input& in : c.inputs)
    if (count(in.shape) > most) return false;
  const auto attrs = value_or_raise(ir::order_attrs(op, c.attrs));
  std::vector<Array> in;
  for (const Input& i : c.inputs) in.push_back({i.dtype.value_or(DType::f16), i.shape, {}});
  auto types = infer_op(op, attrs, in);
  return types.ok() && element_count((*types)[0].shape).max() <= most;
}

}  // namespace

std::vector<Bounded> bounded_half_gradients(const GradientCall& call, const std::vector<Array>& operands,
                                            const Array& seed) {
  std::vector<Array> wide;
  for (const Array& a : operands) wide.push_back(widened(a));
  auto grads = call.op.grad ? by_rule(call, operands, seed) : bounded_gradients(call, wide, widened(seed));
  size_t k = 0;
  for (size_t i = 0; i < operands.size(); ++i)
    if (call.wanted(i)) grads[k] = rounded(grads[k], operands[i].dtype), ++k;
  return grads;
}

std::optional<Case> stretched(const ir::OpDef& op, const Case& c, int64_t n, int64_t most) {
  std::set<int64_t> lengths;
  for (const Input& in : c.inputs)
    for (const int64_t d : in.shape)
      if (d > 1) lengths.insert(d);
  for (const int64_t d : lengths) {
    Case longer = c;
    for (Input& in : longer.inputs) stretch(in, d, n, most);
    if (fits(op, longer, most)) return longer;
    for (Attr& a : longer.attrs)
      if (const auto* shape = std::get_if<Shape>(&a.value)) a.value = replaced(*shape, d, n);
    if (fits(op, longer, most)) return longer;
  }
  return std::nullopt;
}

}  // namespace weft::conformance

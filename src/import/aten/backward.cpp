#include <algorithm>

#include "import/call.h"
#include "ops/shared/pool.h"

// Ops of backward passes, as autograd writes them: by the gradient of the op that they go back through.
namespace weft::importer {
namespace {

/// One call of an op, of whose first result the gradient is known.
class Forward final : public ir::GradContext {
 public:
  Forward(ir::Builder& b, const ir::OpDef& op, ir::ValueList inputs, std::vector<AttrValue> attrs,
          ir::Value dy)
      : b_(b), op_(op), inputs_(std::move(inputs)), attrs_(std::move(attrs)), dy_(dy) {
    made_ = b.call(op, inputs_, attrs_);
  }
  ir::Value in(int i) const override { return inputs_[static_cast<size_t>(i)]; }
  ir::Value out(int i) const override { return made_[static_cast<size_t>(i)]; }
  ir::Value dout(int i) const override { return i == 0 ? dy_ : b_.zeros_like(out(i)); }
  bool flows(int i) const override { return i == 0; }
  bool wants(int i) const override { return has(i); }
  bool has(int i) const override {
    return static_cast<size_t>(i) < inputs_.size() && inputs_[static_cast<size_t>(i)];
  }
  const TensorType& in_type(int i) const override { return in(i).type(); }
  const TensorType& out_type(int i) const override { return out(i).type(); }

  ir::Grads gradients() { return ir::differentiate(b_, op_, *this, ir::AttrView(attrs_)); }

 private:
  ir::Builder& b_;
  const ir::OpDef& op_;
  ir::ValueList inputs_, made_;
  std::vector<AttrValue> attrs_;
  ir::Value dy_;
};

/// The gradients for the operands of `name`(inputs), from that of its result. What is not used of the call is
/// dropped by the compiler.
ir::Grads gradients(Call& c, const char* name, ir::ValueList inputs, std::initializer_list<Attr> attrs,
                    ir::Value dy) {
  const ir::OpDef& op = *ir::find_op(name);  // one with a gradient of its own
  auto ordered = ir::order_attrs(op, {attrs.begin(), attrs.size()});
  if (!ordered.ok()) {
    c.refuse(ordered.take_status());
    return ir::Grads(inputs.size());
  }
  Forward forward(c.b, op, std::move(inputs), std::move(ordered).value(), dy);
  if (!(forward.out(0).type() == dy.type())) {
    c.refuse(invalid("{} gives {}, and its gradient is {}", name, weft::text(forward.out(0).type()),
                     weft::text(dy.type())));
    return ir::Grads(op.n_inputs);
  }
  return forward.gradients();
}

Shape both_sides(const IntList& padding) {
  Shape out;
  for (const int64_t p : padding) out.push_back(p), out.push_back(p);
  return out;
}

void convolution_backward(Call& c) {
  const auto dy = c.tensor("grad_output"), x = c.tensor("input"), w = c.tensor("weight");
  const auto n = static_cast<size_t>(std::clamp<int64_t>(w.rank(), 3, 5) - 2);
  if (x.rank() != w.rank() || w.rank() < 3 || w.rank() > 5)
    return c.refuse(invalid("{} by {}", weft::text(x.type()), weft::text(w.type())));
  const Attr stride{"stride", shape_of(c.integers("stride", n))};
  const Attr padding{"padding", both_sides(c.integers("padding", n))};
  const Attr dilation{"dilation", shape_of(c.integers("dilation", n))}, groups{"groups", c.integer("groups")};
  const Attr rest{"output_padding", shape_of(c.integers("output_padding", n))};
  const auto g = c.flag("transposed")
                     ? gradients(c, "conv_transpose", {x, w}, {stride, padding, dilation, groups, rest}, dy)
                     : gradients(c, "conv", {x, w}, {stride, padding, dilation, groups}, dy);
  if (!c.status().ok()) return;
  Shape all_but_channels;
  for (int64_t i = 0; i < dy.rank(); ++i)
    if (i != 1) all_but_channels.push_back(i);
  const auto bias = [&] { return c.b.one("sum", {dy}, {{"axes", all_but_channels}}); };
  c.give(
      {c.reads(0) ? g[0] : ir::Value(), c.reads(1) ? g[1] : ir::Value(), c.reads(2) ? bias() : ir::Value()});
}

// To the element that each window picked, whose number within the image `indices` has.
void max_pool_backward(Call& c) {
  const auto dy = c.tensor("grad_output"), x = c.tensor("self"), indices = c.tensor("indices");
  const auto n = static_cast<int64_t>(c.integers("kernel_size").size() == 3 ? 3 : 2);
  if (x.rank() < n || dy.rank() != x.rank()) return c.refuse(invalid("images of {}", weft::text(x.type())));
  const auto flat = [&](ir::Value v) {
    Shape shape(v.shape().begin(), v.shape().end() - n);
    shape.push_back(
        element_count(std::span<const Dim>(v.shape()).subspan(v.shape().size() - static_cast<size_t>(n))));
    return c.b.reshape(v, shape);
  };
  const auto image = flat(c.b.zeros_like(x));
  const int64_t lead = x.rank() - n;
  c.give(c.b.reshape(c.b.scatter_add(image, flat(indices), flat(dy), lead, lead), x.shape()));
}

// [lead..., size...] as images of one channel.
ir::Value images(ir::Builder& b, ir::Value x, size_t n) {
  const auto all = std::span<const Dim>(x.shape());
  Shape shape{element_count(all.first(all.size() - n)), Dim(1)};
  for (const Dim d : all.subspan(all.size() - n)) shape.push_back(d);
  return b.reshape(x, shape);
}
// Through a conv with ones, of what each window's elements get.
void avg_pool_backward(Call& c) {
  auto dy = c.tensor("grad_output");
  const auto x = c.tensor("self");
  const size_t n = c.op.name[8] == '3' ? 3 : 2;
  const Shape kernel = shape_of(c.integers("kernel_size", n));
  const bool given = c.has("stride") && !c.integers("stride").empty();
  if (x.shape().size() < n || dy.rank() != x.rank())
    return c.refuse(invalid("windows of {} axes in {}", n, weft::text(x.type())));
  if (c.flag("ceil_mode")) return c.refuse(fail(Code::unsupported, "windows that are counted up"));
  Shape ones{1, 1};
  for (const Dim k : kernel) ones.push_back(k);
  const auto weight = c.b.full(1, ones, x.dtype());
  const Attr stride{"stride", given ? shape_of(c.integers("stride", n)) : kernel};
  const Attr padding{"padding", both_sides(c.integers("padding", n))};
  const auto image = images(c.b, x, n);
  dy = images(c.b, dy, n);
  if (c.has("divisor_override")) {
    dy = c.b.div(dy, static_cast<double>(c.integer("divisor_override")));
  } else if (c.flag("count_include_pad")) {
    dy = c.b.div(dy, static_cast<double>(element_count(std::span<const Dim>(kernel)).value()));
  } else {
    dy = c.b.div(dy, c.b.one("conv", {c.b.full(1, image.shape(), x.dtype()), weight}, {stride, padding}));
  }
  const auto dx = gradients(c, "conv", {image, weight}, {stride, padding}, dy)[0];
  if (c.status().ok()) c.give(c.b.reshape(dx, x.shape()));
}
// Where windows are of one size and do not overlap, each element gets its part.
void adaptive_avg_pool_backward(Call& c) {
  auto dy = c.tensor("grad_output");
  const auto x = c.tensor("self");
  const int64_t n = std::string_view(c.op.name).find("3d") != std::string_view::npos ? 3 : 2;
  if (dy.rank() < n || dy.rank() != x.rank()) return c.refuse(invalid("images of {}", weft::text(dy.type())));
  const auto lead = static_cast<size_t>(x.rank() - n);
  Shape apart(x.shape().begin(), x.shape().end() - n), wide = apart;
  double elements = 1;
  for (size_t i = lead; i < x.shape().size(); ++i) {
    const Dim from = x.shape()[i], to = dy.shape()[i];
    if (!from.is_const() || !to.is_const() || to.value() == 0 || from.value() % to.value() != 0)
      return c.refuse(
          fail(Code::unsupported, "windows of several sizes, from {} to {}", from.text(), to.text()));
    const Dim each = from.value() / to.value();
    apart.push_back(to), apart.push_back(1), wide.push_back(to), wide.push_back(each);
    elements *= static_cast<double>(each.value());
  }
  dy = c.b.reshape(c.b.div(dy, elements), apart);
  c.give(c.b.reshape(c.b.broadcast(dy, wide), x.shape()));
}

constexpr AtenOp backward_ops[] = {
    {"_adaptive_avg_pool2d_backward.default", "grad_output, self", "div, broadcast",
     adaptive_avg_pool_backward},
    {"_adaptive_avg_pool3d_backward.default", "grad_output, self", "div, broadcast",
     adaptive_avg_pool_backward},
    {"avg_pool2d_backward.default",
     "grad_output, self, kernel_size=, stride=, padding=, ceil_mode=, count_include_pad=, "
     "divisor_override=None",
     "div, conv_transpose", avg_pool_backward},
    {"avg_pool3d_backward.default",
     "grad_output, self, kernel_size=, stride=, padding=, ceil_mode=, count_include_pad=, "
     "divisor_override=None",
     "div, conv_transpose", avg_pool_backward},
    {"convolution_backward.default",
     "grad_output, input, weight, bias_sizes=None, stride=, padding=, dilation=, transposed=, "
     "output_padding=, "
     "groups=, output_mask=None",
     "conv_transpose, conv_weight_grad, conv, sum", convolution_backward},
    {"max_pool2d_with_indices_backward.default",
     "grad_output, self, kernel_size=, stride=[], padding=0, dilation=1, ceil_mode=false, indices",
     "scatter_add", max_pool_backward},
    {"max_pool3d_with_indices_backward.default",
     "grad_output, self, kernel_size=, stride=[], padding=0, dilation=1, ceil_mode=false, indices",
     "scatter_add", max_pool_backward},
};

}  // namespace

extern constinit const Family backward_family = {backward_ops};

}  // namespace weft::importer

#include <array>
#include <cmath>

#include "import/call.h"

// Products of matrices, and convolutions.
namespace weft::importer {
namespace {

void give_declared(Call& c, ir::Value y) { c.give(c.b.cast(y, c.declared().dtype)); }

void linear(Call& c) {
  auto x = c.tensor("input"), w = c.tensor("weight"), bias = c.maybe("bias");
  c.unify({&x, &w, &bias});
  if (w.rank() == 1) w = c.b.reshape(w, {1, w.shape()[0]});
  const bool row = x.rank() == 1;
  if (row) x = c.b.reshape(x, {1, x.shape()[0]});
  const auto y = bias ? c.b.one("linear", {x, w, bias}) : c.b.one("linear", {x, w});
  give_declared(c, row || c.tensor("weight").rank() == 1 ? c.b.reshape(y, c.declared().shape) : y);
}

// Vectors are rows on the left and columns on the right.
void matmul(Call& c) {
  const char* second = "other";
  for (const char* name : {"mat2", "vec", "tensor"})
    if (c.has(name)) second = name;
  auto a = c.tensor("self"), b = c.tensor(second);
  c.unify({&a, &b});
  if (a.rank() == 0 || b.rank() == 0) return c.refuse(invalid("a tensor without axes has no product"));
  const bool vector = a.rank() == 1 || b.rank() == 1;
  if (a.rank() == 1) a = c.b.reshape(a, {1, a.shape()[0]});
  if (b.rank() == 1) b = c.b.reshape(b, {b.shape()[0], 1});
  const auto y = c.b.matmul(a, b);
  give_declared(c, vector ? c.b.reshape(y, c.declared().shape) : y);
}

void outer(Call& c) {
  const auto v = c.promoted(std::array{c.required("self"), c.required("vec2")});
  if (!c.status().ok()) return;
  c.give(c.b.mul(c.b.reshape(v[0], {element_count(std::span<const Dim>(v[0].shape())), 1}), v[1]));
}

// beta self + alpha (a b).
void product_and_sum(Call& c) {
  const bool vector = std::string_view(c.op.name).starts_with("addmv"), batched = c.has("batch1");
  auto self = c.tensor("self");
  auto a = c.tensor(batched ? "batch1" : vector ? "mat" : "mat1");
  auto b = c.tensor(batched ? "batch2" : vector ? "vec" : "mat2");
  c.unify({&self, &a, &b});
  if (vector) b = c.b.reshape(b, {b.rank() > 0 ? b.shape()[0] : Dim(1), 1});
  auto y = c.b.matmul(a, b);
  if (vector) y = c.b.reshape(y, {y.shape()[0]});
  if (c.real("alpha") != 1) y = c.b.mul(y, c.constant(c.number("alpha"), y.dtype()));
  if (c.real("beta") == 0) return give_declared(c, y);  // even where self is NaN
  if (c.real("beta") != 1) self = c.b.mul(self, c.constant(c.number("beta"), self.dtype()));
  give_declared(c, c.b.add(self, y));
}

void einsum(Call& c) {
  const auto all = c.tensors("tensors");
  std::string equation;
  for (const char letter : c.text("equation"))
    if (letter != ' ') equation += letter;
  if (all.empty() || all.size() > ir::kMostParameters)
    return c.refuse(
        fail(Code::unsupported, "einsum of {} tensors; up to {}", all.size(), ir::kMostParameters));
  c.give(c.b.call("einsum", all, {{"equation", equation}})[0]);
}

// ---- convolutions
struct Convolution {
  IntList stride, dilation, output_padding;
  IntList padding;  // before and after each axis
  int64_t groups = 1;
  bool transposed = false;
};

// An image without a batch is a batch of one.
void convolve(Call& c, const Convolution& how) {
  auto x = c.tensor("input"), w = c.tensor("weight"), bias = c.maybe("bias");
  c.unify({&x, &w, &bias});
  const bool single = x.rank() == w.rank() - 1;
  if (single) {
    Shape shape = x.shape();
    shape.insert(0, Dim(1));
    x = c.b.reshape(x, shape);
  }
  const Attr stride{"stride", shape_of(how.stride)}, padding{"padding", shape_of(how.padding)};
  const Attr dilation{"dilation", shape_of(how.dilation)}, groups{"groups", how.groups};
  const Attr rest{"output_padding", shape_of(how.output_padding)};
  ir::Value y;
  if (how.transposed) {
    y = c.b.one("conv_transpose", {x, w}, {stride, padding, dilation, groups, rest});
  } else {
    y = c.b.one("conv", {x, w}, {stride, padding, dilation, groups});
  }
  if (bias) {
    Shape channels = bias.shape();
    for (int64_t i = 2; i < w.rank(); ++i) channels.push_back(1);
    y = c.b.add(y, c.b.reshape(bias, channels));
  }
  give_declared(c, single ? c.b.reshape(y, c.declared().shape) : y);
}
size_t spatial(Call& c) {
  const int64_t rank = c.tensor("weight").rank();
  if (rank < 3 || rank > 5) c.refuse(invalid("its weight has {} axes", rank));
  return static_cast<size_t>(std::clamp<int64_t>(rank, 3, 5) - 2);
}
IntList padding_of_both_sides(const IntList& padding) {
  IntList out;
  for (const int64_t p : padding) out.push_back(p), out.push_back(p);
  return out;
}
Convolution usual(Call& c) {
  const size_t n = spatial(c);
  return {.stride = c.integers("stride", n),
          .dilation = c.integers("dilation", n),
          .output_padding = {},
          .padding = padding_of_both_sides(c.integers("padding", n)),
          .groups = c.integer("groups")};
}
void conv(Call& c) { convolve(c, usual(c)); }
// padding is a word: with "same" the odd element comes after.
void conv_word(Call& c) {
  const size_t n = spatial(c);
  Convolution how{.stride = c.integers("stride", n),
                  .dilation = c.integers("dilation", n),
                  .output_padding = {},
                  .padding = {},
                  .groups = c.integer("groups")};
  const std::string word = c.text("padding");
  if (word != "same" && word != "valid")
    return c.refuse(invalid("argument 'padding': there is no '{}'", word));
  const auto w = c.tensor("weight");
  for (size_t i = 0; i < n; ++i) {
    const Dim kernel = w.shape()[i + 2];
    if (!kernel.is_const() || kernel.value() > 1 << 20 || std::abs(how.dilation[i]) > 1 << 20)
      return c.refuse(invalid("a kernel of {}", kernel.text()));
    const int64_t all = word == "same" ? how.dilation[i] * (kernel.value() - 1) : 0;
    how.padding.push_back(all / 2), how.padding.push_back(all - all / 2);
  }
  convolve(c, how);
}
void conv_transpose(Call& c) {
  Convolution how = usual(c);
  how.transposed = true;
  how.output_padding = c.integers("output_padding", spatial(c));
  convolve(c, how);
}
void convolution(Call& c) { c.flag("transposed") ? conv_transpose(c) : conv(c); }

constexpr AtenOp product_ops[] = {
    {"addmm.default", "self, mat1, mat2, beta=1, alpha=1", "matmul, add", product_and_sum},
    {"addmv.default", "self, mat, vec, beta=1, alpha=1", "matmul, add", product_and_sum},
    {"baddbmm.default", "self, batch1, batch2, beta=1, alpha=1", "matmul, add", product_and_sum},
    {"bmm.default", "self, mat2", "matmul", matmul},
    {"conv1d.default", "input, weight, bias?, stride=1, padding=0, dilation=1, groups=1", "conv, add", conv},
    {"conv1d.padding", "input, weight, bias?, stride=1, padding=valid, dilation=1, groups=1", "conv, add",
     conv_word},
    {"conv2d.default", "input, weight, bias?, stride=1, padding=0, dilation=1, groups=1", "conv, add", conv},
    {"conv2d.padding", "input, weight, bias?, stride=1, padding=valid, dilation=1, groups=1", "conv, add",
     conv_word},
    {"conv3d.default", "input, weight, bias?, stride=1, padding=0, dilation=1, groups=1", "conv, add", conv},
    {"conv_transpose1d.default",
     "input, weight, bias?, stride=1, padding=0, output_padding=0, groups=1, dilation=1",
     "conv_transpose, add", conv_transpose},
    {"conv_transpose2d.input",
     "input, weight, bias?, stride=1, padding=0, output_padding=0, groups=1, dilation=1",
     "conv_transpose, add", conv_transpose},
    {"conv_transpose3d.input",
     "input, weight, bias?, stride=1, padding=0, output_padding=0, groups=1, dilation=1",
     "conv_transpose, add", conv_transpose},
    {"convolution.default",
     "input, weight, bias?, stride=, padding=, dilation=, transposed=, output_padding=, groups=",
     "conv, conv_transpose, add", convolution},
    {"dot.default", "self, tensor", "matmul", matmul},
    {"einsum.default", "equation=, tensors[]", "einsum", einsum},
    {"linear.default", "input, weight, bias?", "linear", linear},
    {"matmul.default", "self, other", "matmul", matmul},
    {"mm.default", "self, mat2", "matmul", matmul},
    {"mv.default", "self, vec", "matmul", matmul},
    {"outer.default", "self, vec2", "mul", outer},
};

}  // namespace

extern constinit const Family product_family = {product_ops};

}  // namespace weft::importer

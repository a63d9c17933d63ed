#include <cmath>

#include "import/call.h"

// Ops that fold axes, sort along one or run along one.
namespace weft::importer {
namespace {

ir::Value fold(Call& c, const char* op, ir::Value x, const Shape& axes, bool keep) {
  if (x.rank() == 0) return c.b.one(op, {x});
  return c.b.one(op, {x}, {{"axes", axes}, {"keep", int64_t{keep}}});
}
Shape axes_of(Call& c, ir::Value x) {
  return c.node.attrs.contains("dim") ? c.axes("dim", x.rank()) : [&] {
    Shape all;
    for (int64_t i = 0; i < x.rank(); ++i) all.push_back(i);
    return all;
  }();
}
bool keeps(Call& c) { return c.node.attrs.contains("keepdim") && c.flag("keepdim"); }
void folded(Call& c, ir::Value x, const char* op) { c.give(fold(c, op, x, axes_of(c, x), keeps(c))); }

// Sums and products of integers and bool are i64.
ir::Value summand(Call& c) {
  const auto x = c.tensor("self");
  return c.b.cast(x, c.dtype("dtype", is_float(x.dtype()) ? x.dtype() : DType::i64));
}
void sum(Call& c) { folded(c, summand(c), "sum"); }
void prod(Call& c) { folded(c, summand(c), "prod"); }
void mean(Call& c) {
  const auto x = c.tensor("self");
  folded(c, c.b.cast(x, c.dtype("dtype", x.dtype())), "mean");
}
void extreme(Call& c) { folded(c, c.tensor("self"), c.op.how); }
void logsumexp(Call& c) {
  const auto x = c.tensor("self");
  folded(c, c.b.cast(x, to_float(x.dtype())), "logsumexp");
}
ir::Value how_many(Call& c, ir::Value x) {
  return fold(c, "sum", c.b.cast(x, DType::i64), axes_of(c, x), keeps(c));
}
void any(Call& c) { c.give(c.b.less(0, how_many(c, c.b.cast(c.tensor("self"), DType::boolean)))); }
void all(Call& c) {
  const auto x = c.b.one("logical_not", {c.b.cast(c.tensor("self"), DType::boolean)});
  c.give(c.b.equal(how_many(c, x), 0));
}
void count_nonzero(Call& c) { c.give(how_many(c, c.b.cast(c.tensor("self"), DType::boolean))); }

// ---- variance
ir::Value variance(Call& c) {
  const auto x = c.tensor("self");
  int64_t correction = 1;
  if (c.node.attrs.contains("unbiased")) correction = c.flag("unbiased");
  if (c.node.attrs.contains("correction") && c.has("correction")) {
    const double given = c.real("correction");
    correction = static_cast<int64_t>(given);
    if (given != static_cast<double>(correction))
      c.refuse(fail(Code::unsupported, "a correction of {}", given));
  }
  const Shape axes = axes_of(c, x);
  if (x.rank() == 0) return c.b.one("variance", {x}, {{"correction", correction}});
  return c.b.one("variance", {x}, {{"axes", axes}, {"keep", int64_t{keeps(c)}}, {"correction", correction}});
}
void var(Call& c) { c.give(variance(c)); }
void std_deviation(Call& c) { c.give(c.b.sqrt(variance(c))); }
ir::Value mean_too(Call& c) {
  const auto x = c.tensor("self");
  return fold(c, "mean", x, axes_of(c, x), keeps(c));
}
void var_mean(Call& c) { c.give({variance(c), mean_too(c)}); }
void std_mean(Call& c) { c.give({c.b.sqrt(variance(c)), mean_too(c)}); }

// The p-norm: of p = 0 how many elements are not zero, of infinity the largest size.
void norm_of(Call& c, const char* which) {
  const auto given = c.tensor("self");
  const DType t = c.dtype("dtype", given.dtype());
  const auto x = c.b.abs(c.b.cast(given, is_half(t) ? DType::f32 : t));
  const double p = c.has(which) ? c.real(which) : 2;
  const Shape axes = axes_of(c, x);
  const auto over = [&](const char* op, ir::Value v) { return fold(c, op, v, axes, keeps(c)); };
  ir::Value y;
  if (p == 2)
    y = c.b.sqrt(over("sum", c.b.mul(x, x)));
  else if (p == 1)
    y = over("sum", x);
  else if (p == 0)
    y = over("sum", c.b.cast(c.b.one("not_equal", {x, c.b.full(0, {}, x.dtype())}), x.dtype()));
  else if (std::isinf(p))
    y = over(p > 0 ? "max" : "min", x);
  else
    y = c.b.power(over("sum", c.b.power(x, p)), 1 / p);
  c.give(c.b.cast(y, t));
}
void norm(Call& c) { norm_of(c, "p"); }
void vector_norm(Call& c) { norm_of(c, "ord"); }

// ---- positions: i64 here, i32 in Weft
ir::Value position(Call& c, const char* op, ir::Value x, int64_t axis, bool keep) {
  return c.b.cast(c.b.one(op, {x}, {{"axis", axis}, {"keep", int64_t{keep}}}), DType::i64);
}
// A tensor without axes is a row of one element.
ir::Value row(ir::Builder& b, ir::Value x) { return x.rank() == 0 ? b.reshape(x, {1}) : x; }

void position_of(Call& c) {
  auto x = c.tensor("self");
  if (x.dtype() == DType::boolean) x = c.b.cast(x, DType::i32);
  const bool whole = !c.has("dim");
  const Shape shape = c.declared().shape;
  const int64_t axis = whole ? 0 : c.axis("dim", x.rank());
  x = whole ? c.b.reshape(x, {element_count(std::span<const Dim>(x.shape()))}) : row(c.b, x);
  c.give(c.b.reshape(position(c, c.op.how, x, axis, keeps(c)), shape));
}
// Values and their positions, one of which may be read by nothing, and is then not described.
void give_both(Call& c, ir::Value values, ir::Value positions) {
  const Shape& shape = c.declared(c.reads(0) ? 0 : 1).shape;
  c.give({c.b.reshape(values, shape), c.b.cast(c.b.reshape(positions, shape), DType::i64)});
}
void extreme_and_position(Call& c) {
  const auto given = c.tensor("self"), x = row(c.b, given);
  const int64_t axis = c.axis("dim", x.rank());
  const bool largest = std::string_view(c.op.how).starts_with("max");
  const auto value = fold(c, largest ? "max" : "min", x, {axis}, keeps(c));
  const auto at = position(c, largest ? "argmax" : "argmin", x, axis, keeps(c));
  give_both(c, value, at);
}
void sorted(Call& c) {
  const auto x = row(c.b, c.tensor("self"));
  const auto y = c.b.call("sort", std::array{x},
                          {{"axis", c.axis("dim", x.rank())}, {"descending", int64_t{c.flag("descending")}}});
  give_both(c, y[0], y[1]);
}
void argsort(Call& c) {
  const auto x = row(c.b, c.tensor("self"));
  const auto y = c.b.call("sort", std::array{x},
                          {{"axis", c.axis("dim", x.rank())}, {"descending", int64_t{c.flag("descending")}}});
  c.give(c.b.cast(c.b.reshape(y[1], c.declared().shape), DType::i64));
}
void topk(Call& c) {
  const auto x = row(c.b, c.tensor("self"));
  const auto y = c.b.call(
      "topk", std::array{x},
      {{"k", c.integer("k")}, {"axis", c.axis("dim", x.rank())}, {"largest", int64_t{c.flag("largest")}}});
  give_both(c, y[0], y[1]);
}

// ---- along an axis
void cumsum(Call& c) {
  const auto given = summand(c), x = row(c.b, given);
  const auto y = c.b.one("cumsum", {x}, {{"axis", c.axis("dim", x.rank())}});
  c.give(c.b.reshape(y, given.shape()));
}
ir::Value part(ir::Builder& b, ir::Value x, int64_t axis, Dim from, Dim to) {
  return b.one("slice", {x}, {{"axis", axis}, {"start", Shape{from}}, {"stop", Shape{to}}});
}
void diff(Call& c) {
  const auto x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank()), n = c.integer("n");
  if (x.rank() == 0 || n < 0 || n > 64)
    return c.refuse(invalid("{} differences of {}", n, weft::text(x.type())));
  if (c.has("prepend") != c.has("append") && x.rank() > 0 && n > 0) {
    // One of the two is there, and the file does not say which: in all that was seen it is `prepend`.
    c.note("its operand is taken to be `prepend`, not `append`");
  }
  auto y = x;
  if (c.has("prepend")) y = c.b.one("concat", {c.tensor("prepend"), y}, {{"axis", axis}});
  if (c.has("append")) y = c.b.one("concat", {y, c.tensor("append")}, {{"axis", axis}});
  for (int64_t i = 0; i < n; ++i) {
    const Dim size = y.shape()[static_cast<size_t>(axis)];
    const auto later = part(c.b, y, axis, 1, size),
               earlier = part(c.b, y, axis, 0, max(Dim(0), size - Dim(1)));
    y = y.dtype() == DType::boolean ? c.b.bit_xor(later, earlier) : c.b.sub(later, earlier);
  }
  c.give(y);
}

// ---- rows that sum to one
void softmax_of(Call& c, const char* op, DType otherwise) {
  const auto given = c.tensor("self");
  const auto x =
      row(c.b, c.b.cast(given, c.node.attrs.contains("dtype") ? c.dtype("dtype", otherwise) : otherwise));
  const auto y = c.b.one(op, {x}, {{"axis", c.axis("dim", x.rank())}});
  c.give(c.b.reshape(y, given.shape()));
}
void softmax(Call& c) { softmax_of(c, c.op.how, to_float(c.tensor("self").dtype())); }
// The decomposed form: half_to_float makes f32 of a half.
void half_softmax(Call& c) {
  const DType t = c.tensor("self").dtype();
  softmax_of(c, c.op.how, c.flag("half_to_float") ? DType::f32 : t);
}
// A row of nothing but -inf gives zeros.
void safe_softmax(Call& c) {
  softmax_of(c, "softmax", to_float(c.tensor("self").dtype()));
  const auto x = c.b.cast(c.tensor("self"), c.results[0].dtype());
  if (x.rank() == 0) return;
  const auto nothing = c.b.equal(c.b.max(x, c.axis("dim", x.rank())), -INFINITY);
  c.give(c.b.where(nothing, 0, c.results[0]));
}

constexpr AtenOp reduce_ops[] = {
    {"_log_softmax.default", "self, dim=, half_to_float=false", "log_softmax", half_softmax},
    {"_safe_softmax.default", "self, dim=, dtype=None", "softmax, where", safe_softmax},
    {"_softmax.default", "self, dim=, half_to_float=false", "softmax", half_softmax},
    {"all.default", "self", "logical_not, sum", all},
    {"all.dim", "self, dim=, keepdim=false", "logical_not, sum", all},
    {"all.dims", "self, dim=None, keepdim=false", "logical_not, sum", all},
    {"amax.default", "self, dim=[], keepdim=false", "max", extreme},
    {"amin.default", "self, dim=[], keepdim=false", "min", extreme},
    {"any.default", "self", "sum, less", any},
    {"any.dim", "self, dim=, keepdim=false", "sum, less", any},
    {"any.dims", "self, dim=None, keepdim=false", "sum, less", any},
    {"argmax.default", "self, dim=None, keepdim=false", "argmax", position_of},
    {"argmin.default", "self, dim=None, keepdim=false", "argmin", position_of},
    {"argsort.default", "self, dim=-1, descending=false", "sort", argsort},
    {"count_nonzero.default", "self, dim=None", "sum", count_nonzero},
    {"count_nonzero.dim_IntList", "self, dim=", "sum", count_nonzero},
    {"cumsum.default", "self, dim=, dtype=None", "cumsum", cumsum},
    {"diff.default", "self, n=1, dim=-1, prepend?, append?", "slice, sub", diff},
    {"linalg_vector_norm.default", "self, ord=2, dim=None, keepdim=false, dtype=None", "sum, sqrt, power",
     vector_norm},
    {"log_softmax.int", "self, dim=, dtype=None", "log_softmax", softmax},
    {"logsumexp.default", "self, dim=, keepdim=false", "logsumexp", logsumexp},
    {"max.default", "self", "max", extreme},
    {"max.dim", "self, dim=, keepdim=false", "max, argmax", extreme_and_position},
    {"mean.default", "self, dtype=None", "mean", mean},
    {"mean.dim", "self, dim=None, keepdim=false, dtype=None", "mean", mean},
    {"min.default", "self", "min", extreme},
    {"min.dim", "self, dim=, keepdim=false", "min, argmin", extreme_and_position},
    {"norm.Scalar", "self, p=2, dtype=None", "sum, sqrt, power", norm},
    {"norm.ScalarOpt_dim", "self, p=None, dim=, keepdim=false, dtype=None", "sum, sqrt, power", norm},
    {"prod.default", "self, dtype=None", "prod", prod},
    {"prod.dim_int", "self, dim=, keepdim=false, dtype=None", "prod", prod},
    {"softmax.int", "self, dim=, dtype=None", "softmax", softmax},
    {"sort.default", "self, dim=-1, descending=false", "sort", sorted},
    {"sort.stable", "self, stable=None, dim=-1, descending=false", "sort", sorted},
    {"std.correction", "self, dim=None, correction=None, keepdim=false", "variance, sqrt", std_deviation},
    {"std.default", "self, unbiased=true", "variance, sqrt", std_deviation},
    {"std.dim", "self, dim=None, unbiased=true, keepdim=false", "variance, sqrt", std_deviation},
    {"std_mean.correction", "self, dim=None, correction=None, keepdim=false", "variance, sqrt, mean",
     std_mean},
    {"std_mean.dim", "self, dim=None, unbiased=true, keepdim=false", "variance, sqrt, mean", std_mean},
    {"sum.default", "self, dtype=None", "sum", sum},
    {"sum.dim_IntList", "self, dim=None, keepdim=false, dtype=None", "sum", sum},
    {"topk.default", "self, k=, dim=-1, largest=true, sorted=true", "topk", topk},
    {"var.correction", "self, dim=None, correction=None, keepdim=false", "variance", var},
    {"var.default", "self, unbiased=true", "variance", var},
    {"var.dim", "self, dim=None, unbiased=true, keepdim=false", "variance", var},
    {"var_mean.dim", "self, dim=None, unbiased=true, keepdim=false", "variance, mean", var_mean},
    {"var_mean.correction", "self, dim=None, correction=None, keepdim=false", "variance, mean", var_mean},
};

}  // namespace

extern constinit const Family reduce_family = {reduce_ops};

}  // namespace weft::importer

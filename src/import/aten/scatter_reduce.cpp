#include "import/places.h"

// Numbers that go to one place are folded there: sums, means, products and extremes.
namespace weft::importer {
namespace {

// Products are made over all pairs of a place and a number, which must not be too many.
constexpr int64_t kMostPairs = int64_t{1} << 24;

ir::Value ones(ir::Builder& b, ir::Value like) { return b.full(1, like.shape(), like.dtype()); }

// What self has, or `neutral` at the places that are written.
ir::Value beginning(Call& c, ir::Value x, ir::Value index, bool include_self, double neutral) {
  if (include_self) return x;
  return scattered(c, "scatter", x, index, c.b.full(neutral, index.shape(), x.dtype()));
}

ir::Value summed(Call& c, ir::Value x, ir::Value index, ir::Value source, bool include_self) {
  return scattered(c, "scatter_add", beginning(c, x, index, include_self, 0), index, source);
}
// What self had at a place counts as one of its numbers, or not at all. Integers are divided downwards.
ir::Value averaged(Call& c, ir::Value x, ir::Value index, ir::Value source, bool include_self) {
  const auto sum = summed(c, x, index, source, include_self);
  const auto from = include_self ? ones(c.b, x) : c.b.zeros_like(x);
  const auto many = c.b.maximum(scattered(c, "scatter_add", from, index, ones(c.b, source)), 1);
  return c.b.div(is_float(x.dtype()) ? sum : c.b.sub(sum, c.b.mod(sum, many)), many);
}

// The numbers in ascending order, of which the last one that goes to a place stays there: the largest, or
// NaN.
ir::Value largest(Call& c, ir::Value x, ir::Value index, ir::Value source, bool include_self) {
  const int64_t axis = c.axis("dim", x.rank()), last = x.rank() - 1;
  const auto sorted = c.b.call("sort", std::array{to_end(c.b, source, axis)}, {{"axis", last}});
  const auto places = c.b.gather(to_end(c.b, index, axis), sorted[1], last, last);
  const auto y = scattered(c, "scatter", x, from_end(c.b, places, axis), from_end(c.b, sorted[0], axis));
  return include_self ? c.b.maximum(x, y) : y;
}
// In the opposite order of numbers: -x for floats, and ~x for integers, of which the least has no negative.
ir::Value opposite(ir::Builder& b, ir::Value x) {
  if (is_float(x.dtype())) return b.neg(x);
  return b.sub(-1, x);
}
ir::Value smallest(Call& c, ir::Value x, ir::Value index, ir::Value source, bool include_self) {
  const auto y = largest(c, opposite(c.b, x), index, opposite(c.b, source), include_self);
  return opposite(c.b, y);
}

// For each place the product of the numbers that go there, and of 1 for each other one.
ir::Value multiplied(Call& c, ir::Value x, ir::Value index, ir::Value source, bool include_self) {
  const int64_t axis = c.axis("dim", x.rank()), last = x.rank() - 1;
  const auto begin = beginning(c, x, index, include_self, 1);
  if (!c.status().ok()) return begin;
  const auto here = to_end(c.b, begin, axis), places = to_end(c.b, index, axis),
             given = to_end(c.b, source, axis);
  const Dim pairs = element_count(std::span<const Dim>(here.shape())) * places.shape().back();
  if (pairs.max() > kMostPairs) {
    c.refuse(fail(Code::unsupported, "a product of {} pairs of a place and a number; at most {} are imported",
                  pairs.text(), kMostPairs));
    return begin;
  }
  Shape rows = places.shape(), columns = here.shape();
  rows.insert(rows.size() - 1, Dim(1)), columns.push_back(1);
  const Dim size = here.shape().back();
  const auto hits =
      c.b.equal(c.b.reshape(c.b.cast(places, DType::i64), rows), c.b.reshape(count(c.b, size), {size, 1}));
  const auto factors = c.b.where(hits, c.b.reshape(given, rows), 1);
  const auto product = c.b.one("prod", {factors}, {{"axes", Shape{last + 1}}});
  return from_end(c.b, c.b.mul(here, product), axis);
}

void reduce(Call& c, const std::string& how, bool include_self) {
  const auto x = c.tensor("self"), index = c.tensor("index");
  if (x.rank() == 0 || index.rank() == 0) return c.refuse(fail(Code::unsupported, "tensors without axes"));
  const auto source = source_of(c, x, index);
  if (x.dtype() == DType::boolean) return c.refuse(fail(Code::unsupported, "numbers of bool"));
  if (how == "sum" || how == "add") return c.give(summed(c, x, index, source, include_self));
  if (how == "mean") return c.give(averaged(c, x, index, source, include_self));
  if (how == "prod" || how == "multiply") return c.give(multiplied(c, x, index, source, include_self));
  if (how == "amax" || how == "amin") {
    const DType t = is_compute(x.dtype()) ? x.dtype() : DType::i32;  // what can be sorted
    const auto extreme = how == "amax" ? largest : smallest;
    return c.give(c.b.cast(extreme(c, c.b.cast(x, t), index, c.b.cast(source, t), include_self), x.dtype()));
  }
  c.refuse(invalid("argument 'reduce': there is no '{}'", how));
}
void scatter_reduce(Call& c) { reduce(c, c.text("reduce"), c.flag("include_self")); }
void scatter_folded(Call& c) { reduce(c, c.text("reduce"), true); }

constexpr AtenOp scatter_reduce_ops[] = {
    {"scatter.reduce", "self, dim=, index, src, reduce=", "scatter_add, prod", scatter_folded},
    {"scatter.value_reduce", "self, dim=, index, value=, reduce=", "scatter_add, prod", scatter_folded},
    {"scatter_reduce.two", "self, dim=, index, src, reduce=, include_self=true",
     "scatter_add, scatter, sort, prod", scatter_reduce},
};

}  // namespace

extern constinit const Family scatter_reduce_family = {scatter_reduce_ops};

}  // namespace weft::importer

#include <algorithm>
#include <cmath>

#include "import/call.h"

// Tensors out of nothing but numbers. Shape and dtype are those that the file says of the result.
namespace weft::importer {
namespace {

void filled(Call& c, const Number& value) {
  const auto& type = c.declared();
  c.give(c.b.broadcast(c.constant(value, type.dtype), type.shape));
}
void zeros(Call& c) { filled(c, {}); }  // and `empty`, whose elements may be anything
void ones(Call& c) { filled(c, {.value = 1}); }
void full(Call& c) { filled(c, c.number("fill_value")); }
void scalar_tensor(Call& c) { filled(c, c.number("s")); }

// A number as PyTorch counts with it where the result is of integers.
Number without_fraction(const Number& n) {
  if (n.kind != Number::Kind::real) return n;
  const double whole = std::trunc(std::clamp(n.value, -0x1p62, 0x1p62));
  return {.kind = Number::Kind::integer, .value = whole, .whole = static_cast<int64_t>(whole)};
}
// start + step i. Whole numbers are made in i64, others in f64, as PyTorch does.
void arange(Call& c) {
  const auto& type = c.declared();
  if (type.rank() != 1) return c.refuse(invalid("its result must have one axis"));
  Number start = c.number("start"), step = c.number("step");
  if (!is_float(type.dtype)) start = without_fraction(start), step = without_fraction(step);
  const bool whole = start.kind != Number::Kind::real && step.kind != Number::Kind::real;
  const DType t = whole ? DType::i64 : DType::f64;
  if (whole && start.whole == 0 && step.whole == 1 && is_compute(type.dtype) && type.dtype != DType::boolean)
    return c.give(
        c.b.one("iota", {}, {{"size", Shape{type.shape[0]}}, {"dtype", std::string(name(type.dtype))}}));
  auto y = c.b.one("iota", {}, {{"size", Shape{type.shape[0]}}, {"dtype", std::string(name(t))}});
  if (step.value != 1) y = c.b.mul(y, c.constant(step, t));
  if (start.value != 0) y = c.b.add(y, c.constant(start, t));
  c.give(c.b.cast(y, type.dtype));
}

// From both ends, as PyTorch does, so that the last element is `end` itself.
void linspace(Call& c) {
  const auto& type = c.declared();
  const int64_t steps = c.integer("steps");
  if (type.rank() != 1 || !is_float(type.dtype))
    return c.refuse(invalid("its result must be floats on one axis"));
  const double start = c.real("start"), end = c.real("end");
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  const auto i = c.b.one("iota", {}, {{"size", Shape{type.shape[0]}}, {"dtype", std::string("f64")}});
  const auto from_start = c.b.add(c.b.mul(i, step), start);
  const auto from_end = c.b.sub(end, c.b.mul(c.b.sub(static_cast<double>(steps - 1), i), step));
  c.give(c.b.cast(
      c.b.where(c.b.less(i, static_cast<double>(std::max<int64_t>(steps / 2, 1))), from_start, from_end),
      type.dtype));
}

void eye(Call& c) {
  const auto& type = c.declared();
  if (type.rank() != 2) return c.refuse(invalid("its result must have two axes"));
  const auto count = [&](Dim n) { return c.b.one("iota", {}, {{"size", Shape{n}}}); };
  const auto rows = c.b.reshape(count(type.shape[0]), {type.shape[0], 1});
  c.give(c.b.cast(c.b.equal(rows, count(type.shape[1])), type.dtype));
}

// 1 where the number of a class is that of the place on the new last axis.
void one_hot(Call& c) {
  const auto x = c.tensor("self");
  const auto& type = c.declared();
  if (type.rank() != x.rank() + 1) return c.refuse(invalid("its result must have one axis more"));
  Shape apart = x.shape();
  apart.push_back(1);
  const auto classes =
      c.b.one("iota", {}, {{"size", Shape{type.shape.back()}}, {"dtype", std::string(name(x.dtype()))}});
  c.give(c.b.cast(c.b.equal(c.b.reshape(x, apart), classes), type.dtype));
}

constexpr AtenOp create_ops[] = {
    {"arange.default", "end=None, start=0, step=1", "iota", arange},
    {"arange.start", "start=, end=None, step=1", "iota, add", arange},
    {"arange.start_step", "start=, end=None, step=1", "iota, mul, add", arange},
    {"empty.memory_format", "size=None", "full", zeros},
    {"empty_like.default", "self", "full", zeros},
    {"empty_strided.default", "size=None", "full", zeros},
    {"eye.default", "n=None", "iota, equal", eye},
    {"eye.m", "n=None", "iota, equal", eye},
    {"full.default", "size=None, fill_value=", "full", full},
    {"full_like.default", "self, fill_value=", "full", full},
    {"linspace.default", "start=, end=, steps=", "iota, mul, add", linspace},
    {"new_empty.default", "self, size=None", "full", zeros},
    {"new_full.default", "self, size=None, fill_value=", "full", full},
    {"new_ones.default", "self, size=None", "full", ones},
    {"new_zeros.default", "self, size=None", "full", zeros},
    {"one_hot.default", "self, num_classes=None", "iota, equal", one_hot},
    {"ones.default", "size=None", "full", ones},
    {"ones_like.default", "self", "full", ones},
    {"scalar_tensor.default", "s=", "full", scalar_tensor},
    {"zeros.default", "size=None", "full", zeros},
    {"zeros_like.default", "self", "full", zeros},
};

}  // namespace

extern constinit const Family create_family = {create_ops};

}  // namespace weft::importer

#include <cmath>

#include "import/call.h"

// Distances between rows.
namespace weft::importer {
namespace {

// The norm of the last axis.
ir::Value length(Call& c, ir::Value x, double p) {
  const auto fold = [&](const char* op, ir::Value v) {
    return c.b.one(op, {v}, {{"axes", Shape{v.rank() - 1}}});
  };
  const auto far = c.b.abs(x);
  if (p == 0) return fold("sum", c.b.cast(c.b.one("not_equal", {x, c.b.zeros_like(x)}), x.dtype()));
  if (p == 1) return fold("sum", far);
  if (p == 2) return c.b.sqrt(fold("sum", c.b.mul(x, x)));
  if (std::isinf(p)) return fold("max", far);
  return c.b.power(fold("sum", c.b.power(far, p)), 1 / p);
}
bool good(Call& c, ir::Value x, double p) {
  if (is_float(x.dtype()) && x.rank() >= 2 && p >= 0) return true;
  c.refuse(invalid("norm {} of differences of rows of {}", p, weft::text(x.type())));
  return false;
}
// Of each row of x1 to each row of x2.
void cdist(Call& c) {
  const auto x = c.tensor("x1"), y = c.tensor("x2");
  const double p = c.real("p");
  if (!good(c, x, p) || !good(c, y, p)) return;
  Shape rows = x.shape(), columns = y.shape();
  rows.insert(rows.size() - 1, Dim(1));
  columns.insert(columns.size() - 2, Dim(1));
  c.give(length(c, c.b.sub(c.b.reshape(x, rows), c.b.reshape(y, columns)), p));
}
// Of each row to each later one, one list.
void pdist(Call& c) {
  const auto x = c.tensor("self");
  const double p = c.real("p");
  if (!good(c, x, p)) return;
  const Dim n = x.shape()[0];
  if (x.rank() != 2 || !n.is_const() || n.value() < 2)
    return c.refuse(
        fail(Code::unsupported, "rows of {}: wants two axes and at least two rows", weft::text(x.type())));
  const auto from = [&](int64_t first, Dim end) {
    return c.b.one("slice", {x}, {{"axis", int64_t{0}}, {"start", Shape{first}}, {"stop", Shape{end}}});
  };
  ir::ValueList lists;
  for (int64_t i = 0; i + 1 < n.value(); ++i)
    lists.push_back(length(c, c.b.sub(from(i, i + 1), from(i + 1, n)), p));
  c.give(c.concat(std::move(lists), 0));
}

constexpr AtenOp distance_ops[] = {
    {"_cdist_forward.default", "x1, x2, p=, compute_mode=None", "sub, power, sum", cdist},
    {"_pdist_forward.default", "self, p=2", "slice, sub, power, sum", pdist},
    {"cdist.default", "x1, x2, p=2, compute_mode=None", "sub, power, sum", cdist},
    {"pdist.default", "self, p=2", "slice, sub, power, sum", pdist},
};

}  // namespace

extern constinit const Family distance_family = {distance_ops};

}  // namespace weft::importer

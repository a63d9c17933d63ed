#include <algorithm>

#include "import/places.h"

// Elements by their place in memory, and those that a mask names.
namespace weft::importer {
namespace {

// The places in self's memory that the result shows.
ir::Value places_of(Call& c, ir::Value x) {
  const IntList size = c.integers("size"), stride = c.integers("stride");
  const int64_t offset = c.has("storage_offset") ? c.integer("storage_offset") : 0;
  const Dim elements = element_count(std::span<const Dim>(x.shape()));
  if (size.size() != stride.size() || !elements.is_const())
    c.refuse(invalid("{} sizes and {} strides of {}", size.size(), stride.size(), weft::text(x.type())));
  if (!c.status().ok()) return number(c.b, 0);
  const auto whole = [&](int64_t n) { return number(c.b, n); };
  auto at = c.b.broadcast(whole(offset), Shape(size.begin(), size.end()));
  int64_t last = offset;
  for (size_t i = 0; i < size.size(); ++i) {
    Shape along(size.size(), Dim(1));
    along[i] = size[i];
    last += std::max<int64_t>(size[i] - 1, 0) * stride[i];
    at = c.b.add(at, c.b.reshape(c.b.mul(count(c.b, size[i]), whole(stride[i])), along));
  }
  if (offset < 0 || std::ranges::any_of(stride, [](int64_t s) { return s < 0; }) || last >= elements.value())
    c.refuse(invalid("it reaches element {} of {}", last, weft::text(x.type())));
  return at;
}
ir::Value flat(Call& c, ir::Value x) {
  return c.b.reshape(x, {element_count(std::span<const Dim>(x.shape()))});
}

void as_strided(Call& c) {
  const auto x = c.tensor("self");
  if (!c.row_major)
    c.refuse(fail(Code::unsupported,
                  "how self lies in memory is not in the file; make it by contiguous(), or by "
                  "clone(memory_format=torch.contiguous_format)"));
  const auto at = places_of(c, x);
  if (c.status().ok()) c.give(gather(c.b, flat(c, x), at, 0));
}
ir::Value write_strided(Call& c, ir::Value base, ir::Value part) {
  const auto at = places_of(c, base);
  if (!c.status().ok()) return base;
  const auto y = c.b.one("scatter", {flat(c, base), flat(c, at), flat(c, part)}, {{"axis", int64_t{0}}});
  return c.b.reshape(y, base.shape());
}

// The places of what is not zero, in order; behind the last of them `fill_value`.
void nonzero_static(Call& c) {
  const auto x = c.tensor("self");
  const int64_t size = c.integer("size");
  const Dim n = element_count(std::span<const Dim>(x.shape()));
  if (size < 0 || x.rank() == 0) return c.refuse(invalid("{} places in {}", size, weft::text(x.type())));
  const auto hit = flat(c, c.b.cast(x, DType::boolean));
  const auto rank = c.b.sub(c.b.one("cumsum", {c.b.cast(hit, DType::i64)}, {{"axis", int64_t{0}}}), 1);
  // What is zero, or behind the last, goes to a place of its own.
  const auto room = number(c.b, size), to = c.b.where(hit, c.b.minimum(rank, room), room);
  const auto found =
      c.b.one("scatter", {c.b.full(-1, {size + 1}, DType::i64), to, count(c.b, n)}, {{"axis", int64_t{0}}});
  const auto at =
      c.b.one("slice", {found}, {{"axis", int64_t{0}}, {"start", Shape{0}}, {"stop", Shape{size}}});
  ir::ValueList columns;
  auto rest = at;
  for (size_t i = x.shape().size(); i-- > 0;) {
    const auto along = number(c.b, x.shape()[i]);
    const auto here = c.b.mod(rest, along);
    columns.insert(columns.begin(), c.b.reshape(here, {size, 1}));
    rest = c.b.div(c.b.sub(rest, here), along);
  }
  const auto places = c.concat(std::move(columns), 1);
  const auto none = c.b.reshape(c.b.less(at, 0), {size, 1});
  c.give(c.b.where(none, static_cast<double>(c.integer("fill_value")), places));
}

constexpr AtenOp strided_ops[] = {
    {"as_strided.default", "self, size=, stride=, storage_offset=None", "gather", as_strided, write_strided},
    {"nonzero_static.default", "self, size=, fill_value=-1", "cumsum, scatter", nonzero_static},
};

}  // namespace

extern constinit const Family strided_family = {strided_ops};

}  // namespace weft::importer

#include "import/places.h"

// Sums and means of the rows of a table: each bag has those of its part of a list.
namespace weft::importer {
namespace {

// The number of the bag that each place of the list is in: how many bags begin there or before, less one.
ir::Value bag_of(Call& c, Dim places, Dim bags, ir::Value offsets) {
  const auto begin =
      c.b.one("slice", {c.b.cast(offsets, DType::i64)}, {{"axis", int64_t{0}}, {"stop", Shape{bags}}});
  const auto at = c.b.reshape(count(c.b, places), {places, 1});
  const auto begun = c.b.cast(c.b.one("greater_equal", {at, begin}), DType::i64);
  return c.b.sub(c.b.reshape(c.b.sum(begun, 1), {places}), 1);
}

void embedding_bag(Call& c) {
  const auto table = c.tensor("weight"), ids = c.tensor("indices"), offsets = c.tensor("offsets");
  const auto weights = c.maybe("per_sample_weights");
  const int64_t mode = c.integer("mode");
  if (mode != 0 && mode != 1)
    return c.refuse(fail(Code::unsupported, "mode {}: sums (0) and means (1) are imported", mode));
  if (ids.rank() != 1 || offsets.rank() != 1 || table.rank() != 2 || c.declared().rank() != 2)
    return c.refuse(invalid("bags of {} at {}", weft::text(ids.type()), weft::text(offsets.type())));
  const Dim places = ids.shape()[0], bags = c.declared().shape[0];
  const auto bag = bag_of(c, places, bags, offsets);
  auto rows = c.b.one("embedding", {table, ids});
  if (weights) rows = c.b.mul(rows, c.b.reshape(c.b.cast(weights, rows.dtype()), {places, 1}));
  auto counted = c.b.full(1, {places, 1}, rows.dtype());
  if (const int64_t padding = c.has("padding_idx") ? c.integer("padding_idx") : -1; padding >= 0) {
    const auto left_out = c.b.reshape(c.b.equal(ids, static_cast<double>(padding)), {places, 1});
    rows = c.b.where(left_out, 0, rows), counted = c.b.where(left_out, 0, counted);
  }
  const auto summed = [&](ir::Value each) {
    return c.b.one("scatter_add", {c.b.full(0, {bags, each.shape()[1]}, each.dtype()), bag, each},
                   {{"axis", int64_t{0}}});
  };
  const auto sum = summed(rows), y = mode == 0 ? sum : c.b.div(sum, c.b.maximum(summed(counted), 1));
  c.give({y, ir::Value(), ir::Value(), ir::Value()});
}

constexpr const char* kArgs =
    "weight, indices, offsets, scale_grad_by_freq=false, mode=0, sparse=false, per_sample_weights?, "
    "include_last_offset=false, padding_idx=-1";
constexpr AtenOp bags_ops[] = {
    {"_embedding_bag.default", kArgs, "embedding, scatter_add", embedding_bag},
    {"_embedding_bag_forward_only.default", kArgs, "embedding, scatter_add", embedding_bag},
    {"embedding_bag.default", kArgs, "embedding, scatter_add", embedding_bag},
    {"embedding_bag.padding_idx", kArgs, "embedding, scatter_add", embedding_bag},
};

}  // namespace

extern constinit const Family bags_family = {bags_ops};

}  // namespace weft::importer

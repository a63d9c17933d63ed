#include "import/call.h"

// Ops that give their operand, a copy of it or the same elements in another dtype.
namespace weft::importer {
namespace {

// The result's dtype says all: devices, layouts and memory formats are none of a program's.
void same(Call& c) { c.give(c.b.cast(c.tensor("self"), c.declared().dtype)); }
ir::Value write_same(Call& c, ir::Value, ir::Value part) {
  (void)c;
  return part;
}

void type_as(Call& c) { c.give(c.b.cast(c.tensor("self"), c.tensor("other").dtype())); }

void dropout(Call& c) {
  if (c.flag("train") && c.real("p") > 0)
    return c.refuse(
        fail(Code::unsupported, "it drops elements at random, as in training; export after model.eval()"));
  c.give(c.tensor("input"));
}
// Its second result says which elements are kept.
void native_dropout(Call& c) {
  const auto x = c.tensor("input");
  if (c.has("train") && c.flag("train") && c.real("p") > 0)
    return c.refuse(
        fail(Code::unsupported, "it drops elements at random, as in training; export after model.eval()"));
  c.give({x, c.b.full(1, x.shape(), DType::boolean)});
}

// self.copy_(src): the elements of `src`, in the shape and dtype of `self`.
void copy(Call& c) {
  const auto self = c.tensor("self"), source = c.tensor("src");
  c.give(c.b.broadcast(c.b.cast(source, self.dtype()), self.shape()));
}
void fill(Call& c) {
  const auto self = c.tensor("self");
  c.give(c.b.broadcast(c.as(c.required("value"), self.dtype()), self.shape()));
}
void zero(Call& c) { c.give(c.b.zeros_like(c.tensor("self"))); }

constexpr AtenOp copy_ops[] = {
    {"_conj.default", "self", "", same, write_same},
    {"_to_copy.default", "self", "cast", same},
    {"alias.default", "self", "", same, write_same},
    {"clone.default", "self", "", same},
    {"contiguous.default", "self", "", same, write_same, true},
    {"copy.default", "self, src", "cast, broadcast", copy},
    {"detach.default", "self", "", same, write_same},
    {"dropout.default", "input, p=, train=", "", dropout, write_same},
    {"alpha_dropout.default", "input, p=, train=", "", dropout, write_same},
    {"feature_dropout.default", "input, p=, train=", "", dropout, write_same},
    {"fill.Scalar", "self, value", "full", fill},
    {"fill.Tensor", "self, value", "broadcast", fill},
    {"lift_fresh.default", "self", "", same, write_same},
    {"lift_fresh_copy.default", "self", "", same},
    {"native_dropout.default", "input, p=, train=None", "", native_dropout},
    {"positive.default", "self", "", same, write_same},
    {"to.dtype", "self", "cast", same, write_same},
    {"to.dtype_layout", "self", "cast", same, write_same},
    {"to.device", "self", "cast", same, write_same},
    {"to.other", "self, other", "cast", same, write_same},
    {"type_as.default", "self, other", "cast", type_as, write_same},
    {"zero.default", "self", "full", zero},
};

}  // namespace

extern constinit const Family copy_family = {copy_ops};

}  // namespace weft::importer

#include "ops/shared/rules.h"

namespace weft::ops {

static Result<TensorType> infer(ir::Types in, const ir::IndexAttrs& a) {
  WEFT_TRY(const Shape shape, ir::gathered_shape("scatter", in[0], in[1], a));
  if (in[2].dtype != in[0].dtype || !(in[2].shape == shape))
    return invalid("scatter: updates must be {}, got {}", text(TensorType{in[0].dtype, shape}), text(in[2]));
  return in[0];
}

// Which updates remain: their numbers are scattered, too, and each checks whether its own is still there.
static ir::Value wins(ir::Builder& b, ir::Value index, Dim axis_size, int64_t batch) {
  const auto at = static_cast<size_t>(batch);
  Shape slots(index.shape().begin(), index.shape().begin() + at);
  const Shape picks(index.shape().begin() + at, index.shape().end());
  slots.push_back(axis_size);
  const auto numbers = b.one("iota", {}, {{"size", Shape{element_count(picks)}}});
  const auto mine = b.broadcast(b.reshape(numbers, picks), index.shape());
  const auto last =
      b.one("scatter", {b.full(-1, slots, DType::i32), index, mine}, {{"axis", batch}, {"batch", batch}});
  return b.equal(b.gather(last, index, batch, batch), mine);
}

// x gets the gradient where nothing was written; an update gets it unless a later one overwrote it.
static ir::Grads grad(ir::Builder& b, const ir::GradContext& ctx, const ir::IndexAttrs& a) {
  const auto index = ctx.in(1), dy = ctx.dout(0);
  const auto &x = ctx.in_type(0), &updates = ctx.in_type(2);
  ir::Grads g(3);
  if (ctx.wants(0))
    g[0] = b.one("scatter", {dy, index, b.full(0, updates.shape, updates.dtype)},
                 {{"axis", a.axis}, {"batch", a.batch}});
  if (!ctx.wants(2)) return g;
  const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + x.rank() : a.axis);
  const auto batch = static_cast<size_t>(a.batch);
  Shape shape(updates.shape.size(), Dim(1));  // [batch..., 1..., picks..., 1...]
  for (size_t d = 0; d < index.shape().size(); ++d)
    shape[d < batch ? d : d - batch + axis] = index.shape()[d];
  const auto won = b.reshape(wins(b, index, x.shape[axis], a.batch), shape);
  g[2] = b.where(won, b.gather(dy, index, a.axis, a.batch), 0);
  return g;
}

static constexpr ir::Op<ir::IndexAttrs> spec = {
    .name = "scatter",
    .doc =
        "Writes slices of `updates` over those of `x` along `axis`, each at its index.\n\n"
        "Shape    same as `x`; updates as gather(x, index) would be.\n"
        "DType    x and updates any one dtype, index i32 or i64.\n"
        "Numerics of equal indices the last one wins, on every backend.\n"
        "Grad     needs the index; what was overwritten gets zero.\n"
        "Errors   invalid_argument for shapes and dtypes; a device error for an index outside the axis;\n"
        "         compiled text can't report one and leaves that update out.",
    .inputs = {"x", "index", "updates"},
    .traits = ir::Trait::movement,
    .saves = ir::saves::input(1),
    .infer = infer,
    .grad = grad,
};
extern constinit const ir::OpDef scatter = ir::define<spec>();

}  // namespace weft::ops

#include <cmath>

#include "ops/shared/rules.h"

namespace weft::ops {

struct RopeTablesAttrs {
  int64_t dim = 64;
  double base = 10000;
  DType dtype = DType::f32;
  static constexpr auto fields = ir::fields("dim", &RopeTablesAttrs::dim, "base", &RopeTablesAttrs::base,
                                            "dtype", &RopeTablesAttrs::dtype);
};

static Result<std::vector<TensorType>> infer(ir::Types in, const RopeTablesAttrs& a) {
  const auto& p = in[0];
  if (p.dtype != DType::i32 && p.dtype != DType::i64)
    return invalid("rope_tables: positions must be i32 or i64, got {}", text(p));
  if (a.dim < 2 || a.dim % 2 != 0 || !(a.base > 0) || !is_float(a.dtype) || !is_compute(a.dtype))
    return invalid("rope_tables: wants an even dim, base > 0 and a float dtype, got {}, {} and {}", a.dim,
                   a.base, name(a.dtype));
  TensorType table{a.dtype, p.shape};
  table.shape.push_back(a.dim / 2);
  return std::vector<TensorType>{table, table};
}

// angle = position * base^(-2 i / dim)
static ir::ValueList decompose(ir::Builder& b, ir::Values in, const RopeTablesAttrs& a) {
  const DType t = is_half(a.dtype) ? DType::f32 : a.dtype;
  const auto i = b.one("iota", {}, {{"size", Shape{a.dim / 2}}, {"dtype", std::string(name(t))}});
  const auto frequency = b.exp(b.mul(i, -2 * std::log(a.base) / static_cast<double>(a.dim)));
  Shape each = in[0].shape();
  each.push_back(1);
  const auto angle = b.mul(b.reshape(b.cast(in[0], t), each), frequency);
  return {b.cast(b.one("cos", {angle}), a.dtype), b.cast(b.one("sin", {angle}), a.dtype)};
}

static constexpr ir::Op<RopeTablesAttrs> spec = {
    .name = "rope_tables",
    .doc =
        "The usual tables of rope: cosine and sine of position * base^(-2 i / dim) for pair i.\n\n"
        "Shape    positions [...] -> [..., dim / 2], twice.\n"
        "DType    positions i32 or i64; the tables are `dtype`, and angles f32 unless that is f64.\n"
        "Numerics an angle is off by a few roundings of its own size: at position 10,000 that is about 0.002 "
        "in "
        "f32.\n"
        "Grad     none: positions are integers.\n"
        "Errors   invalid_argument unless dim is even and base > 0.\n"
        "Source   Su et al., RoFormer: Enhanced transformer with rotary position embedding (2021).",
    .inputs = {"positions"},
    .outputs = {"cos", "sin"},
    .n_public = 2,
    .differentiable = false,
    .infer_many = infer,
    .decompose_many = decompose,
};
extern constinit const ir::OpDef rope_tables = ir::define<spec>();

}  // namespace weft::ops

#include "ops/shared/einsum.h"

namespace weft::ops {

struct EinsumAttrs {
  std::string equation;
  static constexpr auto fields = ir::fields("equation", &EinsumAttrs::equation);
};

static Result<TensorType> infer(ir::Types in, const EinsumAttrs& a) {
  const DType t = in[0].dtype;
  for (size_t i = 0; i < in.size(); ++i)
    if (in.has(i) && (in[i].dtype != t || (i > 0 && !in.has(i - 1))))
      return invalid("einsum: operands must have one dtype and no gap, got {} and {}", text(in[0]),
                     text(in[i]));
  if (!is_compute(t) || t == DType::boolean)
    return invalid("einsum: wants a number type, got {}", text(in[0]));
  WEFT_TRY(const ir::Einsum e, ir::parse_einsum(a.equation, in));
  TensorType y{t, {}};
  for (const int label : e.result) y.shape.push_back(e.sizes[static_cast<size_t>(label)]);
  return y;
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const EinsumAttrs& a) {
  return ir::lower_einsum(b, a.equation, in);
}

static constexpr ir::Op<EinsumAttrs> spec = {
    .name = "einsum",
    .doc =
        "The product of all operands, summed over the letters that the result does not name: "
        "\"bij,bjk->bik\".\n\n"
        "Shape    a letter names an axis of one size everywhere (or 1, which broadcasts); the same letter "
        "twice in a\n"
        "         term is the diagonal; \"...\" stands for all other axes, from the right. Without \"->\", "
        "the "
        "result has\n"
        "         those of \"...\" and then the letters that stand once, in alphabetical order.\n"
        "DType    one number type; f16 and bf16 accumulate in f32.\n"
        "Numerics two operands at a time, in the order of least cost: the best one for up to 6 operands. "
        "The sign\n"
        "         of a zero is unspecified. Up to eight here; weft/einsum.h takes any number of them.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument when the equation and the shapes do not fit.\n"
        "Source   NumPy and PyTorch, einsum.",
    .inputs = {"a", "b", "c", "d", "e", "f", "g", "h"},
    .n_optional = 7,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef einsum = ir::define<spec>();

}  // namespace weft::ops

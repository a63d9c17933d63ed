#include "lab/kernels/operation_file.h"
#include "ops/shared/rules.h"

// A chain of ops that the compiler makes one region of: no op of Weft's, so it has a definition of its own
// here.
namespace weft::lab {

static Result<TensorType> gate_type(ir::Types in, const ir::NoAttrs&) {
  return ir::infer_arithmetic("silu_gate", in);
}

static ir::Value gate(ir::Builder& b, ir::Values in, const ir::NoAttrs&) {
  return b.mul(b.mul(in[0], b.sigmoid(in[0])), in[1]);
}

static constexpr ir::Op<> gate_spec = {
    .name = "silu_gate",
    .doc =
        "silu(a) b, between the matrices of Llama's feed-forward layers.\n\n"
        "Shape    a and b alike.\n"
        "DType    one float dtype.",
    .inputs = {"a", "b"},
    .differentiable = false,
    .infer = gate_type,
    .decompose = gate,
};
static constinit const ir::OpDef silu_gate = ir::define<gate_spec>();

static conformance::OpCases gate_cases() {
  using conformance::values;
  return {{.inputs = {normal({4, 33}), normal({4, 33})}, .why = "plain"},
          {.inputs = {normal({7}), normal({7})}, .why = "one axis"},
          {.inputs = {normal({}), normal({})}, .why = "rank 0"},
          {.inputs = {normal({2, 0, 3}), normal({2, 0, 3})}, .why = "empty"},
          {.inputs = {values({0, 20, -20, 60, -60}), values({1, -2, 3, 0.5L, -0.25L})}, .why = "large"}};
}

OperationFile silu_gate_operation() {
  return {.shapes = {"a [rows, n]"},
          .make = [](const Shapes& s) { return Sized{{normal(s[0]), normal(s[0])}, {}, {{{0, 0}, 0}}}; },
          .sizes = {{"Llama 8B, 16 tokens", {{16, 14336}}}},
          .definition = &silu_gate,
          .cases = gate_cases};
}

}  // namespace weft::lab

#include "body.h"

#include <algorithm>
#include <vector>

namespace weft::cublaslt {

using namespace backend;

namespace {

/// Reads a body step by step: what each value is.
class Reader {
 public:
  Reader(const weft_region& body, DType result) : body_(body), result_(result), is_(body.n_values) {
    for (uint32_t i = 0; i < body.n_inputs; ++i) is_[i] = {Kind::operand, i};
  }

  std::optional<LayerOnto> read() {
    for (uint32_t i = 0; i < body_.n_steps; ++i)
      if (!follows(*body_.steps[i])) return {};
    if (is_[body_.outputs[0]].kind != Kind::all) return {};
    return layer_;
  }

 private:
  enum class Kind { other, operand, product, biased, all };
  struct Value {
    Kind kind = Kind::other;
    int64_t input = -1;  // of an operand: which, whatever its form
  };
  TypeView type(uint32_t value) const { return TypeView(body_.values[value]); }

  bool follows(const weft_step& s) {
    const OpCall c(s.call);
    if (c.n_outputs() != 1 || c.accumulate() || c.updates() || c.n_inputs() < 1) return false;
    for (int64_t i = 0; i < c.n_inputs(); ++i)
      if (s.inputs[i] >= body_.n_values) return false;
    const DType t = type(s.outputs[0]).dtype();
    if (t != result_ && t != DType::f32) return false;
    if (c.op() == "matmul") return multiplies(c, s);
    if (c.op() == "add") return adds(s.inputs[0], s.inputs[1], s) || adds(s.inputs[1], s.inputs[0], s);
    is_[s.outputs[0]] = is_[s.inputs[0]];
    return c.op() == "cast" || (c.op() == "reshape" && keeps_rows(s));
  }
  // Rows of the last axis stay what they are.
  bool keeps_rows(const weft_step& s) const {
    const auto from = type(s.inputs[0]).max(), to = type(s.outputs[0]).max();
    return !from.empty() && !to.empty() && from.back() == to.back();
  }
  bool multiplies(const OpCall& c, const weft_step& s) {
    const Value a = is_[s.inputs[0]], b = is_[s.inputs[1]];
    if (layer_.x >= 0 || a.kind != Kind::operand || b.kind != Kind::operand) return false;
    if (c.attr("transpose_a").integer() || !c.attr("transpose_b").integer()) return false;
    if (type(s.inputs[0]).rank() != 2 || type(s.inputs[1]).rank() != 2) return false;
    layer_.x = a.input, layer_.weight = b.input;
    is_[s.outputs[0]] = {Kind::product, -1};
    return true;
  }
  // The bias, then what the layer is added to.
  bool adds(uint32_t layer, uint32_t operand, const weft_step& s) {
    const Kind kind = is_[layer].kind;
    if (is_[operand].kind != Kind::operand || (kind != Kind::product && kind != Kind::biased)) return false;
    const auto rows = type(layer).max(), more = type(operand).max();
    const bool alike = std::ranges::equal(rows, more), bias = more.size() == 1 && more[0] == rows.back();
    if (!alike && (!bias || kind == Kind::biased)) return false;
    (alike ? layer_.onto : layer_.bias) = is_[operand].input;
    is_[s.outputs[0]] = {alike ? Kind::all : Kind::biased, -1};
    return true;
  }

  const weft_region& body_;
  const DType result_;
  std::vector<Value> is_;
  LayerOnto layer_;
};

}  // namespace

std::optional<LayerOnto> layer_onto(const OpCall& call) {
  if (!call.region() || call.n_outputs() != 1) return {};
  return Reader(*call.region(), call.output(0).dtype()).read();
}

}  // namespace weft::cublaslt

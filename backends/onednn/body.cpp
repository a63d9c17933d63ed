#include "backends/onednn/body.h"

#include <algorithm>
#include <numbers>

#include "weft/shared/walk.hpp"

namespace weft::onednn {

using namespace weft::backend;

namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// Operands of commutative ops in one order, whichever the body has them in.
std::string call_of(std::string_view op, std::vector<std::string> operands) {
  if (op == "add" || op == "mul") std::ranges::sort(operands);
  std::string text = std::string(op) + "(";
  for (const auto& o : operands) text += (&o == operands.data() ? "" : ",") + o;
  return text + ")";
}
std::string add(std::string a, std::string b) { return call_of("add", {std::move(a), std::move(b)}); }
std::string mul(std::string a, std::string b) { return call_of("mul", {std::move(a), std::move(b)}); }

// Each activation of t, as the decompositions of gelu and silu spell it.
std::string activation(Epilogue epilogue, const std::string& t) {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const auto gelu = [&](std::string cdf) { return mul(mul(t, number(0.5)), add(std::move(cdf), number(1))); };
  switch (epilogue) {
    case Epilogue::none: return t;
    case Epilogue::gelu_erf: return gelu(call_of("erf", {mul(t, number(1 / std::numbers::sqrt2))}));
    case Epilogue::gelu_tanh:
      return gelu(
          call_of("tanh", {mul(mul(t, add(mul(mul(t, t), number(0.044715)), number(1))), number(scale))}));
    case Epilogue::silu:
      return mul(t, call_of("div", {number(1), add(call_of("exp", {mul(t, number(-1))}), number(1))}));
  }
  return "";
}

/// Reads a body step by step; each value becomes the text of its expression.
class Reader {
 public:
  explicit Reader(const weft_region& r) : r_(r), text_(r.n_values) {
    for (uint32_t i = 0; i < r.n_inputs; ++i) text_[i] = "i" + std::to_string(i);
  }

  std::optional<LinearBody> read(std::string& why) {
    for (uint32_t i = 0; i < r_.n_values; ++i)
      if (TypeView(r_.values[i]).known_dtype() != DType::f32)
        return why = "computes bodies of f32 only", std::nullopt;
    for (uint32_t s = 0; s < r_.n_steps; ++s)
      if (!step(*r_.steps[s])) return why = "the body is no linear layer with an activation", std::nullopt;
    const std::string& result = text_[r_.outputs[0]];
    for (const Epilogue e : {Epilogue::none, Epilogue::gelu_erf, Epilogue::gelu_tanh, Epilogue::silu})
      if (has_product_ && result == activation(e, bias_.empty() ? "t" : bias_)) {
        body_.epilogue = e;
        return body_;
      }
    return why = "the body is no linear layer with gelu or silu", std::nullopt;
  }

 private:
  TypeView type(uint32_t value) const { return TypeView(r_.values[value]); }
  // As many elements as t, in rows of t's length, so a bias of one is a bias of the other.
  bool is_t(uint32_t value) const {
    const auto dims = type(value).max();
    return !dims.empty() && dims.back() == body_.n && shared::product(dims) == body_.m * body_.n;
  }

  bool product(const OpCall& c, const weft_step& s) {
    const uint32_t a = s.inputs[0], b = s.inputs[1];
    if (has_product_ || c.attr("transpose_a").integer() || !c.attr("transpose_b").integer()) return false;
    if (text_[a][0] != 'i' || b >= r_.n_inputs || type(a).rank() != 2 || type(b).rank() != 2) return false;
    body_.x = std::stoll(text_[a].substr(1)), body_.weight = b;
    body_.m = type(a).max()[0], body_.k = type(a).max()[1], body_.n = type(b).max()[0];
    text_[s.outputs[0]] = "t";
    return has_product_ = true;
  }

  bool bias(const weft_step& s) {
    for (int side = 0; side < 2; ++side) {
      const uint32_t t = s.inputs[side], other = s.inputs[1 - side];
      if (text_[t] != "t" || other >= r_.n_inputs) continue;
      if (!bias_.empty() || type(other).rank() != 1 || type(other).max()[0] != body_.n || !is_t(t))
        return false;
      body_.bias = other;
      text_[s.outputs[0]] = bias_ = "u";
      return true;
    }
    return false;
  }

  bool step(const weft_step& s) {
    const OpCall c(s.call);
    const uint32_t to = s.outputs[0];
    if (c.n_outputs() != 1 || c.accumulate() || c.updates()) return false;
    if (c.op() == "matmul") return product(c, s);
    if (c.op() == "full")
      return text_[to] = number(c.attr("value").real()), shared::product(type(to).max()) == 1;
    if (c.op() == "reshape") return text_[to] = text_[s.inputs[0]], true;
    if (c.op() == "add" && bias(s)) return true;
    std::vector<std::string> operands;
    for (int64_t i = 0; i < c.n_inputs(); ++i) operands.push_back(text_[s.inputs[i]]);
    text_[to] = call_of(c.op(), std::move(operands));
    return has_product_ && is_t(to);
  }

  const weft_region& r_;
  std::vector<std::string> text_;
  LinearBody body_;
  std::string bias_;
  bool has_product_ = false;
};

}  // namespace

std::optional<LinearBody> linear_body(const OpCall& call, std::string& why) {
  const weft_region* r = call.region();
  if (!r || call.n_outputs() != 1) return why = "wants a body with one result", std::nullopt;
  auto body = Reader(*r).read(why);
  if (!body) return body;
  const auto dims = call.output(0).max();
  if (dims.empty() || dims.back() != body->n || shared::product(dims) != body->m * body->n ||
      shared::product(call.input(body->x).max()) != body->m * body->k)
    return why = "the result has other rows than the product", std::nullopt;
  return body;
}

}  // namespace weft::onednn

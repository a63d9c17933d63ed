#include "backends/onednn/body.h"

#include <algorithm>
#include <map>
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

using Expression = int32_t;

// Equal expressions have equal numbers, so a body of any depth stays small.
class Expressions {
 public:
  Expression named(const std::string& text) {
    return known_.try_emplace(text, static_cast<Expression>(known_.size())).first->second;
  }
  Expression number(double value) { return named(weft::onednn::number(value)); }
  // Operands of commutative ops in one order, whichever the body has them in.
  Expression call(std::string_view op, std::vector<Expression> operands) {
    if (op == "add" || op == "mul") std::ranges::sort(operands);
    std::string text = std::string(op) + "(";
    for (const Expression o : operands) text += std::to_string(o) + ",";
    return named(text);
  }
  Expression add(Expression a, Expression b) { return call("add", {a, b}); }
  Expression mul(Expression a, Expression b) { return call("mul", {a, b}); }

  // Each activation of t, as the decompositions of gelu and silu spell it.
  Expression activation(Epilogue epilogue, Expression t) {
    const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
    const auto gelu = [&](Expression cdf) { return mul(mul(t, number(0.5)), add(cdf, number(1))); };
    switch (epilogue) {
      case Epilogue::none: return t;
      case Epilogue::gelu_erf: return gelu(call("erf", {mul(t, number(1 / std::numbers::sqrt2))}));
      case Epilogue::gelu_tanh:
        return gelu(
            call("tanh", {mul(mul(t, add(mul(mul(t, t), number(0.044715)), number(1))), number(scale))}));
      case Epilogue::silu:
        return mul(t, call("div", {number(1), add(call("exp", {mul(t, number(-1))}), number(1))}));
    }
    return -1;
  }

 private:
  std::map<std::string, Expression> known_;
};

/// Reads a body step by step; each value becomes an expression.
class Reader {
 public:
  explicit Reader(const weft_region& r) : r_(r), is_(r.n_values, -1) {
    for (uint32_t i = 0; i < r.n_inputs; ++i) {
      is_[i] = all_.named("input " + std::to_string(i));
      input_.emplace(is_[i], i);
    }
  }

  std::optional<LinearBody> read(std::string& why) {
    for (uint32_t i = 0; i < r_.n_values; ++i)
      if (TypeView(r_.values[i]).known_dtype() != DType::f32)
        return why = "computes bodies of f32 only", std::nullopt;
    for (uint32_t s = 0; s < r_.n_steps; ++s)
      if (!step(*r_.steps[s])) return why = "the body is no linear layer with an activation", std::nullopt;
    const Expression result = is_[r_.outputs[0]];
    for (const Epilogue e : {Epilogue::none, Epilogue::gelu_erf, Epilogue::gelu_tanh, Epilogue::silu})
      if (has_product_ && result == all_.activation(e, has_bias() ? biased_ : product_)) {
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
    const auto x = input_.find(is_[a]);
    if (x == input_.end() || b >= r_.n_inputs || type(a).rank() != 2 || type(b).rank() != 2) return false;
    body_.x = x->second, body_.weight = b;
    body_.m = type(a).max()[0], body_.k = type(a).max()[1], body_.n = type(b).max()[0];
    is_[s.outputs[0]] = product_;
    return has_product_ = true;
  }

  bool bias(const weft_step& s) {
    for (int side = 0; side < 2; ++side) {
      const uint32_t t = s.inputs[side], other = s.inputs[1 - side];
      if (is_[t] != product_ || other >= r_.n_inputs) continue;
      if (has_bias() || type(other).rank() != 1 || type(other).max()[0] != body_.n || !is_t(t)) return false;
      body_.bias = other;
      is_[s.outputs[0]] = biased_;
      return true;
    }
    return false;
  }

  bool step(const weft_step& s) {
    const OpCall c(s.call);
    const uint32_t to = s.outputs[0];
    if (c.n_outputs() != 1 || c.accumulate() || c.updates()) return false;
    for (int64_t i = 0; i < c.n_inputs(); ++i)
      if (s.inputs[i] >= r_.n_values) return false;  // it is absent
    if (c.op() == "matmul") return product(c, s);
    if (c.op() == "full")
      return is_[to] = all_.number(c.attr("value").real() * static_cast<double>(c.attr("times").integer(1))),
             shared::product(type(to).max()) == 1;
    if (c.op() == "reshape") return is_[to] = is_[s.inputs[0]], true;
    if (c.op() == "add" && bias(s)) return true;
    std::vector<Expression> operands;
    for (int64_t i = 0; i < c.n_inputs(); ++i) operands.push_back(is_[s.inputs[i]]);
    is_[to] = all_.call(c.op(), std::move(operands));
    return has_product_ && is_t(to);
  }

  bool has_bias() const { return body_.bias >= 0; }

  const weft_region& r_;
  Expressions all_;
  std::vector<Expression> is_;           // by value
  std::map<Expression, int64_t> input_;  // which input it is, reshaped or not
  const Expression product_ = all_.named("the product"), biased_ = all_.named("the product and its bias");
  LinearBody body_;
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

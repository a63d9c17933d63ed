#include <algorithm>

#include "import/call.h"

// Recurrent layers, step by step: as many as the sequence is long.
namespace weft::importer {
namespace {

constexpr int64_t kMostSteps = 4096;  // of all layers together

struct Weights {
  ir::Value input, hidden, input_bias, hidden_bias;  // biases may be absent
};
/// What goes from one step to the next; a GRU has no cell.
struct State {
  ir::Value hidden, cell;
};
ir::Value linear(ir::Builder& b, ir::Value x, ir::Value w, ir::Value bias) {
  return bias ? b.one("linear", {x, w, bias}) : b.one("linear", {x, w});
}
/// Part `i` of `n` along the last axis.
ir::Value part(ir::Builder& b, ir::Value x, int64_t i, int64_t n) {
  const Dim size = floor_div(x.shape().back(), n);
  return b.one("slice", {x},
               {{"axis", x.rank() - 1}, {"start", Shape{Dim(i) * size}}, {"stop", Shape{Dim(i + 1) * size}}});
}
/// Element `i` along the first axis.
ir::Value at(ir::Builder& b, ir::Value x, int64_t i) {
  const auto one = b.one("slice", {x}, {{"axis", int64_t{0}}, {"start", Shape{i}}, {"stop", Shape{i + 1}}});
  return b.reshape(one, Shape(x.shape().begin() + 1, x.shape().end()));
}
ir::Value as_first(ir::Builder& b, ir::Value x) {
  Shape shape = x.shape();
  shape.insert(0, Dim(1));
  return b.reshape(x, shape);
}

// `x` is the input's share of the gates at this step.
State lstm_step(ir::Builder& b, ir::Value x, const State& s, const Weights& w) {
  const auto gates = b.add(x, linear(b, s.hidden, w.hidden, w.hidden_bias));
  const auto in = b.sigmoid(part(b, gates, 0, 4)), forget = b.sigmoid(part(b, gates, 1, 4));
  const auto cell = b.add(b.mul(forget, s.cell), b.mul(in, b.tanh(part(b, gates, 2, 4))));
  return {b.mul(b.sigmoid(part(b, gates, 3, 4)), b.tanh(cell)), cell};
}
State gru_step(ir::Builder& b, ir::Value x, const State& s, const Weights& w) {
  const auto hidden = linear(b, s.hidden, w.hidden, w.hidden_bias);
  const auto reset = b.sigmoid(b.add(part(b, x, 0, 3), part(b, hidden, 0, 3)));
  const auto keep = b.sigmoid(b.add(part(b, x, 1, 3), part(b, hidden, 1, 3)));
  const auto fresh = b.tanh(b.add(part(b, x, 2, 3), b.mul(reset, part(b, hidden, 2, 3))));
  return {b.add(fresh, b.mul(keep, b.sub(s.hidden, fresh))), {}};
}

/// A layer in one direction: its results [steps, batch, width], and the last state.
template <class Step>
ir::Value run(Call& c, ir::Value x, State& s, const Weights& w, bool backward, const Step& step) {
  const auto shares = linear(c.b, x, w.input, w.input_bias);
  const int64_t steps = x.shape()[0].value();
  ir::ValueList results(static_cast<size_t>(steps));
  for (int64_t n = 0; n < steps; ++n) {
    const int64_t t = backward ? steps - 1 - n : n;
    s = step(c.b, at(c.b, shares, t), s, w);
    results[static_cast<size_t>(t)] = as_first(c.b, s.hidden);
  }
  return c.concat(results, 0);
}

ir::Value swapped(ir::Builder& b, ir::Value x) { return b.one("permute", {x}, {{"axes", Shape{1, 0, 2}}}); }

/// All layers. `cells` is absent for a GRU.
template <class Step>
void recurrent(Call& c, ir::Value hiddens, ir::Value cells, const Step& step) {
  auto x = c.tensor("input");
  const auto params = c.tensors("params");
  const int64_t layers = c.integer("num_layers"), directions = c.flag("bidirectional") ? 2 : 1;
  const size_t each = c.flag("has_biases") ? 4 : 2;
  if (c.flag("train") && c.real("dropout") > 0)
    return c.refuse(
        fail(Code::unsupported, "it drops elements at random, as in training; export after model.eval()"));
  if (layers < 1 || layers > 64 || params.size() != each * static_cast<size_t>(layers * directions))
    return c.refuse(fail(Code::unsupported, "{} weights for {} layers; projections are not there",
                         params.size(), layers));
  if (x.rank() != 3 || hiddens.rank() != 3)
    return c.refuse(fail(Code::unsupported, "a sequence without a batch"));
  if (c.flag("batch_first")) x = swapped(c.b, x);
  const Dim steps = x.shape()[0];
  if (!steps.is_const() || steps.value() < 1 || steps.value() > kMostSteps / (layers * directions))
    return c.refuse(fail(Code::unsupported, "a sequence of {} steps in {} layers; up to {} in all",
                         steps.text(), layers * directions, kMostSteps));
  ir::ValueList last_hidden, last_cell;
  for (int64_t layer = 0; layer < layers; ++layer) {
    ir::ValueList both;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t n = layer * directions + d;
      const auto* p = params.data() + each * static_cast<size_t>(n);
      const Weights w{p[0], p[1], each == 4 ? p[2] : ir::Value(), each == 4 ? p[3] : ir::Value()};
      State s{at(c.b, hiddens, n), cells ? at(c.b, cells, n) : ir::Value()};
      both.push_back(run(c, x, s, w, d == 1, step));
      last_hidden.push_back(as_first(c.b, s.hidden));
      if (cells) last_cell.push_back(as_first(c.b, s.cell));
    }
    x = c.concat(both, 2);
  }
  ir::ValueList all{c.flag("batch_first") ? swapped(c.b, x) : x, c.concat(last_hidden, 0)};
  if (cells) all.push_back(c.concat(last_cell, 0));
  c.give(std::move(all));
}
void lstm(Call& c) {
  const auto hx = c.tensors("hx");
  if (hx.size() != 2 || !hx[0] || !hx[1]) return c.refuse(invalid("{} states; wants 2", hx.size()));
  recurrent(c, hx[0], hx[1], lstm_step);
}
void gru(Call& c) { recurrent(c, c.tensor("hx"), {}, gru_step); }

constexpr AtenOp recurrent_ops[] = {
    {"gru.input",
     "input, hx, params[], has_biases=, num_layers=, dropout=, train=, bidirectional=, batch_first=",
     "linear, sigmoid, tanh", gru},
    {"lstm.input",
     "input, hx[], params[], has_biases=, num_layers=, dropout=, train=, bidirectional=, batch_first=",
     "linear, sigmoid, tanh", lstm},
};

}  // namespace

extern constinit const Family recurrent_family = {recurrent_ops};

}  // namespace weft::importer

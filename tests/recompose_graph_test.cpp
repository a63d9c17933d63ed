#include "recompose_rig.h"

// Attention, rotary positions and batch norms that are written out, or beside what takes them in; and what
// keeps a part of a graph from becoming one op.
namespace weft::testing::recompose_graph_test {
namespace {

using namespace recompose_rig;

// ---- attention

constexpr int64_t kHeads = 4, kShared = 2, kQueries = 5, kKeys = 7, kDim = 8;

/// Scores and a weighted sum, in as many ways as exporters have.
struct Attention {
  int64_t heads_of_k = kHeads;
  double scale = 1 / std::sqrt(8.0);
  int64_t axis = -1;    ///< of the softmax
  bool swapped = true;  ///< k before the product
  enum class Mask : uint8_t { none, added, seen, hidden, nearly_hidden } mask = Mask::none;
  enum class Factor : uint8_t { scores, both, divided, none } factor = Factor::scores;
};

Value repeated(Graph& g, Value x) {
  Shape one = x.shape(), each = one, all = one;
  one.insert(2, Dim(1)), each.insert(2, Dim(kHeads / kShared)), all[1] = kHeads;
  return g.reshape(g.broadcast(g.reshape(x, one), each), all);
}
Value softmax_of(Graph& g, Value x, int64_t axis = -1) { return g.one("softmax", {x}, {{"axis", axis}}); }

Value masked(Graph& g, DType t, Value s, Attention::Mask mask) {
  using M = Attention::Mask;
  const Shape each = {2, 1, kQueries, kKeys};
  if (mask == M::none) return s;
  if (mask == M::added) return g.add(s, input(g, t, each, "mask"));
  const Value m = input(g, DType::boolean, each, "mask");
  if (mask == M::seen) return g.where(m, s, -INFINITY);
  return g.where(m, mask == M::hidden ? -INFINITY : -1e4, s);
}

Value attend(Graph& g, DType t, const Attention& a = {}) {
  using F = Attention::Factor;
  Value q = input(g, t, {2, kHeads, kQueries, kDim}, "q"),
        k = input(g, t, {2, a.heads_of_k, kKeys, kDim}, "k"),
        v = input(g, t, {2, a.heads_of_k, kKeys, kDim}, "v");
  if (a.heads_of_k != kHeads) k = repeated(g, k), v = repeated(g, v);
  if (a.factor == F::both) q = g.mul(q, std::sqrt(a.scale)), k = g.mul(k, std::sqrt(a.scale));
  Value s = a.swapped ? g.matmul(q, transposed(g, k)) : g.matmul(q, k, false, true);
  if (a.factor == F::scores) s = g.mul(s, a.scale);
  if (a.factor == F::divided) s = g.div(s, 1 / a.scale);
  return g.matmul(softmax_of(g, masked(g, t, s, a.mask), a.axis), v);
}

/// q, k and v of the same heads.
struct Operands {
  Value q, k, v;
};
Operands operands(Graph& g, DType t) {
  return {input(g, t, {2, kHeads, kQueries, kDim}, "q"), input(g, t, {2, kHeads, kKeys, kDim}, "k"),
          input(g, t, {2, kHeads, kKeys, kDim}, "v")};
}

using M = Attention::Mask;
using F = Attention::Factor;

TEST(RecomposeAttention, WithFactorsAndMasks) {
  expect_all(std::array{
      Written{"plain", [](Graph& g, DType t) { return attend(g, t); }, "attention"},
      Written{"the softmax in small ops, too",
              [](Graph& g, DType t) {
                const auto [q, k, v] = operands(g, t);
                const Value s = g.mul(g.matmul(q, k, false, true), 0.25), e = g.exp(g.sub(s, g.max(s, -1)));
                return g.matmul(g.div(e, g.sum(e, -1)), v);
              },
              "attention"},
      Written{"a factor on both sides", [](Graph& g, DType t) { return attend(g, t, {.factor = F::both}); },
              "attention"},
      Written{"a divisor, and a product that reads k as it is",
              [](Graph& g, DType t) { return attend(g, t, {.swapped = false, .factor = F::divided}); },
              "attention"},
      Written{"no factor", [](Graph& g, DType t) { return attend(g, t, {.factor = F::none}); }, "attention"},
      Written{"a mask that is added", [](Graph& g, DType t) { return attend(g, t, {.mask = M::added}); },
              "attention"},
      Written{"a mask of what is seen", [](Graph& g, DType t) { return attend(g, t, {.mask = M::seen}); },
              "attention"},
      Written{"a mask of what is hidden", [](Graph& g, DType t) { return attend(g, t, {.mask = M::hidden}); },
              "logical_not attention"},
  });
}

TEST(RecomposeAttention, InOtherShapesAndDTypes) {
  expect_all(std::array{
      Written{"heads that share k and v",
              [](Graph& g, DType t) { return attend(g, t, {.heads_of_k = kShared, .mask = M::added}); },
              "attention"},
      Written{"batches of three axes",
              [](Graph& g, DType t) {
                const auto flat = [&](Value x) {
                  return g.reshape(x, {2 * kHeads, x.shape()[2], x.shape()[3]});
                };
                const auto [q, k, v] = operands(g, t);
                const Value s =
                    g.reshape(g.matmul(flat(q), flat(transposed(g, k))), {2, kHeads, kQueries, kKeys});
                const Value p = softmax_of(g, masked(g, t, g.mul(s, 0.125), M::added));
                return g.reshape(g.matmul(flat(p), flat(v)), q.shape());
              },
              "attention"},
      Written{"a softmax in f32 among halves",
              [](Graph& g, DType t) {
                const auto [q, k, v] = operands(g, t);
                const Value s = masked(g, t, g.mul(g.matmul(q, transposed(g, k)), 0.25), M::added);
                return g.matmul(g.cast(softmax_of(g, g.cast(s, DType::f32)), t), v);
              },
              "attention", DType::bf16},
      Written{"turned for it and turned back",
              [](Graph& g, DType t) {
                const auto turned = [&](Value x) {
                  return g.one("permute", {x}, {{"axes", Shape{0, 2, 1, 3}}});
                };
                const Value q = input(g, t, {2, kQueries, kHeads, kDim}, "q"),
                            k = input(g, t, {2, kKeys, kHeads, kDim}, "k"),
                            v = input(g, t, {2, kKeys, kHeads, kDim}, "v");
                const Value s = g.mul(g.matmul(turned(q), transposed(g, turned(k))), 0.25);
                return transposed(g, g.matmul(softmax_of(g, s), turned(v)), 1, 2);
              },
              "attention"},
  });
}

TEST(RecomposeAttention, KeepsItsFactor) {
  const auto scale_of = [](Value (*write)(Graph&, DType)) {
    return std::get<double>(compiler::attr(node_of(recomposed(written({"", write})), "attention"), "scale"));
  };
  EXPECT_EQ(scale_of([](Graph& g, DType t) { return attend(g, t, {.factor = F::none}); }), 1)
      << "not the default, 1 / sqrt(dim)";
  EXPECT_NEAR(scale_of([](Graph& g, DType t) { return attend(g, t, {.factor = F::both}); }),
              1 / std::sqrt(8.0), 1e-15);
}

TEST(RecomposeAttention, OnlyWhatItMeans) {
  expect_none(std::array{
      Written{"the softmax is over queries", [](Graph& g, DType t) { return attend(g, t, {.axis = -2}); }},
      Written{"a large number hides, and not infinity",
              [](Graph& g, DType t) { return attend(g, t, {.mask = M::nearly_hidden}); }},
      Written{"a negative factor", [](Graph& g, DType t) { return attend(g, t, {.scale = -0.25}); }},
      Written{"a factor that is no number",
              [](Graph& g, DType t) {
                const Value q = input(g, t, {kHeads, kQueries, kDim}, "q"),
                            k = input(g, t, {kHeads, kKeys, kDim}, "k");
                return g.matmul(softmax_of(g, g.mul(g.matmul(q, transposed(g, k)), input(g, t, {}, "f"))), k);
              }},
      Written{"k is not turned",
              [](Graph& g, DType t) {
                const Value q = input(g, t, {kHeads, kDim, kDim}, "q"),
                            k = input(g, t, {kHeads, kDim, kDim}, "k");
                return g.matmul(softmax_of(g, g.matmul(q, k)), k);
              }},
      Written{"other axes of k are turned",
              [](Graph& g, DType t) {
                const Value q = input(g, t, {kDim, kDim, kDim}, "q"),
                            k = input(g, t, {kDim, kDim, kDim}, "k");
                return g.matmul(softmax_of(g, g.matmul(q, transposed(g, k, 0, 1))), k);
              }},
      Written{"a view mixes rows between the products",
              [](Graph& g, DType t) {
                const Value q = input(g, t, {kHeads, 6, kDim}, "q"), k = input(g, t, {kHeads, 4, kDim}, "k");
                const Value s = g.reshape(g.matmul(q, k, false, true), {kHeads, 4, 6});
                return g.matmul(g.reshape(softmax_of(g, s), {kHeads, 6, 4}), k);
              }},
      Written{"what is added has more axes",
              [](Graph& g, DType t) {
                const Value q = input(g, t, {kHeads, kQueries, kDim}, "q"),
                            k = input(g, t, {kHeads, kKeys, kDim}, "k");
                const Value s =
                    g.add(g.matmul(q, k, false, true), input(g, t, {3, kHeads, kQueries, kKeys}, "mask"));
                return g.matmul(softmax_of(g, s), g.broadcast(k, {3, kHeads, kKeys, kDim}));
              }},
  });
  expect_all(std::array{
      Written{"heads that alternate are not those of the op",
              [](Graph& g, DType t) {
                const auto tiled = [&](Value x) {
                  return g.reshape(g.broadcast(g.reshape(x, {2, 1, kShared, kKeys, kDim}),
                                               {2, kHeads / kShared, kShared, kKeys, kDim}),
                                   {2, kHeads, kKeys, kDim});
                };
                const Value q = input(g, t, {2, kHeads, kQueries, kDim}, "q"),
                            k = tiled(input(g, t, {2, kShared, kKeys, kDim}, "k"));
                return g.matmul(softmax_of(g, g.matmul(q, k, false, true)), k);
              },
              "broadcast attention"},
  });
}

// ---- rotary positions

Value tables(Graph& g, DType t, const char* op, bool equal = true) {
  const Value angle = g.weight("angle", {t, {kQueries, kDim / 2}}), other = g.mul(angle, 2);
  return g.reshape(g.mul(g.one(op, {joined(g, angle, equal ? angle : other)}), 1.5), {1, 1, kQueries, kDim});
}
Value rotated(Graph& g, Value x, bool right = true, int64_t at = kDim / 2) {
  const Value first = part(g, x, 0, at), second = part(g, x, at, kDim);
  return right ? joined(g, g.neg(second), first) : joined(g, second, g.neg(first));
}
Value rope(Graph& g, DType t, Value x, Value turned) {
  return g.add(g.mul(x, tables(g, t, "cos")), g.mul(turned, tables(g, t, "sin")));
}
Value queries(Graph& g, DType t) { return input(g, t, {2, kHeads, kQueries, kDim}, "q"); }

TEST(Recompose, Rope) {
  const auto has_rope = [](Value (*write)(Graph&, DType)) {
    return ops_of(recomposed(written({"", write}))).find("rope") != std::string::npos;
  };
  const Written right{"", [](Graph& g, DType t) {
                        const Value x = queries(g, t);
                        return rope(g, t, x, rotated(g, x));
                      }};
  EXPECT_TRUE(has_rope(right.write));
  expect_same_numbers(written(right), recomposed(written(right)));
  EXPECT_FALSE(has_rope([](Graph& g, DType t) {
    const Value x = queries(g, t);
    return rope(g, t, x, rotated(g, x, false));
  })) << "the other half is negated";
  EXPECT_FALSE(has_rope([](Graph& g, DType t) {
    return rope(g, t, queries(g, t), rotated(g, queries(g, t)));
  })) << "another value is turned";
  EXPECT_FALSE(has_rope([](Graph& g, DType t) {
    const Value x = queries(g, t);
    return rope(g, t, x, rotated(g, x, true, 3));
  })) << "not in the middle";
  EXPECT_FALSE(has_rope([](Graph& g, DType t) {
    const Value x = queries(g, t), sin = tables(g, t, "sin", false), cos = tables(g, t, "cos", false);
    return g.add(g.mul(x, cos), g.mul(rotated(g, x), sin));
  })) << "tables of two different halves";
}

// ---- linear layers

Value turned_weight(Graph& g, DType t) { return transposed(g, row(g, t, {6, 8})); }

TEST(Recompose, Linear) {
  expect_all(std::array{
      Written{"a weight that is turned, and a bias, between views",
              [](Graph& g, DType t) {
                const Value x = g.reshape(rows(g, t), {15, 8});
                const Value y = g.add(row(g, t, {6}, "b"), g.matmul(x, turned_weight(g, t)));
                return g.reshape(y, {3, 5, 6});
              },
              "linear"},
      Written{"without a bias", [](Graph& g, DType t) { return g.matmul(rows(g, t), turned_weight(g, t)); },
              "linear"},
      Written{"a weight and a bias that are inputs",
              [](Graph& g, DType t) {
                const Value w = transposed(g, input(g, t, {6, 8}, "w"));
                return g.add(g.matmul(rows(g, t), w), input(g, t, {6}, "b"));
              },
              "linear"},
      Written{"what is added is computed",
              [](Graph& g, DType t) {
                const Value more = g.one("neg", {input(g, t, {6}, "more")});
                return g.add(g.matmul(rows(g, t), turned_weight(g, t)), more);
              },
              "neg linear add"},
      Written{"views that split rows otherwise",
              [](Graph& g, DType t) {
                const Value y = g.matmul(g.reshape(rows(g, t), {15, 8}), turned_weight(g, t));
                return g.reshape(y, {3, 6, 5});
              },
              "linear"},
  });
  expect_none(std::array{
      Written{"the weight is turned already",
              [](Graph& g, DType t) { return g.matmul(rows(g, t), row(g, t, {8, 6})); }},
      Written{"the weight is computed",
              [](Graph& g, DType t) {
                return g.matmul(rows(g, t), transposed(g, g.one("neg", {input(g, t, {6, 8}, "w")})));
              }},
      Written{"and turned again by the product",
              [](Graph& g, DType t) {
                return g.matmul(rows(g, t), transposed(g, row(g, t, {8, 6})), false, true);
              }},
  });
}

// ---- batch norm

constexpr int64_t kIn = 3, kOut = 6;

Value convolved(Graph& g, DType t, Value w, bool biased) {
  const Value x = input(g, t, {2, kIn, 9, 8});
  const Value y = g.one("conv", {x, w}, {{"stride", Shape{2, 1}}, {"padding", Shape{1, 1, 0, 1}}});
  return biased ? g.add(y, g.reshape(row(g, t, {kOut}, "b"), {kOut, 1, 1})) : y;
}
Value filters(Graph& g, DType t) { return g.weight("filters", {t, {kOut, kIn, 3, 3}}); }
Value normed(Graph& g, DType t, Value x, size_t operands = 5) {
  std::vector<Value> in = {x};
  for (const char* name : {"mean", "variance", "gain", "shift"}) in.push_back(row(g, t, {kOut}, name));
  in.resize(operands);
  in.resize(5);
  return g.call("batch_norm", in, {{"epsilon", 1e-3}})[0];
}

TEST(Recompose, BatchNormsGoIntoTheFiltersBeforeThem) {
  const auto expect_folded = [](const Written& w) {
    SCOPED_TRACE(w.how);
    const Graph before = written(w), after = recomposed(before);
    const std::string ops = ops_of(after);
    EXPECT_EQ(ops.find("batch_norm"), std::string::npos) << ops;
    EXPECT_EQ(ops.substr(ops.rfind("conv")), "conv add") << "all else is made of weights: " << ops;
    expect_same_numbers(before, after);
  };
  expect_folded(
      {"bare", [](Graph& g, DType t) { return normed(g, t, convolved(g, t, filters(g, t), false)); }});
  expect_folded(
      {"with a bias", [](Graph& g, DType t) { return normed(g, t, convolved(g, t, filters(g, t), true)); }});
  expect_folded({"without weight and bias of its own",
                 [](Graph& g, DType t) { return normed(g, t, convolved(g, t, filters(g, t), true), 3); }});
  expect_folded({"in f64",
                 [](Graph& g, DType t) { return normed(g, t, convolved(g, t, filters(g, t), true)); }, "",
                 DType::f64});
  expect_none(std::array{
      Written{"filters that are an input",
              [](Graph& g, DType t) {
                return normed(g, t, convolved(g, t, input(g, t, {kOut, kIn, 3, 3}, "w"), false));
              }},
      Written{"halves, whose filters would be rounded again",
              [](Graph& g, DType t) { return normed(g, t, convolved(g, t, filters(g, t), false)); }, "",
              DType::bf16},
      Written{"another reader of the convolution",
              [](Graph& g, DType t) {
                const Value y = convolved(g, t, filters(g, t), false);
                return g.add(normed(g, t, y), y);
              }},
      Written{"what is added differs within a channel",
              [](Graph& g, DType t) {
                const Value y = convolved(g, t, filters(g, t), false);
                return normed(g, t, g.add(y, row(g, t, {kOut, y.shape()[2], y.shape()[3]}, "b")));
              }},
  });
}

// ---- what blocks

Value silu_and(Graph& g, Value (*more)(Graph&, Value x, Value sigmoid)) {
  const Value x = rows(g, DType::f32), s = g.sigmoid(x), y = g.mul(x, s);
  return more(g, y, s);
}

TEST(Recompose, WhatOthersSeeStays) {
  expect_none(std::array{
      Written{"an intermediate with another reader",
              [](Graph& g, DType) {
                return silu_and(g, [](Graph& h, Value y, Value s) { return h.add(y, h.exp(s)); });
              }},
      Written{"an intermediate that is an output",
              [](Graph& g, DType) {
                return silu_and(g, [](Graph& h, Value y, Value s) {
                  h.output("s", s);
                  return y;
                });
              }},
  });
  const Written free{
      "", [](Graph& g, DType) { return silu_and(g, [](Graph& h, Value y, Value) { return h.exp(y); }); }};
  EXPECT_EQ(ops_of(recomposed(written(free))), "silu exp");
}

// x is overwritten between sigmoid(x) and the product: the op would read the new value, or the old one too
// late.
TEST(Recompose, NothingMovesBehindAnOverwriteOfItsOperand) {
  const auto graph = [](bool before) {
    Graph g;
    const TensorType t{DType::f32, {4}};
    const Value x = g.state("x", t), in = g.input("in", t), s = g.sigmoid(x);
    const Value y = before ? g.mul(x, s) : Value();
    g.states[0].after = g.one("assign", {x, in}).id();
    g.output("y", before ? y : g.mul(in, g.one("sigmoid", {g.value(g.states[0].after)})));
    if (!before) g.output("s", s);
    return g;
  };
  EXPECT_EQ(ops_of(recomposed(graph(true))), "silu assign");
  EXPECT_EQ(ops_of(recomposed(graph(false))), "sigmoid assign sigmoid mul");

  Graph late;
  const TensorType t{DType::f32, {3, 5, 8}};
  const Value x = late.state("x", t), in = late.input("in", t), c = late.sub(x, mean(late, x));
  late.states[0].after = late.one("assign", {x, in}).id();
  const Value v = late.add(mean(late, late.mul(c, c)), 1e-5);
  late.output("y", late.mul(c, late.one("rsqrt", {v})));
  EXPECT_EQ(ops_of(recomposed(late)).find("layer_norm"), std::string::npos)
      << "it would read x after the assign";
}

}  // namespace
}  // namespace weft::testing::recompose_graph_test

#include "recompose_rig.h"

// Softmax, activations and norms that are written out in small ops become the op again, and only they.
namespace weft::testing::recompose_test {
namespace {

using namespace recompose_rig;

// ---- softmax

Value softmax(Graph& g, Value x, int64_t of_max = -1, int64_t of_sum = -1) {
  const Value e = g.exp(g.sub(x, g.max(x, of_max)));
  return g.div(e, g.sum(e, of_sum));
}
TEST(Recompose, Softmax) {
  expect_all(std::array{
      Written{"the last axis", [](Graph& g, DType t) { return softmax(g, rows(g, t)); }, "softmax"},
      Written{"another axis", [](Graph& g, DType t) { return softmax(g, rows(g, t), 1, 1); }, "softmax"},
      Written{"times the reciprocal",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), e = g.exp(g.sub(x, g.max(x, -1)));
                return g.mul(g.one("reciprocal", {g.sum(e, -1)}), e);
              },
              "softmax"},
      Written{"folds without the axis, which views bring back",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                const auto fold = [&](const char* op, Value v) {
                  return g.broadcast(g.reshape(g.one(op, {v}, {{"axes", Shape{2}}}), {3, 5, 1}), {3, 5, 8});
                };
                const Value e = g.exp(g.sub(x, fold("max", x)));
                return g.div(e, fold("sum", e));
              },
              "softmax"},
      Written{"in f32 among halves",
              [](Graph& g, DType t) { return g.cast(softmax(g, wide(g, rows(g, t))), t); }, "softmax",
              DType::bf16},
      Written{"a half that stays f32", [](Graph& g, DType t) { return softmax(g, wide(g, rows(g, t))); },
              "cast softmax", DType::f16},
  });
  expect_none(std::array{
      Written{"the sum is over another axis",
              [](Graph& g, DType t) { return softmax(g, rows(g, t), -1, 1); }},
      Written{"the maximum is over another axis",
              [](Graph& g, DType t) { return softmax(g, rows(g, t), 1, -1); }},
      Written{"no maximum",
              [](Graph& g, DType t) {
                const Value e = g.exp(rows(g, t));
                return g.div(e, g.sum(e, -1));
              }},
      Written{"the maximum of another value",
              [](Graph& g, DType t) {
                const Value e = g.exp(g.sub(rows(g, t), g.max(rows(g, t, "z"), -1)));
                return g.div(e, g.sum(e, -1));
              }},
      Written{"two axes at once",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                const auto fold = [&](const char* op, Value v) {
                  return g.one(op, {v}, {{"axes", Shape{1, 2}}, {"keep", int64_t{1}}});
                };
                const Value e = g.exp(g.sub(x, fold("max", x)));
                return g.div(e, fold("sum", e));
              }},
      Written{"upside down",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), e = g.exp(g.sub(x, g.max(x, -1)));
                return g.div(g.sum(e, -1), e);
              }},
  });
}

// ---- activations

Value erf_gelu(Graph& g, DType t, double half = 0.5, double scale = 1 / std::sqrt(2.0), double one = 1) {
  const Value x = rows(g, t);
  return g.mul(g.mul(x, half), g.add(g.erf(g.mul(x, scale)), one));
}
Value tanh_gelu(Graph& g, Value x, double factor = 0.044715, double scale = std::sqrt(2 / M_PI)) {
  const Value cube = g.power(x, 3);
  return g.mul(g.mul(x, 0.5), g.add(g.tanh(g.mul(g.add(x, g.mul(cube, factor)), scale)), 1));
}

TEST(Recompose, Gelu) {
  expect_all(std::array{
      Written{"erf", [](Graph& g, DType t) { return erf_gelu(g, t); }, "gelu"},
      Written{"x / sqrt(2), and the half at last",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.mul(g.mul(x, g.add(g.erf(g.div(x, std::sqrt(2.0))), 1)), 0.5);
              },
              "gelu"},
      Written{"tanh, with a power", [](Graph& g, DType t) { return tanh_gelu(g, rows(g, t)); }, "gelu"},
      Written{"tanh, ten digits of its factor",
              [](Graph& g, DType t) { return tanh_gelu(g, rows(g, t), 0.044715, 0.7978845608); }, "gelu"},
      Written{"tanh, multiplied out of the sum",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), inner = g.add(g.mul(g.mul(x, x), 0.044715), 1);
                return g.mul(g.mul(x, g.add(g.tanh(g.mul(g.mul(x, std::sqrt(2 / M_PI)), inner)), 1)), 0.5);
              },
              "gelu"},
      Written{"in f32 among halves",
              [](Graph& g, DType t) { return g.cast(tanh_gelu(g, wide(g, rows(g, t))), t); }, "gelu",
              DType::f16},
  });
  const Written erf{"", [](Graph& g, DType t) { return erf_gelu(g, t); }};
  EXPECT_EQ(std::get<int64_t>(compiler::attr(node_of(recomposed(written(erf)), "gelu"), "approximate")), 0);
  const Written tanh{"", [](Graph& g, DType t) { return tanh_gelu(g, rows(g, t)); }};
  EXPECT_EQ(std::get<int64_t>(compiler::attr(node_of(recomposed(written(tanh)), "gelu"), "approximate")), 1);
  expect_none(std::array{
      Written{"another half", [](Graph& g, DType t) { return erf_gelu(g, t, 0.51); }},
      Written{"another root", [](Graph& g, DType t) { return erf_gelu(g, t, 0.5, 0.7072); }},
      Written{"another one", [](Graph& g, DType t) { return erf_gelu(g, t, 0.5, 1 / std::sqrt(2.0), 1.5); }},
      Written{"another factor", [](Graph& g, DType t) { return tanh_gelu(g, rows(g, t), 0.0447); }},
      Written{"another scale", [](Graph& g, DType t) { return tanh_gelu(g, rows(g, t), 0.044715, 0.798); }},
      Written{"ten digits in f64",
              [](Graph& g, DType t) { return tanh_gelu(g, rows(g, t), 0.044715, 0.7978845608); }, "",
              DType::f64},
      Written{"of another value",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), z = rows(g, t, "z");
                return g.mul(g.mul(x, 0.5), g.add(g.erf(g.mul(z, 1 / std::sqrt(2.0))), 1));
              }},
      Written{"a square where the cube stands",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), inner = g.add(x, g.mul(g.mul(x, x), 0.044715));
                return g.mul(g.mul(x, 0.5), g.add(g.tanh(g.mul(inner, std::sqrt(2 / M_PI))), 1));
              }},
  });
}

TEST(Recompose, Silu) {
  expect_all(std::array{
      Written{"x sigmoid(x)",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.mul(g.sigmoid(x), x);
              },
              "silu"},
      Written{"x / (1 + exp(-x))",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.div(x, g.add(1, g.exp(g.one("neg", {x}))));
              },
              "silu"},
      Written{"in f32 among halves",
              [](Graph& g, DType t) {
                const Value x = wide(g, rows(g, t));
                return g.cast(g.mul(x, g.sigmoid(x)), t);
              },
              "silu", DType::bf16},
  });
  expect_none(std::array{
      Written{"of another value",
              [](Graph& g, DType t) { return g.mul(rows(g, t), g.sigmoid(rows(g, t, "z"))); }},
      Written{"1.702 x, as some write gelu",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.mul(x, g.sigmoid(g.mul(x, 1.702)));
              }},
      Written{"exp(x)",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.div(x, g.add(1, g.exp(x)));
              }},
  });
}

// ---- norms

Value rms(Graph& g, Value x, double epsilon = 1e-6, int64_t axis = -1) {
  return g.mul(x, g.one("rsqrt", {g.add(mean(g, g.one("square", {x}), axis), epsilon)}));
}

TEST(Recompose, RmsNorm) {
  expect_all(std::array{
      Written{"with a weight", [](Graph& g, DType t) { return g.mul(row(g, t), rms(g, rows(g, t))); },
              "rms_norm"},
      Written{"without one", [](Graph& g, DType t) { return rms(g, rows(g, t)); }, "rms_norm"},
      Written{"divided by a root; a sum, divided by its length",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), most = g.div(g.sum(g.power(x, 2), -1), 8);
                return g.mul(g.div(x, g.sqrt(g.add(1e-5, most))), row(g, t, {1, 1, 8}));
              },
              "rms_norm"},
      Written{"a mean without its axis",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), m = g.reshape(mean(g, g.mul(x, x), -1, false), {3, 5, 1});
                return g.mul(g.mul(x, g.one("rsqrt", {g.add(m, 1e-5)})), row(g, t));
              },
              "rms_norm"},
      Written{"in f32, rounded before the weight",
              [](Graph& g, DType t) { return g.mul(row(g, t), g.cast(rms(g, wide(g, rows(g, t))), t)); },
              "rms_norm", DType::bf16},
      Written{
          "in f32, rounded after the weight",
          [](Graph& g, DType t) { return g.cast(g.mul(wide(g, row(g, t)), rms(g, wide(g, rows(g, t)))), t); },
          "rms_norm", DType::bf16},
      Written{"a weight of 1 + w, in f32",
              [](Graph& g, DType t) {
                const Value weight = g.add(wide(g, row(g, t)), 1);
                return g.cast(g.mul(rms(g, wide(g, rows(g, t))), weight), t);
              },
              "cast add cast rms_norm cast", DType::bf16},
      Written{"what follows is no row",
              [](Graph& g, DType t) { return g.mul(row(g, t, {5, 1}), rms(g, rows(g, t))); }, "rms_norm mul"},
  });
}

TEST(Recompose, RmsNormAndWhatIsNearlyOne) {
  const Written one{"", [](Graph& g, DType t) { return rms(g, rows(g, t), 3e-4); }};
  EXPECT_EQ(std::get<double>(compiler::attr(node_of(recomposed(written(one)), "rms_norm"), "epsilon")), 3e-4);
  expect_none(std::array{
      Written{"over another axis", [](Graph& g, DType t) { return rms(g, rows(g, t), 1e-6, 1); }},
      Written{"epsilon outside of the root",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.div(x, g.add(g.sqrt(mean(g, g.mul(x, x))), 1e-5));
              }},
      Written{"no epsilon",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.mul(x, g.one("rsqrt", {mean(g, g.mul(x, x))}));
              }},
      Written{"a sum, divided by another number",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.div(x, g.sqrt(g.add(g.div(g.sum(g.mul(x, x), -1), 7), 1e-5)));
              }},
      Written{"the mean of another value",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), z = rows(g, t, "z");
                return g.mul(x, g.one("rsqrt", {g.add(mean(g, g.mul(z, z)), 1e-5)}));
              }},
      Written{"no square",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.mul(x, g.one("rsqrt", {g.add(mean(g, x), 1e-5)}));
              }},
  });
}

Value centred_norm(Graph& g, Value x, double epsilon = 1e-5, int64_t of_mean = -1, int64_t of_variance = -1) {
  const Value c = g.sub(x, mean(g, x, of_mean));
  return g.mul(c, g.one("rsqrt", {g.add(mean(g, g.mul(c, c), of_variance), epsilon)}));
}
Value variance(Graph& g, Value x, int64_t correction) {
  return g.one("variance", {x}, {{"axes", Shape{-1}}, {"keep", int64_t{1}}, {"correction", correction}});
}

TEST(Recompose, LayerNorm) {
  expect_all(std::array{
      Written{"with weight and bias",
              [](Graph& g, DType t) {
                return g.add(g.mul(centred_norm(g, rows(g, t)), row(g, t)), row(g, t, {8}, "b"));
              },
              "layer_norm"},
      Written{"without them, of the op of a variance, divided by a root",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.div(g.sub(x, mean(g, x)), g.sqrt(g.add(variance(g, x, 0), 1e-5)));
              },
              "layer_norm"},
      Written{"a bias alone", [](Graph& g, DType t) { return g.add(row(g, t), centred_norm(g, rows(g, t))); },
              "layer_norm"},
      Written{"two axes",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                const auto m = [&](Value v) {
                  return g.one("mean", {v}, {{"axes", Shape{1, 2}}, {"keep", int64_t{1}}});
                };
                const Value c = g.sub(x, m(x)), n = g.div(c, g.sqrt(g.add(m(g.one("square", {c})), 1e-3)));
                return g.mul(n, row(g, t, {5, 8}));
              },
              "layer_norm"},
      Written{"in f32 among halves",
              [](Graph& g, DType t) {
                const Value n = g.cast(centred_norm(g, wide(g, rows(g, t))), t);
                return g.add(g.mul(n, row(g, t)), row(g, t, {8}, "b"));
              },
              "layer_norm", DType::bf16},
      Written{"a weight for each channel is another norm's",
              [](Graph& g, DType t) { return g.mul(centred_norm(g, rows(g, t)), row(g, t, {5, 1})); },
              "layer_norm mul"},
  });
  expect_none(std::array{
      Written{"n - 1",
              [](Graph& g, DType t) {
                const Value x = rows(g, t);
                return g.div(g.sub(x, mean(g, x)), g.sqrt(g.add(variance(g, x, 1), 1e-5)));
              }},
      Written{"over the first axes",
              [](Graph& g, DType t) { return centred_norm(g, rows(g, t), 1e-5, 0, 0); }},
      Written{"mean and variance over different axes",
              [](Graph& g, DType t) { return centred_norm(g, rows(g, t), 1e-5, -1, 1); }},
      Written{"epsilon outside of the root",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), c = g.sub(x, mean(g, x));
                return g.div(c, g.add(g.sqrt(mean(g, g.mul(c, c))), 1e-5));
              }},
      Written{"what is scaled is not centred",
              [](Graph& g, DType t) {
                const Value x = rows(g, t), c = g.sub(x, mean(g, x));
                return g.mul(x, g.one("rsqrt", {g.add(mean(g, g.mul(c, c)), 1e-5)}));
              }},
  });
}

}  // namespace
}  // namespace weft::testing::recompose_test

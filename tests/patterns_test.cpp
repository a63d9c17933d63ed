#include <numeric>

#include "base/element.h"
#include "compiler/module.h"
#include "lab/passes.h"
#include "recompose_rig.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Layouts of convolutions, and rows that are written where they lie: each pass alone, in any order with
// others, with intermediates as outputs; what is nearly such a graph stays, and a wrong pass is named.
namespace weft::testing::patterns_test {
namespace {

using namespace recompose_rig;
using compiler::Module;
using compiler::Options;
using compiler::Pass;

Options with_all_kernels() {
  return {.has_kernel = [](auto&&...) { return true; }};
}
Graph laid_out(const Graph& g, const Options& options = with_all_kernels()) {
  Module m{g};
  raise_if(compiler::choose_layouts(m, options));
  raise_if(ir::verify(m.graph));
  raise_if(compiler::remove_dead_nodes(m, options));
  return std::move(m.graph);
}
size_t count(const Graph& g, std::string_view op) {
  return static_cast<size_t>(
      std::ranges::count_if(g.nodes, [&](const ir::Node& n) { return op == n.op->name; }));
}

Value conv(Graph& g, Value x, int64_t out, int64_t window, const char* name) {
  const DType t = x.dtype();
  const Value w = g.weight(name, {t, {out, x.shape()[1], window, window}});
  return g.one("conv", {x, w}, {{"padding", Shape{window / 2, window / 2, window / 2, window / 2}}});
}
Value biased(Graph& g, Value y, const char* name) {
  return g.add(y, g.weight(name, {y.dtype(), {y.shape()[1], 1, 1}}));
}
Value picture(Graph& g, DType t = DType::f32) { return g.input("x", {t, {2, 3, 5, 4}}); }
Value relu(Graph& g, Value x) { return g.one("relu", {x}); }

/// A block of a ResNet, whose shortcut is a convolution.
Value block(Graph& g, Value x) {
  const Value a = relu(g, biased(g, conv(g, x, 6, 3, "w1"), "b1"));
  const Value b = biased(g, conv(g, a, 6, 1, "w2"), "b2");
  return relu(g, g.add(b, biased(g, conv(g, x, 6, 1, "w3"), "b3")));
}
Value spatial_mean(Graph& g, Value x, bool keep) {
  return g.one("mean", {x}, {{"axes", Shape{2, 3}}, {"keep", int64_t{keep}}});
}

/// What is written, and how many conversions are left of it.
struct Chain {
  const char* how;
  void (*write)(Graph&);
  size_t permutes, convolutions;
};
const Chain kChains[] = {
    {"a block, averaged: only its input is converted",
     [](Graph& g) { g.output("y", spatial_mean(g, block(g, picture(g)), false)); }, 1, 3},
    {"a block: and its result", [](Graph& g) { g.output("y", block(g, picture(g))); }, 2, 3},
    {"an average that keeps its axes, as a gate",
     [](Graph& g) {
       const Value y = block(g, picture(g)), gate = g.sigmoid(conv(g, spatial_mean(g, y, true), 6, 1, "w4"));
       g.output("y", spatial_mean(g, g.mul(y, gate), false));
     },
     1, 4},
    {"an intermediate that is an output, too",
     [](Graph& g) {
       const Value x = picture(g), a = conv(g, x, 6, 3, "w1"), b = relu(g, a);
       g.output("a", a), g.output("y", conv(g, b, 2, 1, "w2"));
     },
     3, 2},
    {"joined channels",
     [](Graph& g) {
       const Value x = picture(g), a = conv(g, x, 2, 3, "w1"), b = conv(g, x, 4, 1, "w2");
       g.output("y", conv(g, g.one("concat", {a, b, x}, {{"axis", int64_t{-3}}}), 3, 1, "w3"));
     },
     2, 3},
    {"a sum with a tensor, which is converted, and with a matrix of numbers",
     [](Graph& g) {
       const Value y = conv(g, picture(g), 6, 3, "w1"), z = g.input("z", {DType::f32, {2, 6, 5, 4}});
       const Value places = g.input("p", {DType::f32, {5, 4}}),
                   scale = g.input("s", {DType::f32, {2, 6, 1, 1}});
       g.output("y", spatial_mean(g, g.add(g.mul(g.add(y, z), scale), g.mul(places, 0.5)), false));
     },
     2, 1},
    {"a cube, whose axes only their order tells apart, and a square beside it",
     [](Graph& g) {
       const Value x = g.input("x", {DType::f32, {1, 4, 4, 4}}), p = g.input("p", {DType::f32, {4, 4}});
       g.output("y", g.add(conv(g, x, 4, 3, "w1"), p));
     },
     2, 1},
    {"halves", [](Graph& g) { g.output("y", spatial_mean(g, block(g, picture(g, DType::bf16)), false)); }, 1,
     3},
    {"one axis, and a sum over it and the batch",
     [](Graph& g) {
       const Value x = g.input("x", {DType::f32, {2, 3, 7}}), w = g.weight("w", {DType::f32, {4, 3, 3}});
       const Value y = g.one("conv", {x, w}, {{"padding", Shape{1, 1}}});
       g.output("y", g.one("sum", {y}, {{"axes", Shape{0, -1}}, {"keep", int64_t{1}}}));
     },
     1, 1},
    {"one number, which another one meets",
     [](Graph& g) {
       const Value x = g.input("x", {DType::f32, {1, 4, 1, 1}});
       g.output("y", g.add(g.input("s", {DType::f32, {}}), conv(g, x, 1, 1, "w1")));
     },
     0, 1},
    {"a sum over channels is read as it was",
     [](Graph& g) { g.output("y", g.one("sum", {block(g, picture(g))}, {{"axes", Shape{1}}})); }, 2, 3},
};

TEST(Layouts, ConversionsThatWouldMeetAreNotMade) {
  for (const Chain& c : kChains) {
    SCOPED_TRACE(c.how);
    Graph g;
    c.write(g);
    raise_if(Status(g.status()));
    const Graph after = laid_out(g);
    EXPECT_EQ(count(after, "conv"), 0u);
    EXPECT_EQ(count(after, "conv_channels_last"), c.convolutions);
    EXPECT_EQ(count(after, "permute"), c.permutes) << ir::print(after);
    expect_same_numbers(g, after);
  }
}

TEST(Layouts, StayWhereNoKernelWantsOthers) {
  Graph g;
  g.output("y", block(g, picture(g)));
  EXPECT_EQ(ir::print(laid_out(g, {})), ir::print(g));
  Options small = with_all_kernels();  // one that takes windows of one element only
  small.has_kernel = [](const ir::OpDef&, std::span<const TensorType* const> in, auto&&...) {
    return in[1]->shape.back() == Dim(1);
  };
  const Graph after = laid_out(g, small);
  EXPECT_EQ(count(after, "conv"), 1u);
  EXPECT_EQ(count(after, "conv_channels_last"), 2u);
  expect_same_numbers(g, after);
}

// The gradient of filters reads x as it was written: it would be converted back.
TEST(Layouts, StayInTraining) {
  Graph g;
  const Value x = picture(g), y = conv(g, x, 6, 3, "w1");
  g.output("y", relu(g, y));
  g.output("dw",
           g.one("conv_weight_grad", {x, y}, {{"kernel", Shape{3, 3}}, {"padding", Shape{1, 1, 1, 1}}}));
  EXPECT_EQ(ir::print(laid_out(g)), ir::print(g));
}

// Views without elements that move are views.
TEST(Layouts, AxesOfSizeOneMoveAsViews) {
  Graph g;
  g.output("y", conv(g, g.input("x", {DType::f32, {4, 5, 1, 1}}), 3, 1, "w"));
  const Graph after = laid_out(g);
  EXPECT_EQ(count(after, "permute"), 0u) << ir::print(after);
  EXPECT_EQ(count(after, "reshape"), 2u);
  expect_same_numbers(g, after);
}

TEST(Layouts, PassesMayRunInAnyOrder) {
  Graph g;
  const Value x = picture(g), a = relu(g, biased(g, conv(g, x, 6, 3, "w1"), "b1"));
  const Value pooled = g.one("adaptive_avg_pool", {a}, {{"size", Shape{1, 1}}});
  g.output("a", a), g.output("y", g.matmul(g.reshape(pooled, {2, 6}), g.weight("w", {DType::f32, {6, 3}})));
  std::vector<Pass> passes(compiler::pipeline().begin(),
                           compiler::pipeline().end() - 3);  // not those by number
  const Options options = with_all_kernels();
  for (size_t turn = 0; turn < 2 * passes.size(); ++turn) {
    std::ranges::rotate(passes, passes.begin() + 1);
    if (turn == passes.size()) std::ranges::reverse(passes);
    Module m{g};
    for (const Pass& pass : passes) {
      raise_if(pass.run(m, options));
      raise_if(ir::verify(m.graph).at(pass.name));
    }
    EXPECT_EQ(count(m.graph, "conv_channels_last"), 1u);
    EXPECT_EQ(count(m.graph, "adaptive_avg_pool"), 0u);
    expect_same_numbers(g, m.graph);
  }
}

// ---- one form of what may be written in several

struct Form {
  const char* how;
  Value (*write)(Graph&, Value x);  ///< of f32[3, 5, 8]
  const char* ops;                  ///< that are left before the relu that reads it
};
const Form kForms[] = {
    {"a factor of one, on either side",
     [](Graph& g, Value x) { return g.mul(g.full(1, {}, DType::f32), g.mul(x, 1)); }, ""},
    {"a divisor of one, of the same shape",
     [](Graph& g, Value x) { return g.div(x, g.full(1, x.shape(), DType::f32)); }, ""},
    {"what one is divided by", [](Graph& g, Value x) { return g.div(g.full(1, {}, DType::f32), x); }, "div"},
    {"zero, subtracted", [](Graph& g, Value x) { return g.sub(x, 0); }, ""},
    {"zero, subtracted from", [](Graph& g, Value x) { return g.sub(g.full(0, {}, DType::f32), x); }, "sub"},
    {"a float and zero, whose sum has no sign", [](Graph& g, Value x) { return g.add(x, 0); }, "add"},
    {"integers and zero",
     [](Graph& g, Value x) {
       return g.cast(g.add(g.cast(x, DType::i32), g.full(0, {}, DType::i32)), DType::f32);
     },
     "cast cast"},
    {"a factor that makes it larger",
     [](Graph& g, Value x) { return g.mul(x, g.full(1, {2, 3, 5, 8}, DType::f32)); }, "mul"},
    {"casts to its own dtype and to a narrower one",
     [](Graph& g, Value x) { return g.cast(g.cast(g.cast(x, DType::f32), DType::f16), DType::f32); },
     "cast cast"},
    {"views of views",
     [](Graph& g, Value x) { return g.reshape(g.reshape(g.reshape(x, {15, 8}), {120}), {5, 24}); },
     "reshape"},
    {"views back and forth", [](Graph& g, Value x) { return g.reshape(g.reshape(x, {15, 8}), {3, 5, 8}); },
     ""},
    {"axes turned twice",
     [](Graph& g, Value x) {
       const auto turned = [&](Value v, Shape axes) { return g.one("permute", {v}, {{"axes", axes}}); };
       return turned(turned(x, {1, 2, 0}), {1, 2, 0});
     },
     "permute"},
    {"and three times",
     [](Graph& g, Value x) {
       for (int i = 0; i < 3; ++i) x = g.one("permute", {x}, {{"axes", Shape{1, 2, 0}}});
       return x;
     },
     ""},
    {"all of an axis, and a part", [](Graph& g, Value x) { return part(g, part(g, x, 0, 8), 0, 7); },
     "slice"},
};

TEST(Canonical, OneFormIsLeft) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.how);
    Graph g;
    g.output("y", relu(g, form.write(g, rows(g, DType::f32))));
    raise_if(Status(g.status()));
    Module m{g};
    raise_if(compiler::canonicalise(m, {}));
    raise_if(compiler::remove_dead_nodes(m, {}));
    raise_if(ir::verify(m.graph));
    std::string ops;
    for (const auto& n : m.graph.nodes)
      if (n.op->name != std::string_view("full")) ops += n.op->name + std::string(" ");
    EXPECT_EQ(ops, form.ops + std::string(*form.ops ? " relu " : "relu "));
    expect_same_numbers(g, m.graph);
  }
}

// A state's old value is gone when it is updated; an output is what it was.
TEST(Canonical, WhatIsOverwrittenOrAnOutputStays) {
  Graph g;
  const Value s = g.state("s", {DType::f32, {4}}), before = g.mul(s, 1);
  const Value one = g.full(1, {}, DType::f32), x = g.input("x", {DType::f32, {4}});
  g.states[0].after = g.one("assign", {s, x}).id();
  g.output("before", relu(g, before));
  g.output("x", g.mul(x, one));
  Module m{g};
  raise_if(compiler::canonicalise(m, {}));
  raise_if(compiler::remove_dead_nodes(m, {}));
  EXPECT_EQ(count(m.graph, "mul"), 2u) << ir::print(m.graph);
}

// ---- rows in place

/// A cache that two calls may write to, and what reads it.
using Write = std::vector<Tensor> (*)(Tensor& cache, const Tensor& rows, const Tensor& index);
Tensor scattered(const Tensor& x, const Tensor& rows, const Tensor& index) {
  return scatter(x, index, rows, -2);
}
Tensor read(const Tensor& x) { return softmax(x * 0.5, -1); }

const Write kInPlace[] = {
    [](Tensor& cache, const Tensor& rows, const Tensor& index) {
      const Tensor next = scattered(cache, rows, index), y = read(next);
      assign(cache, next);
      return std::vector{y};
    },
    [](Tensor& cache, const Tensor& rows, const Tensor& index) {  // the old value was read before
      const Tensor before = read(cache), next = scattered(cache, rows, index);
      assign(cache, next);
      return std::vector{before, read(next)};
    },
    [](Tensor& cache, const Tensor& rows, const Tensor& index) {  // what is written is an output
      const Tensor next = scattered(cache, rows, index);
      assign(cache, next);
      return std::vector{next, read(next)};
    }};
const Write kNotInPlace[] = {
    [](Tensor& cache, const Tensor& rows, const Tensor& index) {  // the old value is read behind it
      const Tensor next = scattered(cache, rows, index), y = read(next) + read(cache);
      assign(cache, next);
      return std::vector{y};
    },
    [](Tensor& cache, const Tensor& rows, const Tensor& index) {  // scattered into another tensor
      assign(cache, scattered(cache * 0.5, rows, index));
      return std::vector{read(cache)};
    },
    [](Tensor& cache, const Tensor& rows, const Tensor& index) {  // added to
      assign(cache, scatter_add(cache, index, rows, -2));
      return std::vector{read(cache)};
    }};

Tensor numbered(std::vector<int64_t> shape, int64_t seed) {
  std::vector<double> x(
      static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies())));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = 0.125 * static_cast<double>((static_cast<int64_t>(i) * 7 + seed) % 33 - 16);
  return Tensor::of(std::span<const double>(x), shape, DType::f32);
}

/// Three runs, the outputs of each, and the cache at the end; or the calls of the program.
struct Ran {
  std::vector<std::vector<double>> numbers;
  std::vector<std::string> calls;
};
Ran ran(Write write, const char* backend, bool fuse) {
  const OnBackend on(backend);
  Tensor cache = numbered({2, 6, 3}, 1).named("cache");
  const Dim n = Dim::symbol("patterns_rows", 1, 4);
  auto program = compile([&](const std::vector<Tensor>& in) { return write(cache, in[0], in[1]); },
                         {{"rows", {DType::f32, {2, n, 3}}}, {"index", {DType::i64, {n}}}}, {.fuse = fuse});
  Ran all;
  for (const auto& call : program.snapshot().calls) all.calls.push_back(call.op);
  const std::vector<std::vector<double>> places = {{0, 1, 2}, {3}, {5, 2, 5}};
  for (size_t i = 0; i < places.size(); ++i) {
    const auto count = static_cast<int64_t>(places[i].size());
    const Tensor index =
        cast(Tensor::of(std::span<const double>(places[i]), std::vector{count}, DType::f32), DType::i64);
    for (const Tensor& y : program({numbered({2, count, 3}, static_cast<int64_t>(5 * i)), index}))
      all.numbers.push_back(y.to_vector<double>());
  }
  all.numbers.push_back(program.state("cache").to_vector<double>());
  return all;
}
bool writes_rows(const Ran& r) { return std::ranges::count(r.calls, "assign_rows") > 0; }

TEST(RowsInPlace, ACacheIsWrittenWhereItLies) {
  for (const auto& backend : backends({"reference", "native", "openmp", "opencl", "far"}))
    for (const Write write : kInPlace) {
      const Ran fused = ran(write, backend.c_str(), true), plain = ran(write, backend.c_str(), false);
      EXPECT_TRUE(writes_rows(fused));
      EXPECT_EQ(std::ranges::count(fused.calls, "assign"), 0);
      EXPECT_FALSE(writes_rows(plain));
      EXPECT_EQ(fused.numbers, plain.numbers) << backend;
    }
}

TEST(RowsInPlace, WhatElseReadsTheOldValueKeepsIt) {
  for (const Write write : kNotInPlace) {
    const Ran fused = ran(write, "native", true);
    EXPECT_FALSE(writes_rows(fused));
    EXPECT_EQ(fused.numbers, ran(write, "native", false).numbers);
  }
}

// ---- wrong passes, which --verify-passes names

Status conversion_of_another_order(Module& m, const Options& options) {
  raise_if(compiler::choose_layouts(m, options));
  for (ir::Node& n : m.graph.nodes)  // [n, c, h, w] as if it were [n, h, c, w]; both are squares
    if (n.op->name == std::string_view("permute")) n.attrs[0] = Shape{0, 3, 2, 1};
  return {};
}
Status padding_of_another_axis(Module& m, const Options& options) {
  raise_if(compiler::choose_layouts(m, options));
  for (ir::Node& n : m.graph.nodes)
    if (n.op->name == std::string_view("conv_channels_last")) n.attrs[1] = Shape{2, 0, 1, 1};
  return {};
}
// Writes in place although the old value is read behind it.
Status rows_too_early(Module& m, const Options&) {
  auto& nodes = m.graph.nodes;
  const auto named = [&](std::string_view op) {
    return std::ranges::find_if(nodes, [&](const ir::Node& n) { return op == n.op->name; });
  };
  const auto scatter = named("scatter"), assign = named("assign");
  const int32_t made = scatter->outputs[0], next = assign->outputs[0], before = scatter->inputs[0];
  scatter->op = ir::find_op("assign_rows"), scatter->outputs[0] = next;
  nodes.erase(assign);
  for (ir::Node& n : nodes)
    if (n.op->name != std::string_view("assign_rows"))
      for (int32_t& id : n.inputs) id = id == made || id == before ? next : id;
  return {};
}

/// The pass that is found wrong, and why, of a program with this one alone.
std::string named_wrong(const Graph& g, Pass pass) {
  lab::PassCheck check([](const program::CompiledProgram& p) -> Result<std::vector<runtime::HostTensor>> {
    std::vector<runtime::HostTensor> all;
    for (const auto& in : p.inputs) {
      const TensorType& t = p.values[static_cast<size_t>(in.value)].type;
      runtime::HostTensor& x = all.emplace_back();
      x.type.dtype = t.dtype;
      for (const Dim d : t.shape) x.type.shape.push_back(d.value());
      const auto n = static_cast<size_t>(element_count(std::span<const int64_t>(x.type.shape)));
      x.bytes.resize(n * byte_size(t.dtype));
      for (size_t i = 0; i < n; ++i)
        store_element(t.dtype, x.bytes.data(), i,
                      t.dtype == DType::f32 ? 0.25 * ((i * 5) % 13) - 1 : double(i));
    }
    return all;
  });
  const compiler::Watch watch([&](const compiler::Stage& stage) { return check.see(stage); });
  const auto source = [&](const std::string& name) -> Result<program::Blob> {
    int32_t id = -1;
    for (const auto& w : g.weights) id = w.name == name ? w.value : id;
    for (const auto& s : g.states) id = s.name == name ? s.before : id;
    const auto n =
        static_cast<size_t>(element_count(std::span(g.types[static_cast<size_t>(id)].shape)).value());
    std::vector<std::byte> bytes(n * 4);
    for (size_t i = 0; i < n; ++i) store_element(DType::f32, bytes.data(), i, 0.125 * ((i * 3) % 11) - 0.5);
    return program::Blob::copy_of(bytes.data(), bytes.size());
  };
  raise_if(compiler::compile(g, source, with_all_kernels(), std::span(&pass, 1)).status());
  return check.wrong() ? check.wrong()->after + ": " + check.wrong()->wrong : "";
}

TEST(Layouts, AWrongConversionIsNamed) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {1, 4, 4, 4}});
  g.output("y", conv(g, relu(g, conv(g, x, 4, 3, "w1")), 4, 3, "w2"));
  EXPECT_EQ(named_wrong(g, {"choose_layouts", compiler::choose_layouts}), "");
  EXPECT_TRUE(
      named_wrong(g, {"another_order", conversion_of_another_order}).starts_with("another_order: output y"));
  EXPECT_TRUE(
      named_wrong(g, {"another_axis", padding_of_another_axis}).starts_with("another_axis: output y"));
}

TEST(RowsInPlace, AWriteThatIsTooEarlyIsNamed) {
  Graph g;
  const Value cache = g.state("cache", {DType::f32, {6, 3}}), rows = g.input("rows", {DType::f32, {2, 3}});
  const Value next = g.one("scatter", {cache, g.input("index", {DType::i64, {2}}), rows});
  g.output("y", g.sub(next, cache));
  const std::array in = {cache, next};
  g.states[0].after = g.call("assign", in)[0].id();
  EXPECT_EQ(named_wrong(g, {"write_rows_in_place", compiler::write_rows_in_place}), "");
  EXPECT_TRUE(named_wrong(g, {"too_early", rows_too_early}).starts_with("too_early: output y"));
}

}  // namespace
}  // namespace weft::testing::patterns_test

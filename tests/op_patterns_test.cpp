#include <filesystem>
#include <random>
#include <set>

#include "imported_model.h"
#include "recompose_rig.h"

// Each pattern of the compiler as an exporter writes it: alone, with its operands exchanged, with an
// intermediate that is an output, and with one that something else reads. What each of them becomes, that it
// says the same, and that the order in which patterns are tried decides nothing.
namespace weft::testing::op_patterns_test {
namespace {

using namespace recompose_rig;
using compiler::Module;
using compiler::Pass;

enum class How : uint8_t { alone, exchanged, output, second_use };
constexpr How kWays[] = {How::alone, How::exchanged, How::output, How::second_use};
constexpr const char* kNames[] = {"alone", "operands exchanged", "an intermediate is an output",
                                  "an intermediate has a second use"};

/// A graph that is written in one of the ways.
struct Writer {
  Graph& g;
  How how;
  Value add(Value a, Value b) const { return how == How::exchanged ? g.add(b, a) : g.add(a, b); }
  Value mul(Value a, Value b) const { return how == How::exchanged ? g.mul(b, a) : g.mul(a, b); }
  Value op(const char* name, Value x) const { return g.one(name, {x}); }
  /// An intermediate, which others may see.
  Value seen(Value v) const {
    if (how == How::output) g.output("seen", v);
    if (how == How::second_use) g.output("used", g.one("sum", {v}));
    return v;
  }
  Value x(const char* name = "x") const { return rows(g, DType::f32, name); }
  Value w(Shape shape = {8}, const char* name = "w") const {
    return row(g, DType::f32, std::move(shape), name);
  }
};

struct Pattern {
  const char* name;
  Value (*write)(const Writer&);
  const char* calls;         ///< that depend on an input, alone and with operands exchanged
  const char* seen_calls;    ///< where the intermediate is an output
  const char* shared_calls;  ///< where it has a second use
};

Value rms(const Writer& g, Value x) {
  const Value rest = g.add(mean(g.g, g.mul(x, x)), g.g.full(1e-5, {}, DType::f32));
  return g.mul(x, g.op("rsqrt", rest));
}
Value centred(const Writer& g, Value x) {
  const Value c = g.g.sub(x, mean(g.g, x)), rest = g.g.add(mean(g.g, g.g.mul(c, c)), 1e-5);
  return g.mul(c, g.op("rsqrt", rest));
}
Value layer_norm(const Writer& g, Value x) { return g.add(g.mul(centred(g, x), g.w()), g.w({8}, "b")); }
Value silu(const Writer& g, Value x) { return g.mul(x, g.g.sigmoid(x)); }
Value softmax(const Writer& g, Value x) {
  const Value e = g.op("exp", g.g.sub(x, g.g.max(x, -1)));
  return g.g.div(e, g.seen(g.g.sum(e, -1)));
}
Value linear(const Writer& g, Value x, const char* name = "filter") {
  return g.g.matmul(x, transposed(g.g, g.w({6, 8}, name)));
}

const Pattern kPatterns[] = {
    {"convolution, batch norm, activation",
     [](const Writer& g) {
       const Value x = input(g.g, DType::f32, {2, 3, 9, 8}), w = g.w({6, 3, 3, 3}, "filter");
       std::vector<Value> in = {g.g.one("conv", {x, w})};
       for (const char* name : {"mean", "variance", "gain", "shift"}) in.push_back(g.w({6}, name));
       return g.op("relu", g.seen(g.g.call("batch_norm", in)[0]));
     },
     "conv_elementwise", "conv_elementwise", "conv_add sum relu"},
    {"linear layer, bias, activation",
     [](const Writer& g) { return g.op("gelu", g.seen(g.add(linear(g, g.x()), g.w({6}, "bias")))); },
     "linear_gelu", "linear_gelu", "linear sum gelu"},
    {"sum and rms norm",
     [](const Writer& g) {
       const Value x = g.seen(g.add(g.x("a"), g.x("b")));
       return g.g.one("rms_norm", {x, g.w()});
     },
     "add_rms_norm", "add_rms_norm", "add sum rms_norm"},
    {"sum and layer norm in small ops",
     [](const Writer& g) { return layer_norm(g, g.seen(g.add(g.x("a"), g.x("b")))); }, "add_layer_norm",
     "add_layer_norm", "add sum layer_norm"},
    {"rms norm", [](const Writer& g) { return g.mul(g.seen(rms(g, g.x())), g.w()); }, "rms_norm",
     "rms_norm mul", "rms_norm sum mul"},
    {"layer norm",
     [](const Writer& g) { return g.add(g.seen(g.mul(centred(g, g.x()), g.w())), g.w({8}, "b")); },
     "layer_norm", "layer_norm add", "layer_norm sum add"},
    {"gate",
     [](const Writer& g) {
       const Value x = g.x(), gate = linear(g, x, "gate"), up = linear(g, x, "up");
       return g.mul(g.seen(silu(g, gate)), up);
     },
     "linear_linear_elementwise", "linear_linear_elementwise", "linear_linear_silu sum mul"},
    {"gelu",
     [](const Writer& g) {
       const Value x = g.x(), erf = g.op("erf", g.g.mul(x, std::sqrt(0.5)));
       return g.g.mul(g.mul(x, g.seen(g.g.add(erf, 1))), 0.5);
     },
     "gelu", "region", "region sum region"},
    {"masked softmax",
     [](const Writer& g) {
       const Value x = g.x(), mask = input(g.g, DType::boolean, {3, 5, 8}, "mask");
       return softmax(g, g.g.where(mask, x, -1e4));
     },
     "where_softmax", "where max region sum div", "where max region sum sum div"},
    {"softmax of a sum", [](const Writer& g) { return softmax(g, g.add(g.x(), g.w({5, 8}, "bias"))); },
     "add_softmax", "add max region sum div", "add max region sum sum div"},
    {"attention of grouped heads",
     [](const Writer& g) {
       const auto heads = [&](Value x) {
         return g.g.reshape(g.g.broadcast(g.g.reshape(x, {2, 2, 1, 7, 8}), {2, 2, 2, 7, 8}), {2, 4, 7, 8});
       };
       const Value q = input(g.g, DType::f32, {2, 4, 5, 8}, "q"),
                   k = heads(input(g.g, DType::f32, {2, 2, 7, 8}, "k")),
                   v = heads(input(g.g, DType::f32, {2, 2, 7, 8}, "v"));
       const Value mask = input(g.g, DType::f32, {2, 1, 5, 7}, "mask");
       const Value s = g.add(g.g.mul(g.g.matmul(q, transposed(g.g, k)), 0.25), mask);
       return g.g.matmul(g.seen(g.g.one("softmax", {s})), v);
     },
     "attention", "broadcast broadcast transpose matmul_elementwise softmax matmul",
     "broadcast broadcast transpose matmul_elementwise softmax sum matmul"},
    {"rotary positions",
     [](const Writer& g) {
       const Value q = input(g.g, DType::f32, {2, 4, 5, 8}, "q"), half = g.w({5, 4}, "angle");
       const Value angle = joined(g.g, half, half);
       const Value turned = g.seen(joined(g.g, g.g.neg(part(g.g, q, 4, 8)), part(g.g, q, 0, 4)));
       return g.add(g.mul(q, g.op("cos", angle)), g.mul(turned, g.op("sin", angle)));
     },
     "rope", "slice slice mul concat region", "slice slice mul concat sum region"},
};

Graph graph_of(const Pattern& p, How how) {
  Graph g;
  const Value y = p.write({g, how});
  g.output("y", y);
  raise_if(Status(g.status()));
  return g;
}

program::CompiledProgram compiled(const Graph& g, const std::vector<Array>& numbers, bool fuse,
                                  std::span<const Pass> passes = compiler::pipeline()) {
  const auto source = [&](const std::string& name) -> Result<program::Blob> {
    for (size_t i = 0; i < g.weights.size(); ++i)
      if (g.weights[i].name == name) {
        const auto bytes = conformance::encode(numbers[g.inputs.size() + i]);
        return program::Blob::copy_of(bytes.data(), bytes.size());
      }
    return invalid("no weight '{}'", name);
  };
  return value_or_raise(compiler::compile(g, source, {.fuse = fuse}, passes));
}

/// The calls that depend on an input, without views and constants.
std::string calls_of(const program::CompiledProgram& p) {
  std::set<int32_t> varies;
  for (const auto& i : p.inputs) varies.insert(i.value);
  std::string all;
  for (const auto& call : p.calls) {
    if (std::ranges::none_of(call.inputs, [&](int32_t id) { return varies.count(id) != 0; })) continue;
    varies.insert(call.outputs.begin(), call.outputs.end());
    if (call.op != "reshape") all += (all.empty() ? "" : " ") + call.op;
  }
  return all;
}

// Runs twice in one session: the second run finds the first one's memory.
std::vector<Array> ran(std::shared_ptr<const program::CompiledProgram> p, const std::vector<Array>& numbers,
                       const std::string& backend) {
  const auto session =
      value_or_raise(runtime::Session::create(p, value_or_raise(runtime::devices_for(backend, {})), {}));
  std::vector<runtime::HostTensor> in;
  for (size_t i = 0; i < p->inputs.size(); ++i)
    in.push_back({{numbers[i].dtype, IntList(numbers[i].shape.begin(), numbers[i].shape.end())},
                  conformance::encode(numbers[i])});
  std::vector<Array> out;
  value_or_raise(session->run(in));
  for (const auto& t : value_or_raise(session->run(in)))
    out.push_back(conformance::decode(t.type.dtype, {t.type.shape.begin(), t.type.shape.end()}, t.bytes));
  return out;
}

TEST(OpPatterns, BecomeFewCallsInEveryPosition) {
  const std::vector<std::string> few = {"reference", "native"}, all = {"reference", "native", "opencl"};
  for (const Pattern& p : kPatterns)
    for (const How how : kWays) {
      SCOPED_TRACE(fmt::format("{}: {}", p.name, kNames[static_cast<size_t>(how)]));
      const Graph g = graph_of(p, how);
      const auto numbers = numbers_for(g);
      const char* wanted = how == How::output       ? p.seen_calls
                           : how == How::second_use ? p.shared_calls
                                                    : p.calls;
      EXPECT_EQ(calls_of(compiled(g, numbers, true)), wanted);
      const auto bounds = value_or_raise(conformance::noise_bound(g, numbers));
      for (const bool fuse : {true, false}) {
        const auto program = std::make_shared<program::CompiledProgram>(compiled(g, numbers, fuse));
        const bool text = fuse && how == How::alone;  // compiling takes most of the time
        for (const auto& backend : backends(text ? all : few)) {
          const auto got = ran(program, numbers, backend);
          for (size_t k = 0; k < bounds.size(); ++k) {
            const auto verdict = conformance::judge(got[k], bounds[k]);
            EXPECT_TRUE(verdict.ok) << backend << (fuse ? ", fused: " : ": ") << verdict.reason;
          }
        }
      }
    }
}

// ---- in any order

std::vector<const Recomposition*> recompositions = folder();  // in the order that is tried

Status recompose_in_that_order(Module& m, const compiler::Options& options) {
  WEFT_CHECK(compiler::remove_dead_nodes(m, options));
  WEFT_CHECK(compiler::recompose(m.graph, recompositions));
  return compiler::merge_equal_nodes(m, options);
}

/// The pipeline with its patterns shuffled: the recompositions, those that refer to nodes by number, and the
/// rows in place, which run anywhere before these.
std::vector<Pass> shuffled(std::mt19937& random) {
  std::ranges::shuffle(recompositions, random);
  std::vector<Pass> all(compiler::pipeline().begin(), compiler::pipeline().end());
  const auto at = [&](std::string_view name) {
    return std::ranges::find_if(all, [&](const Pass& p) { return p.name == name; });
  };
  *at("recompose_ops") = {"recompose_ops", recompose_in_that_order};
  const Pass rows = *at("write_rows_in_place");
  all.erase(at("write_rows_in_place"));
  const auto by_number = at("fuse_elementwise");
  std::shuffle(by_number, all.end(), random);
  const auto before = static_cast<size_t>(by_number - all.begin());
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(1 + random() % before), rows);
  return all;
}

std::string order_of(std::span<const Pass> passes) {
  std::string s;
  for (const Pass& p : passes) s += fmt::format(" {}", p.name);
  for (const Recomposition* r : recompositions) s += fmt::format(" {}", r->name);
  return s;
}

/// The file that the standard order gives, in 12 other orders, too: the numbers are those of that file.
void expect_same_file_in_any_order(
    const std::function<program::CompiledProgram(std::span<const Pass>)>& compiled_by) {
  const std::string file = program::serialize(compiled_by(compiler::pipeline()));
  for (uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    const auto passes = shuffled(random);
    const auto program = compiled_by(passes);
    EXPECT_TRUE(program::serialize(program) == file) << "seed " << seed << ":" << order_of(passes);
  }
}

TEST(OpPatterns, GiveTheSameFileInAnyOrder) {
  for (const Pattern& p : kPatterns)
    for (const How how : kWays) {
      SCOPED_TRACE(fmt::format("{}: {}", p.name, kNames[static_cast<size_t>(how)]));
      const Graph g = graph_of(p, how);
      const auto numbers = numbers_for(g);
      expect_same_file_in_any_order([&](auto passes) { return compiled(g, numbers, true, passes); });
    }
}

TEST(OpPatterns, GiveTheSameFileOfModelsInAnyOrder) {
  for (const char* folder : {"import", "decoders"})
    for (const auto& entry : std::filesystem::directory_iterator(imported::kData + folder)) {
      const std::string path = entry.path().string() + "/";
      if (!std::filesystem::exists(path + "model.safetensors")) continue;
      SCOPED_TRACE(path);
      const std::array files = {value_or_raise(formats::read_safetensors(path + "model.safetensors"))};
      const auto m = imported::model_of(imported::read(path + "model_ir.json"), files, {});
      const auto weights = [&](const std::string& name) -> Result<program::Blob> {
        const auto& bytes = m.imported.weights.at(name).bytes;
        return program::Blob{bytes.data(), bytes.size(), {}};
      };
      expect_same_file_in_any_order([&](auto passes) {
        return value_or_raise(compiler::compile(*m.imported.graph, weights, {}, passes));
      });
    }
}

}  // namespace
}  // namespace weft::testing::op_patterns_test

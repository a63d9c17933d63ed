#include "weft/state_dict.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "test_backends.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/safetensors.h"
#include "weft/sequential.h"
#include "weft/vision.h"

// Modules by name: in files, in memory, tied, frozen.
namespace weft::state_dict_test {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

class StateDicts : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const char* name) const { return (folder_ / name).string(); }
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_state_dict_{}", ::getpid());
  const OnBackend on_{"native"};
};

nn::Sequential small() {
  return nn::Sequential(nn::Conv2d({.in = 1, .out = 2, .kernel = 3}), nn::BatchNorm2d(2), relu, nn::flatten,
                        nn::Linear(2 * 4, 3), nn::Dropout(0.5));
}
Tensor images() {
  std::vector<double> pixels(2 * 16);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<double>(i * 7 % 11) / 11 - 0.4;
  const int64_t shape[] = {2, 1, 4, 4};
  return Tensor::of(std::span<const double>(pixels), shape, DType::f32);
}

TEST_F(StateDicts, AModuleGoesToAFileAndBack) {
  auto model = small();
  nn::build(model, {.seed = 3});
  nn::set_training(model, true);
  (void)model(images());  // moves running statistics and the state of dropout
  nn::set_training(model, false);
  nn::save(model, at("m.safetensors"), {{"made by", "a test"}});

  auto fresh = small(), other = small();
  nn::build(other, {.seed = 4});
  const Tensor held = nn::parameters(other)[0];
  for (auto* to : {&fresh, &other}) {
    const auto report = nn::load(*to, at("m.safetensors"));
    EXPECT_TRUE(report.missing.empty() && report.unexpected.empty());
    const auto want = nn::state_dict(model), got = nn::state_dict(*to);
    ASSERT_EQ(got.size(), want.size());
    for (const auto& [name, t] : want) EXPECT_EQ(got.at(name).to_bytes(), t.to_bytes()) << name;
    EXPECT_EQ((*to)(images()).to_bytes(), model(images()).to_bytes());
    for (const auto& p : nn::parameters(*to)) EXPECT_TRUE(p.requires_grad()) << p.name();
  }
  EXPECT_EQ(held.to_bytes(), nn::parameters(model)[0].to_bytes()) << "a built module is loaded in place";
  EXPECT_NE(nn::state_dict(model).at("1.running_mean").to_vector<float>()[0], 0) << "states are kept too";
}

TEST_F(StateDicts, WhatDoesNotFitIsListedAndChangesNothing) {
  nn::Linear model(2, 3);
  nn::build(model);
  const auto before = model.weight.to_bytes();
  const auto state = [&](const char* name, const Tensor& t) {
    return std::map<std::string, Tensor>{{"weight", Tensor::of({1, 2, 3, 4, 5, 6}, {3, 2})}, {name, t}};
  };
  const Tensor three = Tensor::of({1, 2, 3}, {3});
  EXPECT_EQ(
      error_of([&] { nn::load_state_dict(model, state("shift", three)); }),
      "invalid argument: the state does not fit the module: missing 'bias'; unexpected 'shift'; without "
      "`strict`, what has a counterpart is taken");
  const auto wrong = state("bias", Tensor::of({1, 2}, {2}));
  for (const bool strict : {true, false})
    EXPECT_EQ(
        error_of([&] { nn::load_state_dict(model, wrong, {.strict = strict}); }),
        "invalid argument: the state does not fit the module: 'bias' is f32[2], the module wants f32[3]");
  EXPECT_NE(error_of([&] {
              nn::load_state_dict(model, state("bias", Tensor::of({1, 2, 3}, {3}, DType::i32)));
            }).find("'bias' is i32[3], the module wants f32[3]"),
            std::string::npos);
  EXPECT_EQ(model.weight.to_bytes(), before);
  const auto report = nn::load_state_dict(model, state("shift", three), {.strict = false});
  EXPECT_EQ(report.missing, std::vector<std::string>{"bias"});
  EXPECT_EQ(report.unexpected, std::vector<std::string>{"shift"});
  EXPECT_EQ(model.weight.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(StateDicts, FloatsAreRoundedToTheModule) {
  nn::Linear wide(1, 2, false), half(1, 2, false);
  nn::load_state_dict(wide, {{"weight", Tensor::of({1.00390625, -3}, {2, 1})}});
  nn::load_state_dict(half, nn::state_dict(wide), {.dtype = DType::bf16});
  EXPECT_EQ(half.weight.dtype(), DType::bf16);
  EXPECT_EQ(half.weight.to_vector<float>(), (std::vector<float>{1, -3}));
  nn::load_state_dict(wide, nn::state_dict(half));
  EXPECT_EQ(wide.weight.to_vector<float>(), (std::vector<float>{1, -3}));
}

// A number that the module's dtype has no room for is none to round; an infinity is one.
TEST_F(StateDicts, NoNumberBecomesAnInfinity) {
  nn::Linear model(1, 2, false);
  const std::map<std::string, Tensor> large = {{"weight", Tensor::of({1e300, -3}, {2, 1}, DType::f64)}};
  EXPECT_EQ(error_of([&] { nn::load_state_dict(model, large); }),
            "invalid argument: the state: 'weight' has numbers beyond f32, the dtype of the module; build it "
            "in another one");
  EXPECT_FALSE(model.weight);
  nn::load_state_dict(model, {{"weight", Tensor::of({-INFINITY, 60000}, {2, 1})}}, {.dtype = DType::f16});
  EXPECT_EQ(model.weight.to_vector<float>(), (std::vector<float>{-INFINITY, 60000}));
  io::write_safetensors(at("large"), {{"weight", Tensor::of({1, 70000}, {2, 1}, DType::bf16)}});
  EXPECT_NE(
      error_of([&] { nn::load(model, at("large")); }).find(at("large") + ": 'weight' has numbers beyond f16"),
      std::string::npos);
  EXPECT_EQ(error_of([&] { nn::load(model, at("large"), {.dtype = DType::i32}); }),
            "invalid argument: dtype must be a float, got i32");
}

/// One state of a dtype that parameters can't have.
struct Stored : nn::Module {
  explicit Stored(DType dtype) : dtype(dtype) {}
  void fields(nn::Fields& f) override { f.state("x", x, {130}, dtype); }
  DType dtype;
  Tensor x;
};

// Every pair of floats: what is finite before and not after is refused, wherever it stands, and nothing else.
TEST_F(StateDicts, WhatConvertingLosesIsKnownForEveryPairOfFloats) {
  const DType floats[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2};
  const double numbers[] = {448,   464,     480,    57344, 61440,    65504, 65519,
                            65520, 3.38e38, 3.4e38, 1e300, INFINITY, NAN};
  for (const DType from : floats)
    for (const DType to : floats)
      for (size_t i = 0; i < std::size(numbers); ++i) {
        std::vector<double> values(130);
        values[i * 10] = -numbers[i];
        const Tensor x = Tensor::of(std::span<const double>(values), std::vector<int64_t>{130}, from);
        const bool finite = std::isfinite(x.to_vector<double>()[i * 10]);
        const bool after = std::isfinite(cast(x, to).to_vector<double>()[i * 10]);
        Stored module(to);
        const std::string error = error_of([&] { nn::load_state_dict(module, {{"x", x}}); });
        EXPECT_EQ(error != "no error", finite && !after)
            << name(from) << " to " << name(to) << " " << numbers[i] << ": " << error;
      }
}

TEST_F(StateDicts, AModuleCanTakeItsOwnTensorsInAnotherOrder) {
  nn::Sequential model(nn::Linear(2, 2), nn::Linear(2, 2), nn::Linear(2, 2));
  nn::build(model, {.seed = 5});
  auto state = nn::state_dict(model);
  std::map<std::string, std::vector<float>> before;
  for (const auto& [name, t] : state) before[name] = t.to_vector<float>();
  for (const char* of : {".weight", ".bias"}) {                  // each layer takes the next one's
    const Tensor first = state[std::string("0") + of].detach();  // shares the memory
    state[std::string("0") + of] = state[std::string("1") + of];
    state[std::string("1") + of] = state[std::string("2") + of];
    state[std::string("2") + of] = first;
  }
  nn::load_state_dict(model, state);
  const auto after = nn::state_dict(model);
  for (const auto& [name, t] : after)
    EXPECT_EQ(t.to_vector<float>(), before[fmt::format("{}{}", (name[0] - '0' + 1) % 3, name.substr(1))])
        << name;
  nn::load_state_dict(model, {{"0.weight", transpose(after.at("0.weight"))}}, {.strict = false});
  EXPECT_EQ(nn::state_dict(model).at("0.weight").to_vector<float>()[1], before["1.weight"][2]);
}

TEST_F(StateDicts, APartGoesIntoAModuleThatWasBuilt) {
  nn::Linear model(2, 3);
  const std::map<std::string, Tensor> part = {{"bias", Tensor::of({1, 2, 3}, {3})}};
  EXPECT_EQ(error_of([&] { nn::load_state_dict(model, part, {.strict = false}); }),
            "invalid argument: the state leaves fields without elements; not built 'weight'; call "
            "nn::build(model) before loading a part of it");
  EXPECT_FALSE(model.bias);
  nn::build(model);
  EXPECT_EQ(nn::load_state_dict(model, part, {.strict = false}).missing, std::vector<std::string>{"weight"});
}

TEST_F(StateDicts, FilesAreReadOneTensorAtATime) {
  const std::map<std::string, Tensor> all = {{"a", Tensor::of({1, 0, 1}, {3}, DType::boolean)},
                                             {"b", Tensor::of({1, 2, 3, 4}, {2, 2}, DType::f64)},
                                             {"c", Tensor::of({7}, {}, DType::bf16)},
                                             {"none", Tensor::of({}, {0, 5})}};
  io::write_safetensors(at("t"), all, {{"key", "value"}});
  const auto file = io::Safetensors::map(at("t"));
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"key", "value"}}));
  ASSERT_EQ(file.tensors().size(), all.size());
  for (const auto& t : file.tensors()) {
    const Tensor& want = all.at(t.name);
    EXPECT_EQ(t.dtype, want.dtype());
    const Tensor got = file.read(t.name, "reference");
    EXPECT_EQ(got.backend(), "reference");
    EXPECT_EQ(got.type(), want.type());
    EXPECT_EQ(got.to_bytes(), want.to_bytes());
    EXPECT_TRUE(std::ranges::equal(file.bytes(t.name), want.to_bytes()));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file.bytes(t.name).data()) % byte_size(t.dtype), 0u) << t.name;
  }
  EXPECT_TRUE(file.contains("c"));
  EXPECT_FALSE(file.contains("d"));
  EXPECT_EQ(error_of([&] { (void)file.read("d"); }),
            fmt::format("invalid argument: {} has no tensor named 'd', but 4 others", at("t")));
  EXPECT_NE(error_of([&] { (void)io::Safetensors::map(at("no")); }).find("unavailable: "), std::string::npos);
  EXPECT_NE(error_of([&] { io::write_safetensors(at("t"), {{"empty", Tensor()}}); }).find("'empty'"),
            std::string::npos);
  EXPECT_NE(error_of([&] { io::write_safetensors(at("no/t"), all); }).find("input/output: "),
            std::string::npos);
  EXPECT_EQ(io::Safetensors::map(at("t")).tensors().size(), all.size()) << "the old file stays";
  std::ofstream(at("t")) << "no such file";
  EXPECT_NE(error_of([&] { (void)io::Safetensors::map(at("t")); }).find("corrupt: "), std::string::npos);
}

/// Embedding and head are one tensor: named twice, or tied by hand after build().
struct Tied : nn::Module {
  Tensor shared, head, scale;
  bool by_name = true;
  void fields(nn::Fields& f) override {
    f.parameter("tokens", shared, {2, 2}, nn::Initial::normal(1));
    f.parameter("head", by_name ? shared : head, {2, 2}, nn::Initial::normal(1));
    f.parameter("scale", scale, {1}, nn::Initial::constant(1));
  }
  Tensor operator()(const Tensor& x) const {
    return matmul(matmul(x, shared), by_name ? shared : head) * scale;
  }
};

std::vector<std::vector<std::byte>> trained(Tied& m, DType dtype) {
  const Tensor x = cast(Tensor::of({1, -2, 3, 0.5}, {2, 2}), dtype);
  nn::AdamW optimizer(nn::parameters(m), {.weight_decay = 0.1, .clip = 0.5});
  for (int i = 0; i < 3; ++i) {
    mean_square(m(x)).backward();
    optimizer.step(Tensor::scalar(0.1));
  }
  std::vector<std::vector<std::byte>> out;
  for (const auto& p : nn::parameters(m)) out.push_back(p.to_bytes());
  return out;
}

TEST_F(StateDicts, ATiedTensorIsOneParameter) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tied once, twice;
    twice.by_name = false;
    for (auto* m : {&once, &twice}) nn::build(*m, {.seed = 5, .dtype = dtype});
    EXPECT_EQ(nn::parameters(once).size(), 2u);
    EXPECT_EQ(nn::parameters(twice).size(), 3u);
    twice.head = twice.shared;
    EXPECT_EQ(nn::parameters(twice).size(), 2u);
    EXPECT_EQ(nn::parameter_count(twice), 5);
    EXPECT_EQ(nn::parameter_count(once), 5);
    EXPECT_EQ(once.shared.name(), "tokens");
    EXPECT_EQ(nn::state_dict(twice).size(), 2u);

    Tied copy = nn::copy_as(dtype, twice);  // stays tied
    EXPECT_EQ(copy.head.impl(), copy.shared.impl());
    EXPECT_NE(copy.shared.impl(), twice.shared.impl());

    // The step that one tensor takes, as a model that has it once takes it.
    EXPECT_EQ(trained(once, dtype), trained(twice, dtype));

    nn::save(twice, at("tied"));
    EXPECT_EQ(io::Safetensors::map(at("tied")).tensors().size(), 2u);
    nn::load(copy, at("tied"));
    EXPECT_EQ(copy.head.to_bytes(), twice.head.to_bytes());
    auto state = nn::state_dict(once);  // others may store it under its other name, or both
    state.emplace("head", state.at("tokens"));
    nn::load_state_dict(copy, state);
    state.at("head") = state.at("head") * 2.0;
    EXPECT_NE(error_of([&] { nn::load_state_dict(copy, state); }).find("'tokens' and 'head' differ"),
              std::string::npos);
    state.erase("tokens");
    nn::load_state_dict(copy, state);
    EXPECT_EQ(copy.shared.to_bytes(), state.at("head").to_bytes());
  }
}

TEST_F(StateDicts, AListThatHoldsATensorTwiceStepsItOnce) {
  Tensor p = Tensor::scalar(1).named("p").requires_grad(true),
         q = Tensor::scalar(1).named("q").requires_grad(true);
  nn::SGD twice({p, p}, {.clip = 1}), once({q}, {.clip = 1});
  p.backward(Tensor::scalar(4)), q.backward(Tensor::scalar(4));
  twice.step(Tensor::scalar(0.5)), once.step(Tensor::scalar(0.5));
  EXPECT_EQ(p.item(), q.item());
  EXPECT_EQ(twice.states().size(), 1u);
}

struct Named : nn::Module {
  std::function<void(Named&, nn::Fields&)> name;
  Tensor a, b;
  nn::Linear inner{1, 1};
  void fields(nn::Fields& f) override { name(*this, f); }
};

TEST_F(StateDicts, TwoFieldsOfOneNameAreRefused) {
  const auto said = [](std::function<void(Named&, nn::Fields&)> name) {
    Named m;
    m.name = std::move(name);
    return error_of([&] { nn::build(m); });
  };
  EXPECT_EQ(
      said([](auto& m, auto& f) { f.parameter("w", m.a, {2}), f.state("w", m.b, {3}, DType::f64); }),
      "invalid argument: two fields of a module are named 'w': parameter f32[2], and state f64[3]; each "
      "wants a name of its own");
  EXPECT_NE(said([](auto& m, auto& f) {
              f.child("x", m.inner), f.parameter("x.bias", m.a, {2});
            }).find("'x.bias': parameter f32[1], and parameter f32[2]"),
            std::string::npos);
  EXPECT_NE(said([](auto& m, auto& f) {
              f.child("x", m.inner), f.parameter("x", m.a, {2});
            }).find("'x': a module, and parameter f32[2]"),
            std::string::npos);
  EXPECT_NE(said([](auto& m, auto& f) {
              f.parameter("v", m.a, {2}), f.parameter("w", m.a, {3});
            }).find("'v', a parameter f32[2], and 'w', a parameter f32[3], are one tensor"),
            std::string::npos);
}

TEST_F(StateDicts, AModuleIsNotInsideItselfAndItsFieldsHaveNames) {
  Named m, inner;
  m.name = [&](Named&, nn::Fields& f) { f.child("in", inner); };
  inner.name = [&](Named& self, nn::Fields& f) { f.child("me", self); };
  EXPECT_EQ(error_of([&] { nn::build(m); }),
            "invalid argument: 'in.me' is 'in', a module that it is in: no module can hold itself");
  EXPECT_NE(error_of([&] { (void)nn::parameters(inner); }).find("no module can hold itself"),
            std::string::npos);
  inner.name = [](Named& self, nn::Fields& f) { f.parameter("", self.a, {2}); };
  EXPECT_EQ(error_of([&] { nn::build(m); }),
            "invalid argument: 'in' has a field or module without a name; give it one");
}

// As in PyTorch: neither moment nor weight decay touches what no gradient has reached, or what is frozen.
TEST_F(StateDicts, FrozenAndUnusedParametersStayAsTheyAre) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    nn::Linear used(2, 2), unused(2, 2);
    struct Both : nn::Module {
      nn::Linear &used, &unused;
      Both(nn::Linear& a, nn::Linear& b) : used(a), unused(b) {}
      void fields(nn::Fields& f) override { f.child("used", used), f.child("unused", unused); }
    } both(used, unused);
    nn::build(both, {.seed = 1, .dtype = dtype});
    used.bias.requires_grad(false);
    nn::AdamW optimizer(nn::parameters(both), {.weight_decay = 0.5, .clip = 1});
    const auto states = [&](const char* of) {
      std::vector<std::vector<std::byte>> out;
      for (const auto& s : optimizer.states())
        if (s.name().find(of) != std::string::npos) out.push_back(s.to_bytes());
      return out;
    };
    const auto bytes = [&] {
      return std::vector{used.bias.to_bytes(), unused.weight.to_bytes(), unused.bias.to_bytes()};
    };
    const auto before = bytes(), moments = states("unused"), frozen = states("used.bias");
    const auto weight = used.weight.to_bytes();
    for (int i = 0; i < 2; ++i) {
      mean_square(used(cast(Tensor::of({1, 2}, {1, 2}), dtype))).backward();
      optimizer.step(Tensor::scalar(0.1));
    }
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(states("unused"), moments);
    EXPECT_EQ(states("used.bias"), frozen);
    EXPECT_NE(used.weight.to_bytes(), weight);
    nn::replace(both, [](const nn::Field& f) { return f.tensor.detach(); }, dtype);
    EXPECT_FALSE(used.bias.requires_grad()) << "what is frozen stays frozen";
    EXPECT_TRUE(used.weight.requires_grad());
  }
}

// An error says in which layer it happened, whether the layer has a name or only a place.
TEST_F(StateDicts, ErrorsNameTheLayer) {
  nn::Sequential model(nn::Linear(2, 3), relu, nn::Sequential(relu, nn::Linear(4, 2)));
  nn::build(model);
  EXPECT_EQ(
      error_of([&] { (void)model(Tensor::of({1, 2}, {1, 2})); }).find("invalid argument: 2.1: linear: "), 0u);
  nn::Sequential functions(relu, [](const Tensor& x) { return x + Tensor::of({1, 2, 3}, {3}); });
  const auto said = error_of([&] { (void)functions(Tensor::of({1, 2}, {1, 2})); });
  EXPECT_EQ(said.find("invalid argument: 1: add: "), 0u) << said;
  nn::Sequential unbuilt(nn::Linear(2, 3));
  EXPECT_NE(
      error_of([&] { (void)unbuilt(Tensor::of({1, 2}, {1, 2})); }).find("Linear.weight has no elements"),
      std::string::npos);
  EXPECT_EQ(error_of([&] {
              (void)(Tensor::of({1, 2}, {2}) + Tensor::of({1, 2, 3}, {3}));
            }).find("invalid argument: add: "),
            0u)
      << "nothing is left of a layer that failed";
}

TEST_F(StateDicts, ElementsAreCounted) {
  EXPECT_EQ(error_of([&] { (void)Tensor::of({1, 2, 3}, {2, 2}); }),
            "invalid argument: f32[2, 2] has 4 elements, got 3");
  EXPECT_NE(error_of([&] { (void)Tensor::of({}, {-1}); }).find("must not be negative"), std::string::npos);
}

}  // namespace
}  // namespace weft::state_dict_test

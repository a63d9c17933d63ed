#include <numeric>

#include "seam_watchers.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"

// Programs that read tensors in place and leave results on the device: nothing is copied, and eager ops and
// sessions that share memory stay ordered.
namespace weft::ports_test {
namespace {

using testing::counting_backend;

const std::vector<InputSpec> kOne = {{"x", {DType::f32, {4}}}};

Tensor numbers(const std::string& backend, std::vector<float> v = {1, 2, 3, 4}) {
  const IntList shape = {static_cast<int64_t>(v.size())};
  return Tensor::of(std::span<const float>(v), shape, DType::f32, backend);
}
std::vector<float> values(const Tensor& t) { return t.to_vector<float>(); }

TEST(Ports, NothingIsCopiedOnTheOwnDevice) {
  auto program =
      compile([](const std::vector<Tensor>& in) { return std::vector{exp(in[0]) + in[0], in[0] * in[0]}; },
              kOne, {.backend = counting_backend().name()});
  const Tensor x = numbers(counting_backend().name());
  (void)program({x});
  reset_ledger();
  counting_backend().reset();
  auto out = program({program({x})[1]});
  EXPECT_EQ(counting_backend().bytes_in + counting_backend().bytes_out, 0u);
  for (const auto& row : ledger_rows()) EXPECT_EQ(row.bytes, 0u) << row.device << " " << row.op;
  EXPECT_EQ(values(out[1]), (std::vector<float>{1, 16, 81, 256}));
}

// What is an output and something else too is copied: an input, another output, a view, a state.
TEST(Ports, OutputsAreMemoryOfTheirOwn) {
  for (const auto& backend : testing::backends({"reference", "native", "far", "opencl"})) {
    SCOPED_TRACE(backend);
    auto program = compile(
        [](const std::vector<Tensor>& in) {
          const Tensor y = in[0] + in[0];
          return std::vector{in[0], y, y, reshape(y, {2, 2}), reshape(in[0], {2, 2}), y * y};
        },
        kOne, {.backend = backend});
    Tensor x = numbers(backend);
    const auto out = program({x});
    const std::vector<float> one = {1, 2, 3, 4}, two = {2, 4, 6, 8};
    for (const size_t i : {0, 4}) EXPECT_EQ(values(out[i]), one) << i;
    for (const size_t i : {1, 2, 3}) EXPECT_EQ(values(out[i]), two) << i;
    EXPECT_EQ(values(out[5]), (std::vector<float>{4, 16, 36, 64}));
    const auto rate =
        Tensor::of(std::span<const float>(std::vector<float>{1}), IntList{}, DType::f32, backend);
    sgd_step(out[1], out[1].detach() * rate, numbers(backend, {0, 0, 0, 0}), rate);
    EXPECT_EQ(values(out[1]), (std::vector<float>{0, 0, 0, 0}));
    EXPECT_EQ(values(out[2]), two) << "two outputs share their memory";
    EXPECT_EQ(values(x), one);
  }
}

TEST(Ports, AStateThatIsAnOutputStaysWhatItWas) {
  for (const auto& backend : testing::backends({"reference", "far"})) {
    const OnBackend on(backend);
    const Tensor total = Tensor::of({0, 0, 0, 0}, {4}).named("total");
    auto program = compile(
        [&](const std::vector<Tensor>& in) {
          assign(total, total + in[0]);
          return std::vector{total};
        },
        kOne, {.backend = backend});
    const auto first = program({numbers(backend)})[0], second = program({numbers(backend)})[0];
    EXPECT_EQ(values(first), (std::vector<float>{1, 2, 3, 4})) << backend;
    EXPECT_EQ(values(second), (std::vector<float>{2, 4, 6, 8})) << backend;
  }
}

// Runs and eager ops in turn on the same memory, without waits, on a device with late queues.
TEST(Ports, EagerAndSessionsKeepTheirTurn) {
  for (const auto& backend : testing::backends({"far", "opencl"})) {
    const OnBackend on(backend);
    auto double_it = compile([](const std::vector<Tensor>& in) { return std::vector{in[0] + in[0]}; }, kOne,
                             {.backend = backend});
    auto add_one = compile([](const std::vector<Tensor>& in) { return std::vector{in[0] + 1}; }, kOne,
                           {.backend = backend});
    Tensor x = numbers(backend);
    std::vector<float> want = {1, 2, 3, 4};
    for (int i = 0; i < 12; ++i) {
      x = double_it.enqueue({x})[0];
      x = x - 1;
      x = add_one.enqueue({add_one.enqueue({x})[0]})[0];
      for (float& v : want) v = 2 * v - 1 + 2;
      std::vector<Tensor> others;  // freed memory is reused
      for (int k = 0; k < 6; ++k) others.push_back(full(7, {4}));
    }
    EXPECT_EQ(values(x), want) << backend;
    double_it.wait();
    add_one.wait();
  }
}

// One program writes what another reads, each in a queue of its own, and eager ops read it between.
TEST(Ports, ProgramsThatShareAStateKeepTheirTurn) {
  for (const auto& backend : testing::backends({"far", "opencl"})) {
    const OnBackend on(backend);
    const Tensor w = numbers(backend, {0, 0, 0, 0}).named("w"), one = numbers(backend, {1, 1, 1, 1}),
                 other = numbers(backend, {1, 1, 1, 1});  // an input of both would order them
    const CompileOptions taken{.backend = backend, .take_captured = true};
    auto write = compile(
        [&](const std::vector<Tensor>& in) {
          assign(w, w + in[0]);
          return std::vector{in[0] + in[0]};
        },
        kOne, taken);
    auto read = compile([&](const std::vector<Tensor>& in) { return std::vector{w * in[0]}; }, kOne, taken);
    ASSERT_TRUE(write.shares(w) && read.shares(w)) << backend;
    std::vector<Tensor> seen, eager;
    for (int i = 0; i < 24; ++i) {
      (void)write.enqueue({one});
      seen.push_back(read.enqueue({other})[0]);
      if (i >= 12) eager.push_back(w + one);
    }
    write.wait(), read.wait();
    const auto all = [](size_t n) { return std::vector<float>(4, static_cast<float>(n)); };
    for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(values(seen[i]), all(i + 1)) << backend;
    for (size_t i = 0; i < eager.size(); ++i) EXPECT_EQ(values(eager[i]), all(i + 14)) << backend;
  }
}

// A state as an input is read as it was before the run.
TEST(Ports, AStateThatIsAnInputIsReadBeforeItIsWritten) {
  for (const auto& backend : testing::backends({"native", "far", "opencl"})) {
    const OnBackend on(backend);
    const Tensor w = numbers(backend).named("w");
    auto program = compile(
        [&](const std::vector<Tensor>& in) {
          assign(w, in[0] + in[0]);
          return std::vector{in[0] * in[0] + w};
        },
        kOne, {.backend = backend, .take_captured = true});
    ASSERT_TRUE(program.shares(w)) << backend;
    EXPECT_EQ(values(program({w})[0]), (std::vector<float>{3, 8, 15, 24})) << backend;
    EXPECT_EQ(values(w), (std::vector<float>{2, 4, 6, 8})) << backend;
  }
}

TEST(Ports, AFailureIsToldByTheCallOrByWait) {
  WEFT_NEEDS_PLUGIN("far");
  const OnBackend on("far");
  auto program =
      compile([](const std::vector<Tensor>& in) { return std::vector{gather(in[0], in[1], 0, 0)}; },
              {{"x", {DType::f32, {4}}}, {"i", {DType::i64, {1}}}}, {.backend = "far"});
  const Tensor x = numbers("far"), wild = Tensor::of({70}, {1}, DType::i64),
               good = Tensor::of({2}, {1}, DType::i64);
  const std::string words = "far.gather.shared: index 70 outside [0, 4)";
  EXPECT_NE(testing::error_of([&] { (void)program({x, wild}); }).find(words), std::string::npos);
  EXPECT_EQ(testing::error_of([&] { (void)program.enqueue({x, wild}); }), "no error");
  EXPECT_NE(testing::error_of([&] { program.wait(); }).find(words), std::string::npos);
  EXPECT_EQ(values(program({x, good})[0]), (std::vector<float>{3}));
}

// Sessions go, and programs of other sizes come, while what they enqueued is still to run.
TEST(Ports, OutputsOutliveTheirProgram) {
  for (const auto& backend : testing::backends({"far", "native"})) {
    std::vector<Tensor> kept;
    for (int i = 0; i < 5; ++i) {
      auto program = compile([](const std::vector<Tensor>& in) { return std::vector{in[0] * in[0]}; }, kOne,
                             {.backend = backend});
      kept.push_back(program.enqueue({numbers(backend)})[0]);
    }
    for (const Tensor& t : kept) EXPECT_EQ(values(t), (std::vector<float>{1, 4, 9, 16})) << backend;
  }
}

// Memory shared by two programs stays locked while one of them exists.
TEST(Ports, TakenMemoryIsHeldByEachProgram) {
  const OnBackend on("native");
  const Tensor w = Tensor::of({1, 2, 3, 4}, {4}).named("w"), zero = Tensor::of({0, 0, 0, 0}, {4});
  const auto make = [&] {
    return compile([&](const std::vector<Tensor>& in) { return std::vector{in[0] * w}; }, kOne,
                   {.backend = "native", .take_captured = true});
  };
  auto first = std::make_unique<Compiled>(make());
  const auto update = [&] { return testing::error_of([&] { assign(w, zero); }); };
  {
    auto second = make();
    EXPECT_TRUE(second.shares(w));
    EXPECT_NE(update().find("a compiled program (take_captured)"), std::string::npos) << update();
  }
  EXPECT_NE(update().find("a compiled program (take_captured)"), std::string::npos) << update();
  EXPECT_EQ(values((*first)({numbers("native")})[0]), (std::vector<float>{1, 4, 9, 16}));
  EXPECT_NE(testing::error_of([&] { (void)first->shares(Tensor()); }).find("the tensor is empty"),
            std::string::npos);
  first.reset();
  EXPECT_EQ(update(), "no error");
}

TEST(Ports, AnyNumberOfInputs) {
  std::vector<InputSpec> specs;
  std::vector<Tensor> in;
  for (int i = 0; i < 40; ++i) {
    specs.push_back({fmt::format("x{}", i), {DType::f32, {2}}});
    in.push_back(numbers("native", {static_cast<float>(i), 1}));
  }
  auto program = compile(
      [](const std::vector<Tensor>& all) {
        Tensor sum = all[0];
        for (size_t i = 1; i < all.size(); ++i) sum = sum + all[i];
        return std::vector{sum};
      },
      specs, {.backend = "native"});
  EXPECT_EQ(values(program(in)[0]), (std::vector<float>{780, 40}));
  std::vector<HostArray> host;
  const IntList shape = {2};
  std::vector<std::vector<std::byte>> bytes;
  for (const Tensor& t : in) bytes.push_back(t.to_bytes());
  for (const auto& b : bytes) host.push_back({DType::f32, shape, b});
  std::vector<float> result(2);
  const auto out = std::as_writable_bytes(std::span(result));
  program.run(host, {&out, 1});
  EXPECT_EQ(result, (std::vector<float>{780, 40}));
}

}  // namespace
}  // namespace weft::ports_test

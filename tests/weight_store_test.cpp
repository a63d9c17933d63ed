#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>

#include "runtime/slabs.h"
#include "seam/registry.h"
#include "seam_watchers.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Weights of programs: one copy for all sessions of the process, packed if a kernel wants that.
namespace weft::weight_store_test {
namespace {

constexpr int64_t kIn = 256, kOut = 384;
constexpr uint64_t kBytes = kIn * kOut * 4;

Tensor drawn(const IntList& shape, const std::string& backend, float first = 0) {
  std::vector<float> v(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::sin(first + static_cast<float>(i % 1009));
  return Tensor::of(std::span<const float>(v), shape, DType::f32, backend);
}

/// x weightᵀ in a file, for up to 64 rows of x.
class WeightFile {
 public:
  /// `other`: an element of the weight that is another one than in the file without.
  explicit WeightFile(int64_t other = -1) : other_(other) { write(0); }
  ~WeightFile() { std::filesystem::remove(path_); }
  WeightFile(const WeightFile&) = delete;
  void write(float first) const {
    auto numbers = drawn({kOut, kIn}, "native", first).to_vector<float>();
    if (other_ >= 0) numbers[static_cast<size_t>(other_)] = 2;
    const Tensor weight =
        Tensor::of(std::span<const float>(numbers), std::vector<int64_t>{kOut, kIn}, DType::f32, "native");
    const Dim rows = Dim::symbol("rows_of_x", 1, 64);
    compile([&](const std::vector<Tensor>& in) { return std::vector{linear(in[0], weight)}; },
            {{"x", {DType::f32, {rows, kIn}}}}, {.backend = "native"})
        .save(path_);
  }
  Compiled load(const std::string& backend = "native") const {
    return load_program(path_, {.backend = backend});
  }

 private:
  const std::string path_ =
      (std::filesystem::temp_directory_path() / fmt::format("weft_weights_{}_{}", ::getpid(), next++))
          .string();
  static inline int next = 0;
  const int64_t other_;
};

std::vector<float> run(Compiled& program, int64_t rows, const std::string& backend = "native") {
  return program({drawn({rows, kIn}, backend, 7)})[0].to_vector<float>();
}

seam::Device& device(const std::string& name) { return *value_or_raise(seam::registry().open(name)); }

void expect_close(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  // The sum of 256 products of at most 1: |error| <= 256 eps / 2 times the sum of their sizes.
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 256 * 256 * 0x1p-24) << i;
}

TEST(WeightStore, FewRowsAndManyReadOnePackedCopy) {
  const WeightFile file;
  auto program = std::make_unique<Compiled>(file.load());
  Compiled other = file.load("reference");
  for (const int64_t rows : {64, 1, 7}) {
    expect_close(run(*program, rows), run(other, rows, "reference"));
    EXPECT_NE(program->schedule_text().find("packed weight0"), std::string::npos) << program->schedule_text();
  }
  const uint64_t before = device("native").live_bytes();
  program.reset();
  const uint64_t freed = before - device("native").live_bytes();
  EXPECT_GE(freed, kBytes);
  EXPECT_LT(freed, kBytes * 2) << "the weight was there twice";
}

TEST(WeightStore, WhatARecipeMadeIsPackedToo) {
  const Tensor weight = drawn({kOut, kIn}, "native"), factors = drawn({kOut, 1}, "native", 3);
  const auto scaled = [&](const std::vector<Tensor>& in) {
    return std::vector{linear(in[0], weight * factors)};
  };
  for (const int64_t rows : {1, 64}) {
    auto program = compile(scaled, {{"x", {DType::f32, {rows, kIn}}}}, {.backend = "native"});
    const Tensor x = drawn({rows, kIn}, "native", 7);
    expect_close(program({x})[0].to_vector<float>(), linear(x, weight * factors).to_vector<float>());
    EXPECT_NE(program.schedule_text().find("packed weight"), std::string::npos) << program.schedule_text();
  }
}

TEST(WeightStore, SessionsShareACopyUntilTheLastOneEnds) {
  const WeightFile file;
  for (const auto& backend : testing::backends({"native", "reference", "far", "opencl"})) {
    SCOPED_TRACE(backend);
    seam::Device& d = device(backend);
    auto first = std::make_unique<Compiled>(file.load(backend));
    const auto want = run(*first, 3, backend);
    const seam::MemoryUse before = d.begin_peak();
    auto second = std::make_unique<Compiled>(file.load(backend));
    EXPECT_EQ(run(*second, 3, backend), want);
    EXPECT_LT(d.peak().taken - before.taken, kBytes / 2);
    first.reset();
    EXPECT_EQ(run(*second, 5, backend).size(), size_t{5} * kOut) << "its weights went with another session";
    const uint64_t live = d.live_bytes();
    second.reset();
    EXPECT_GE(live - d.live_bytes(), kBytes) << "a copy stays behind";
  }
}

TEST(WeightStore, OtherBytesAreAnotherWeight) {
  const WeightFile file;
  Compiled first = file.load();
  const auto a = run(first, 9);
  file.write(1);
  Compiled second = file.load(), oracle = file.load("reference");
  const auto b = run(second, 9);
  EXPECT_NE(a, b);
  expect_close(b, run(oracle, 9, "reference"));
  EXPECT_EQ(run(first, 9), a);
}

// Keys are of samples: one number between these makes another weight.
TEST(WeightStore, OneOtherNumberIsAnotherWeight) {
  const WeightFile file, other(100);
  Compiled first = file.load(), second = other.load(), third = other.load();
  Compiled oracle = other.load("reference");
  const auto a = run(first, 9), b = run(second, 9);
  EXPECT_NE(a, b);
  expect_close(b, run(oracle, 9, "reference"));
  seam::Device& d = device("native");
  const uint64_t before = d.live_bytes();
  EXPECT_EQ(run(third, 9), b);
  EXPECT_LT(d.live_bytes() - before, kBytes) << "those that are equal share a copy all the same";
  EXPECT_EQ(run(first, 9), a);
}

// A weight that is also read unpacked would be stored twice.
TEST(WeightStore, WeightsOfSeveralUsesStayAsTheyAre) {
  const Tensor weight = drawn({kOut, kIn}, "native");
  Compiled program = compile(
      [&](const std::vector<Tensor>& in) {
        return std::vector{linear(in[0], weight), slice(weight, 0, 0, 4) * in[0]};
      },
      {{"x", {DType::f32, {4, kIn}}}}, {.backend = "native"});
  (void)program({drawn({4, kIn}, "native")});
  EXPECT_EQ(program.schedule_text().find("packed weight"), std::string::npos) << program.schedule_text();
}

// Weights that change, or are in a caller's memory, are not packed either.
TEST(WeightStore, StatesAndTakenWeightsAreNotPacked) {
  for (const bool trained : {true, false}) {
    Tensor weight = drawn({kOut, kIn}, "native");
    const Tensor rate = drawn({}, "native"), zeros = drawn({kOut, kIn}, "native");
    Compiled program = compile(
        [&](const std::vector<Tensor>& in) {
          const Tensor y = linear(in[0], weight);
          if (trained) sgd_step(weight, zeros, drawn({kOut, kIn}, "native"), rate);
          return std::vector{y};
        },
        {{"x", {DType::f32, {4, kIn}}}}, {.backend = "native", .take_captured = !trained});
    (void)program({drawn({4, kIn}, "native")});
    EXPECT_EQ(program.schedule_text().find("packed weight"), std::string::npos) << program.schedule_text();
  }
}

/// native, with uploads and packings that fail when they are told to.
class Failing : public testing::Watching {
 public:
  using Watching::Watching;
  bool fail_copies = false, fail_packings = false;

  weft_code synchronize(weft_queue q, weft_error* e) override {
    return fail_copies ? failed(e) : Watching::synchronize(q, e);
  }
  weft_code pack(const weft_plan* plan, uint32_t input, const weft_tensor* from, const weft_tensor* to,
                 weft_queue q, weft_error* e) override {
    return fail_packings ? failed(e) : Watching::pack(plan, input, from, to, q, e);
  }

 private:
  static weft_code failed(weft_error* e) {
    std::snprintf(e->text, sizeof e->text, "the link is down");
    return WEFT_INTERNAL;
  }
};
Failing& failing() {
  static Failing& one = []() -> Failing& {
    auto* made = new Failing("watch_uploads", value_or_raise(seam::registry().open("native"))->backend());
    conformance::adopt(*made);
    return *made;
  }();
  return one;
}

// The session gets the error and may be run again; no other session shares the failed copy.
TEST(WeightStore, AFailedUploadIsSharedWithNobody) {
  const WeightFile file;
  const std::string on = failing().name();
  Compiled oracle = file.load("reference");
  const auto want = run(oracle, 5, "reference");
  for (bool* fails : {&failing().fail_packings, &failing().fail_copies}) {
    Compiled first = file.load(on), second = file.load(on);
    *fails = true;
    EXPECT_NE(testing::error_of([&] { (void)run(first, 5); }).find("the link is down"), std::string::npos);
    *fails = false;
    expect_close(run(second, 5), want);
    expect_close(run(first, 5), want);
  }
}

// ---- where weights lie

// Rows of a table of 4 MB are read where the program has them; what is read whole has a copy.
TEST(WeightStore, ATableStaysInTheProgram) {
  const Tensor table = drawn({4096, 256}, "native");
  const std::vector<int32_t> rows_wanted = {7, 4095, 0};
  const Tensor ids =
      Tensor::of(std::span<const int32_t>(rows_wanted), std::vector<int64_t>{3}, DType::i32, "native");
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("weft_table_{}", ::getpid())).string();
  seam::Device& d = device("native");
  for (const bool whole : {false, true}) {
    compile(
        [&](const std::vector<Tensor>& in) {
          const Tensor rows = embedding(table, in[0]);
          return whole ? std::vector{rows, table + table} : std::vector{rows};
        },
        {{"ids", {DType::i32, {3}}}}, {.backend = "native"})
        .save(path);
    auto program = std::make_unique<Compiled>(load_program(path, {.backend = "native"}));
    std::filesystem::remove(path);  // its pages stay
    const uint64_t before = d.live_bytes();
    const Tensor rows = (*program)({ids})[0];
    EXPECT_EQ(rows.to_vector<float>(), embedding(table, ids).to_vector<float>());
    const uint64_t taken = d.live_bytes() - before;
    EXPECT_TRUE(whole ? taken >= 4 << 20 : taken < 1 << 20) << taken;
  }
}

TEST(WeightStore, SmallBuffersShareASlab) {
  seam::Device& d = device("native");
  const uint64_t before = d.live_bytes();
  std::vector<seam::BufferRef> taken;
  {
    runtime::Slabs slabs(3 << 20);
    for (int i = 0; i < 30; ++i) taken.push_back(value_or_raise(slabs.take(d, 100'000)));
    EXPECT_EQ(d.live_bytes() - before, 3 << 20) << "one buffer";
    taken.push_back(value_or_raise(slabs.take(d, 9 << 20)));
    EXPECT_EQ(d.live_bytes() - before, 12 << 20) << "a large one is alone";
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    ASSERT_EQ(reinterpret_cast<uintptr_t>(taken[i]->handle) % 64, 0u);
    std::memset(taken[i]->handle, static_cast<int>(i), taken[i]->bytes);
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(taken[i]->handle);
    EXPECT_TRUE(bytes[0] == i && bytes[taken[i]->bytes - 1] == i)
        << "buffer " << i << " overlaps another one";
  }
  taken.pop_back();
  EXPECT_EQ(d.live_bytes() - before, 3 << 20);
  taken.resize(1);
  EXPECT_EQ(d.live_bytes() - before, 3 << 20) << "the last buffer keeps the slab";
  taken.clear();
  EXPECT_EQ(d.live_bytes(), before);
}

// Later sessions wait for the first one's copy.
TEST(Threads, SessionsThatOpenAtOnceShareACopy) {
  const WeightFile file;
  seam::Device& d = device("native");
  const uint64_t before = d.live_bytes();
  std::vector<std::unique_ptr<Compiled>> programs(4);
  std::vector<std::vector<float>> got(programs.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < programs.size(); ++i)
      threads.emplace_back([&, i] {
        programs[i] = std::make_unique<Compiled>(file.load());
        got[i] = run(*programs[i], 12);
      });
  }
  for (const auto& g : got) EXPECT_EQ(g, got[0]);
  EXPECT_LT(d.live_bytes() - before, 2 * kBytes);
}

}  // namespace
}  // namespace weft::weight_store_test

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "seam/registry.h"
#include "seam_watchers.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// The first run of a session packs its weights step by step, later ones read packed copies.
namespace weft::staging_test {
namespace {

constexpr int64_t kWidth = 640, kLayers = 7;  // 1.6 MB each, 11 MB in all
constexpr uint64_t kBytes = kWidth * kWidth * 4;

Tensor drawn(const IntList& shape, const std::string& backend, float first, float scale = 1) {
  std::vector<float> v(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (size_t i = 0; i < v.size(); ++i) v[i] = scale * std::sin(first + static_cast<float>(i % 10007));
  return Tensor::of(std::span<const float>(v), shape, DType::f32, backend);
}

/// Layers of x weightᵀ and of x weight, in a file. `twice`: the first weight is read by two steps.
class LayersFile {
 public:
  explicit LayersFile(bool twice = false) {
    std::vector<Tensor> weights;
    for (int64_t i = 0; i < kLayers; ++i)
      weights.push_back(drawn({kWidth, kWidth}, "native", static_cast<float>(i), 0.05f));
    const Dim rows = Dim::symbol("rows_of_x", 1, 256);
    const auto layers = [&](const std::vector<Tensor>& in) {
      Tensor x = twice ? tanh(linear(in[0], weights[0])) : in[0];
      for (size_t i = 0; i < weights.size(); ++i)
        x = tanh(i % 3 == 1 ? matmul(x, weights[i]) : linear(x, weights[i]));
      return std::vector{x};
    };
    compile(layers, {{"x", {DType::f32, {rows, kWidth}}}}, {.backend = "native"}).save(path_);
  }
  ~LayersFile() { std::filesystem::remove(path_); }
  LayersFile(const LayersFile&) = delete;
  Compiled load(const std::string& backend = "native") const {
    return load_program(path_, {.backend = backend});
  }

 private:
  const std::string path_ =
      (std::filesystem::temp_directory_path() / fmt::format("weft_layers_{}_{}", ::getpid(), next++))
          .string();
  static inline int next = 0;
};

std::vector<float> run(Compiled& program, int64_t rows, const std::string& backend = "native") {
  return program({drawn({rows, kWidth}, backend, 7)})[0].to_vector<float>();
}

/// native; says what was packed where, and fails when it is told to.
class Packer : public testing::Watching {
 public:
  using Watching::Watching;
  int packings = 0, fails_at = -1;  // counted from 1; -1: none
  std::set<const void*> places;
  int untold = 0;  // questions about a constant of which no packing is known

  weft_code accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) override {
    for (uint32_t i = 0; i < c->n_inputs; ++i)
      if (c->inputs[i] && c->inputs[i]->constant && c->inputs[i]->n_packings == 0) ++untold;
    return Watching::accepts(k, d, c, e);
  }
  weft_code pack(const weft_plan* plan, uint32_t input, const weft_tensor* from, const weft_tensor* to,
                 weft_queue q, weft_error* e) override {
    places.insert(to->dl.data);
    if (++packings == fails_at) {
      std::snprintf(e->text, sizeof e->text, "the link is down");
      return WEFT_INTERNAL;
    }
    return Watching::pack(plan, input, from, to, q, e);
  }
  void begin(int fails = -1) { packings = untold = 0, fails_at = fails, places.clear(); }
};
Packer& packer() {
  static Packer& one = []() -> Packer& {
    auto* made = new Packer("watch_packings", value_or_raise(seam::registry().open("native"))->backend());
    conformance::adopt(*made);
    return *made;
  }();
  return one;
}

TEST(Staging, TheFirstRunHasTheBitsOfLaterOnes) {
  const LayersFile file;
  Compiled reference = file.load("reference");
  for (const int64_t rows : {1, 3, 30, 200}) {
    Compiled program = file.load(packer().name());
    packer().begin();
    const auto first = run(program, rows, packer().name());
    EXPECT_EQ(packer().packings, kLayers);
    EXPECT_EQ(packer().places.size(), 1u) << "the first run is not staged";
    const auto second = run(program, rows, packer().name());
    EXPECT_EQ(packer().packings, 2 * kLayers);
    EXPECT_GE(packer().places.size(), static_cast<size_t>(kLayers));
    EXPECT_EQ(first, second);
    EXPECT_EQ(run(program, rows, packer().name()), first);
    EXPECT_EQ(packer().packings, 2 * kLayers) << "packed again";
    const auto right = run(reference, rows, "reference");
    for (size_t i = 0; i < right.size(); ++i) ASSERT_NEAR(first[i], right[i], 1e-4) << i;
  }
}

// The first run takes memory for one weight, later ones for all; nothing stays behind the session.
TEST(Staging, TakesTheMemoryOfOneWeight) {
  const LayersFile file;
  seam::Device& d = *value_or_raise(seam::registry().open("native"));
  const uint64_t before = d.live_bytes();
  {
    Compiled program = file.load();
    (void)run(program, 1);
    EXPECT_LT(d.live_bytes() - before, 2 * kBytes);
    (void)run(program, 1);
    EXPECT_GE(d.live_bytes() - before, kLayers * kBytes);
    EXPECT_LT(d.live_bytes() - before, (kLayers + 1) * kBytes) << "the staging memory stays";
  }
  EXPECT_LT(d.live_bytes() - before, kBytes);
}

// Kernels of other sizes are told which packings there are.
TEST(Staging, OtherSizesEndIt) {
  const LayersFile file;
  Compiled program = file.load(packer().name());
  packer().begin();
  const auto first = run(program, 200, packer().name());
  EXPECT_GT(packer().untold, 0);
  packer().untold = 0;
  const auto few = run(program, 2, packer().name());
  EXPECT_EQ(packer().untold, 0) << "they were linked before the first size's weights were packed";
  EXPECT_EQ(packer().packings, 2 * kLayers);
  EXPECT_EQ(run(program, 200, packer().name()), first);
  EXPECT_EQ(run(program, 2, packer().name()), few);
  EXPECT_EQ(packer().packings, 2 * kLayers) << "sizes do not share copies";
}

// A session takes the packed copies of another one, also in its first run.
TEST(Staging, SessionsShareWhatIsPacked) {
  const LayersFile file;
  const std::string on = packer().name();
  Compiled first = file.load(on), second = file.load(on);
  (void)run(first, 9, on);
  const auto want = run(first, 9, on);
  packer().begin();
  EXPECT_EQ(run(second, 9, on), want);
  EXPECT_EQ(packer().packings, 0);
  first = file.load(on);  // the other session ends, its copies stay with the second
  EXPECT_EQ(run(second, 9, on), want);
  EXPECT_EQ(packer().packings, 0);
}

// A weight that two steps read would be packed twice in the run: it is packed once, beside the others.
TEST(Staging, WeightsOfSeveralStepsAreNotStaged) {
  const LayersFile file(true);
  Compiled program = file.load(packer().name());
  packer().begin();
  const auto first = run(program, 9, packer().name());
  EXPECT_EQ(packer().packings, kLayers);
  EXPECT_EQ(packer().places.size(), 2u);
  EXPECT_EQ(run(program, 9, packer().name()), first);
  EXPECT_EQ(packer().packings, 2 * kLayers - 1) << "the one that is read twice was packed again";
}

// A packing that fails is an error of that run; the next one is right.
TEST(Staging, RunsGoOnAfterAFailure) {
  const LayersFile file;
  const std::string on = packer().name();
  Compiled oracle = file.load();
  const auto want = run(oracle, 9);
  for (const int fails : {3, static_cast<int>(kLayers) + 3}) {  // while it is staged, and in the second run
    Compiled program = file.load(on);
    packer().begin(fails);
    if (fails > kLayers) {
      EXPECT_EQ(run(program, 9, on), want);
    }
    const auto error = testing::error_of([&] { (void)run(program, 9, on); });
    EXPECT_NE(error.find("the link is down"), std::string::npos) << error;
    EXPECT_EQ(run(program, 9, on), want);
    EXPECT_EQ(run(program, 9, on), want);
  }
}

TEST(Threads, SessionsStageBesideEachOther) {
  const LayersFile file;
  Compiled oracle = file.load();
  const auto want = run(oracle, 9);
  std::vector<std::vector<float>> got(3);
  {
    std::vector<std::jthread> threads;
    for (auto& g : got)
      threads.emplace_back([&file, &g] {
        Compiled program = file.load();
        g = run(program, 9);
        if (run(program, 9) != g) g.clear();
      });
  }
  for (const auto& g : got) EXPECT_EQ(g, want);
}

}  // namespace
}  // namespace weft::staging_test

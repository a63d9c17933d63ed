#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <nlohmann/json.hpp>
#include <random>

#include "cases.h"
#include "seam/registry.h"
#include "weft/jit.h"
#include "weft/ops.h"

// A program of small calls, launched one by one and as sequences of its device: the cost of a step.
namespace weft::speed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLayers = 24, kRuns = 20;
constexpr int64_t kRows = 64, kSequenceColumns = 128;

/// The same backend without sequences, under a name of its own.
std::string without_sequences(const std::string& backend) {
  const std::string name = backend + "_launches";
  if (is_backend_available(name)) return name;
  static std::deque<std::string> names;
  weft_backend table = value_or_raise(seam::registry().open(backend))->backend();
  table.name = names.emplace_back(name).c_str();
  table.make_sequence = nullptr, table.run_sequence = nullptr, table.free_sequence = nullptr;
  raise_if(seam::registry().adopt(table, "benchmark"));
  return name;
}

Tensor noise(const std::string& backend, IntList shape) {
  std::mt19937 random(1);
  std::vector<float> values(static_cast<size_t>(element_count(std::span<const int64_t>(shape))));
  for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(random);
  return Tensor::of(std::span<const float>(values), shape, DType::f32, backend);
}

/// Layers of one product, one sum and one softmax.
class Program {
 public:
  explicit Program(const std::string& backend)
      : on_(backend),
        w_(noise(backend, {kSequenceColumns, kSequenceColumns})),
        x_(noise(backend, {kRows, kSequenceColumns})) {
    const auto layers = [&](const std::vector<Tensor>& in) {
      Tensor y = in[0];
      for (int i = 0; i < kLayers; ++i) y = softmax(matmul(y, w_) + in[0], 1);
      return std::vector{y};
    };
    program_.emplace(compile(layers, {{"x", {DType::f32, {kRows, kSequenceColumns}}}}, {.backend = backend}));
    last_ = (*program_)({x_})[0];
    last_ = (*program_)({x_})[0];  // recorded
  }
  /// Average seconds of a run, over several without waits between them.
  double measure() {
    const auto begin = Clock::now();
    for (int i = 0; i < kRuns; ++i) last_ = program_->enqueue({x_})[0];
    program_->wait();
    return std::chrono::duration<double>(Clock::now() - begin).count() / kRuns;
  }
  std::vector<float> result() const { return last_.to_vector<float>(); }

 private:
  OnBackend on_;
  Tensor w_, x_, last_;
  std::optional<Compiled> program_;
};

}  // namespace

Group sequences(int threads) {
  Group g{.name = "sequences", .threads = threads, .cases = {}, .amounts = {}};
  g.print = print_sequences;
  return g;
}

int print_sequences(const Group& group, nlohmann::json& out) {
  fmt::print("\n{}: {} small calls, launched one by one and as a sequence of the device\n", group.name,
             3 * kLayers);
  int wrong = 0;
  for (const std::string backend : {"opencl", "cuda"}) {
    if (!is_backend_available(backend)) continue;
    Program recorded(backend), launched(without_sequences(backend));
    std::vector<double> as_sequence, one_by_one;
    for (int i = 0; i < 9; ++i) {
      as_sequence.push_back(recorded.measure());
      one_by_one.push_back(launched.measure());
    }
    const double s = median(as_sequence), l = median(one_by_one);
    const bool equal = recorded.result() == launched.result();
    wrong += !equal;
    fmt::print("  {:<8} {:9.1f} us launched, {:9.1f} us as a sequence: {:.2f} times as fast, {}\n", backend,
               l * 1e6, s * 1e6, l / s, equal ? "the same bits" : "OTHER BITS");
    out.push_back({{"group", group.name}, {"backend", backend}, {"launched_s", l}, {"sequence_s", s}});
  }
  return wrong;
}

}  // namespace weft::speed

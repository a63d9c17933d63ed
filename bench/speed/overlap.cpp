#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "cases.h"
#include "eager/tensor_impl.h"
#include "seam/registry.h"
#include "weft/ops.h"

// Copies concurrent with kernels: one queue computes, another one copies pinned memory to the device, and the
// host only polls the points. Draws the completion time of each piece of work, by the host's clock.
namespace weft::speed {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPieces = 8;
constexpr int kColumns = 64;
constexpr uint64_t kBytes = 24 << 20;  // of one copy

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Eight rounds of kernels, and eight copies of pinned memory.
class Work {
 public:
  explicit Work(seam::Device& device)
      : device_(device),
        copies_(value_or_raise(device.open_queue())),
        pinned_(value_or_raise(device.allocate_pinned(kBytes))),
        target_(value_or_raise(device.allocate(kBytes))),
        x_(full(0.5, {768, 768})) {
    std::memset(pinned_->address(), 1, kBytes);
  }
  /// Enqueues a piece and marks it.
  uint64_t kernels() {
    y_ = matmul(x_, x_);
    const std::lock_guard lock(device_.eager_mutex());
    return value_or_raise(device_.eager_queue().mark());
  }
  uint64_t copy() {
    raise_if(copies_->copy(*target_.get(), 0, *pinned_.get(), 0, kBytes));
    return value_or_raise(copies_->mark());
  }
  seam::Queue& compute() { return device_.eager_queue(); }
  seam::Queue& transport() { return *copies_; }

 private:
  seam::Device& device_;
  std::unique_ptr<seam::Queue> copies_;
  seam::BufferRef pinned_, target_;
  Tensor x_, y_;
};

/// The completion time in seconds of each piece of the two queues; none for a queue without pieces.
struct Timeline {
  std::vector<double> kernels, copies;
  double end() const {
    return std::max(kernels.empty() ? 0 : kernels.back(), copies.empty() ? 0 : copies.back());
  }
};

Timeline run(Work& work, bool with_kernels, bool with_copies) {
  Timeline t;
  std::vector<uint64_t> kernels, copies;
  const auto begin = Clock::now();
  for (int i = 0; i < kPieces; ++i) {
    if (with_kernels) kernels.push_back(work.kernels());
    if (with_copies) copies.push_back(work.copy());
  }
  const auto watch = [&](seam::Queue& queue, const std::vector<uint64_t>& points,
                         std::vector<double>& passed) {
    for (const uint64_t p : points) value_or_raise(queue.await(p)), passed.push_back(seconds_since(begin));
  };
  std::thread other([&] { watch(work.transport(), copies, t.copies); });
  watch(work.compute(), kernels, t.kernels);
  other.join();
  return t;
}

std::string drawn(const std::vector<double>& passed, double end) {
  std::string line(kColumns, ' ');
  size_t at = 0;
  for (size_t i = 0; i < passed.size(); ++i)
    for (const auto to = static_cast<size_t>(passed[i] / end * kColumns); at < to && at < line.size(); ++at)
      line[at] = i % 2 ? '-' : '=';
  return line;
}

}  // namespace

Group overlap(int threads) {
  Group g{.name = "overlap", .threads = threads, .cases = {}, .amounts = {}};
  g.print = print_overlap;
  return g;
}

int print_overlap(const Group& group, nlohmann::json& out) {
  fmt::print("\n{}: copies of pinned memory beside kernels, two queues of one device\n", group.name);
  if (!is_backend_available("opencl")) {
    fmt::print("opencl is not available here\n");
    return 0;
  }
  const OnBackend on("opencl");
  seam::Device& device = *value_or_raise(seam::registry().open("opencl"));
  Work work(device);
  run(work, true, true);  // to warm up
  std::vector<double> kernels, copies, both;
  Timeline last;
  for (int i = 0; i < 5; ++i) {
    kernels.push_back(run(work, true, false).end());
    copies.push_back(run(work, false, true).end());
    last = run(work, true, true);
    both.push_back(last.end());
  }
  const double k = median(kernels), c = median(copies), b = median(both);
  const double hidden = (k + c - b) / std::min(k, c);
  fmt::print("{}\n  kernels |{}|\n  copies  |{}|\n", device.capability().label,
             drawn(last.kernels, last.end()), drawn(last.copies, last.end()));
  fmt::print(
      "  {} matmuls of 768 alone {:.2f} ms, {} copies of {} MiB alone {:.2f} ms, both {:.2f} ms: {:.2f} of "
      "the shorter one is hidden\n",
      kPieces, k * 1e3, kPieces, kBytes >> 20, c * 1e3, b * 1e3, hidden);
  out.push_back(
      {{"group", group.name}, {"kernels_s", k}, {"copies_s", c}, {"both_s", b}, {"hidden", hidden}});
  raise_if(device.eager_queue().synchronize());
  return 0;
}

}  // namespace weft::speed

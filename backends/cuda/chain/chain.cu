#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernel.hpp"
#include "plan.hpp"

// Chains on GPUs of architecture 9.0: what waits to be launched as one kernel, and the memory of those that
// were.
namespace weft::cuda {

namespace chains {

namespace {

constexpr size_t kLeastSteps = 4;     // of a chain: fewer are launched one by one
constexpr size_t kMostKernels = 256;  // of a capture
constexpr size_t kTableBytes = 128;
static_assert(sizeof(ChainTables) <= kTableBytes);

class DeviceChain : public Chain {
 public:
  explicit DeviceChain(Device& device) : device_(device) {}
  ~DeviceChain() override {
    if (device_.failed) return;
    for (void* at : memory_) device_.blocks.release(at);
  }

  Outcome prepare(size_t most_steps) {
    kernels_ = std::min(most_steps / kLeastSteps + 1, kMostKernels);
    return allocate(kernels_ * kTableBytes, &tables_);
  }
  bool add(const skinny::Items& items, Alone alone) override {
    if (!takes(items)) return false;
    raw_.push_back({.products = items, .alone = std::move(alone)});
    return true;
  }
  bool add(const ChainedAttention& a, Alone alone) override {
    const queries::Sizes& s = a.sizes;
    if (s.ragged.tokens != 1 || s.ragged.batch != 1 || (s.dim != 64 && s.dim != 128) || !s.aligned ||
        !a.fresh.k.x || !a.fresh.v.x)
      return false;
    raw_.push_back({.is_attention = true, .attention = a, .alone = std::move(alone)});
    // Two heads for each block, as far as there are blocks.
    queries::Sizes& own = raw_.back().attention.sizes;
    own.groups = (s.shared_by + 1) / 2;
    const int units = s.kv_heads * own.groups;
    if (units > device_.multiprocessors) return raw_.pop_back(), false;
    own.splits = std::min(device_.multiprocessors / units, queries::kMostSplits);
    return true;
  }
  bool empty() const override { return raw_.empty(); }
  bool launched() const override { return !plans_.empty(); }

  Outcome launch(Queue& queue) override {
    const std::vector<RawStep> raw = std::exchange(raw_, {});
    for (size_t done = 0; done < raw.size();) {
      const std::span<const RawStep> left = std::span(raw).subspan(done);
      ChainPlan plan;
      if (left.size() >= kLeastSteps && plans_.size() < kernels_)
        plan = plan_chain(left, device_.multiprocessors);
      const bool alone = plan.n < kLeastSteps;
      auto launched = alone ? left[0].alone(queue) : launch_kernel(queue);
      if (!launched.good()) return launched;
      done += alone ? 1 : plan.n;
      if (!alone) plans_.push_back(std::move(plan));
    }
    return Outcome::ok();
  }

  Outcome finish() override {
    for (size_t i = 0; i < plans_.size(); ++i)
      if (auto done = upload(plans_[i], tables_ + i * kTableBytes); !done.good()) return done;
    return Outcome::ok();
  }

 private:
  static bool takes(const skinny::Items& items) {
    return items.early && items.n > 0 &&
           std::ranges::all_of(std::span(items.all, static_cast<size_t>(items.n)), [](const skinny::Item& i) {
             return i.rows == 1 && i.aligned && i.k % kWarpColumns == 0 && i.k <= kMostChainedK &&
                    operations_of(i);
           });
  }
  Outcome allocate(size_t bytes, char** at) {
    *at = static_cast<char*>(device_.blocks.allocate(bytes));
    if (!*at)
      return Outcome::fail(WEFT_OUT_OF_MEMORY,
                           "no memory for a chain: {} bytes; WEFT_GPU_CHAIN=0 does without", bytes);
    memory_.push_back(*at);
    return Outcome::ok();
  }
  // The kernel finds its plan in memory, where `finish` is going to put it.
  Outcome launch_kernel(Queue& queue) {
    BlockSize block{kChainThreads};
    block.together = true;
    return start_on(queue, {static_cast<unsigned>(device_.multiprocessors)}, block, sizeof(ChainMemory),
                    run_chain, reinterpret_cast<ChainTables*>(tables_ + plans_.size() * kTableBytes));
  }
  Outcome upload(const ChainPlan& plan, char* table) {
    const size_t steps = plan.steps.size() * kStepBytes, rows = plan.rows.size() * sizeof(BlockRows),
                 copies = plan.copies.size() * sizeof(ChainedCopy), half = static_cast<size_t>(plan.half);
    const size_t exchange = (steps + rows + copies + 127) / 128 * 128;
    std::vector<char> bytes(exchange + 2 * half, static_cast<char>(0xff));
    for (size_t i = 0; i < plan.steps.size(); ++i)
      memcpy(bytes.data() + i * kStepBytes, &plan.steps[i], sizeof(ChainedStep));
    memcpy(bytes.data() + steps, plan.rows.data(), rows);
    if (copies) memcpy(bytes.data() + steps + rows, plan.copies.data(), copies);
    char* memory = nullptr;
    if (auto made = allocate(bytes.size(), &memory); !made.good()) return made;
    const ChainTables tables{reinterpret_cast<const ChainedStep*>(memory),
                             reinterpret_cast<const BlockRows*>(memory + steps),
                             reinterpret_cast<const ChainedCopy*>(memory + steps + rows),
                             memory + exchange,
                             plan.half,
                             static_cast<int>(plan.n),
                             static_cast<int>(plan.copies.size()),
                             0,
                             0};
    if (auto written = write_now(memory, bytes.data(), bytes.size()); !written.good()) return written;
    return write_now(table, &tables, sizeof tables);
  }

  Device& device_;
  size_t kernels_ = 0;
  char* tables_ = nullptr;
  std::vector<char*> memory_;
  std::vector<RawStep> raw_;
  std::vector<ChainPlan> plans_;  // of kernels that were launched
};

}  // namespace

}  // namespace chains

std::unique_ptr<Chain> make_chain(Device& device, size_t most_steps) {
  const char* const wish = std::getenv("WEFT_GPU_CHAIN");
  if (!device.chains || (wish && std::strcmp(wish, "0") == 0)) return nullptr;
  auto chain = std::make_unique<chains::DeviceChain>(device);
  return chain->prepare(most_steps).good() ? std::move(chain) : nullptr;
}

}  // namespace weft::cuda

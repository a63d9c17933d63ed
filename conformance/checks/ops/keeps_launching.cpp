#include <optional>
#include <set>

#include "conformance/asks.h"
#include "conformance/check.h"
#include "conformance/grown.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/memory_use.h"
#include "conformance/seam/usual.h"

// Launches each kernel hundreds of times from one plan, with changing data in each operand and changing
// memory: the last answer equals the first, and no memory is leaked.
namespace weft::conformance::checks::keeps_launching {
namespace {

/// One plan with a few sets of data, and the result of a launch in fresh memory for each.
class Repeated {
 public:
  Repeated(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, Random& random)
      : rig_(rig), plan_(plan), random_(random) {
    asks_.push_back(ask);
    for (size_t i = 0; i < ask.inputs.size(); ++i)
      if (const auto other = other_data(ask.inputs[i], 0, random)) {
        asks_.push_back(ask);
        asks_.back().inputs[i] = *other;
      }
    for (const Ask& one : asks_) wanted_.push_back(value_or_raise(rig.launch(plan, one)).outputs);
    if (!plan.call->desc().updates.empty()) return;
    placed_ = value_or_raise(rig.place(plan, ask)), elsewhere_ = value_or_raise(rig.place(plan, ask));
  }

  /// Launches it so many times more; returns the first launch with another answer.
  std::string launch(int n) {
    for (; n > 0; --n, ++done_) {
      const size_t which = done_ % asks_.size();
      const auto got = outputs_of(asks_[which]);
      for (size_t k = 0; k < got.size(); ++k)
        if (got[k].bytes != wanted_[which][k].bytes)
          return fmt::format("launch {} gives another output {} than the first", done_ + 1 + asks_.size(), k);
    }
    return "";
  }

 private:
  // Each operand is in one of two buffers, at random. Updated operands get a fresh one in each launch.
  std::vector<HostTensor> outputs_of(const Ask& ask) {
    if (!placed_) return value_or_raise(rig_.launch(plan_, ask)).outputs;
    for (size_t i = 0; i < ask.inputs.size(); ++i) {
      const auto& operand = *(random_.bits() % 2 ? elsewhere_ : placed_)->in[i];
      const auto& bytes = ask.inputs[i].bytes;
      raise_if(rig_.queue->copy_in(*operand.buffer.get(), 0, bytes.data(), bytes.size()));
      placed_->c_in[i] = &operand.c;
    }
    raise_if(rig_.enqueue(plan_, *placed_));
    raise_if(rig_.queue->synchronize());
    return value_or_raise(rig_.read(*placed_)).outputs;
  }

  Rig& rig_;
  seam::PreparedKernel& plan_;
  Random& random_;
  std::vector<Ask> asks_;
  std::vector<std::vector<HostTensor>> wanted_;
  std::optional<Rig::Placed> placed_, elsewhere_;
  size_t done_ = 0;
};

std::string over_and_over(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, int launches,
                          Random& random) {
  constexpr int kWarm = 40;
  Repeated repeated(rig, plan, ask, random);
  if (auto words = repeated.launch(kWarm); !words.empty()) return words;
  const int half = (launches - kWarm) / 2;
  std::string words;
  // A late queue holds a varying number of launches.
  const auto least = static_cast<uint64_t>((rig.device.ordered() ? 64 : 8) * half);
  const auto once = [&] {
    if (words.empty()) words = repeated.launch(half);
  };
  const uint64_t more = grown_by(held_bytes, 1, least, once);
  if (!words.empty()) return words;
  words = repeated.launch(half);
  if (!words.empty() || more == 0 || !held_is_told()) return words;
  return fmt::format("{} bytes stayed after {} launches, and as many after each {} more", more, half, half);
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const int launches = rig.device.ordered() ? 120 : 350;
  for (const auto& file : case_files()) {
    if (!run.wants(file.op)) continue;
    std::set<std::string> seen;
    Random random(run.options().seed);
    // Rendered kernels are one provider for all calls: the first call shows it.
    const size_t cases = rig.device.capability().dialect[0] ? 1 : file.cases().size();
    for (size_t i = 0; i < cases; ++i)
      for (const Ask& ask : asks_of(op_of(file), {file.cases()[i]}))
        for (auto& plan : candidates_of(rig, ask).plans) {
          if (!gives_equal_bits(rig, ask, plan) || plan->call->desc().outputs[0].bytes() == 0) continue;
          // For each kernel, the first call in each dtype.
          if (!seen.insert(fmt::format("{} {}", plan->kernel.id, name(plan->call->desc().outputs[0].dtype)))
                   .second)
            continue;
          run.run(fmt::format("{} by {}", title(ask), plan->kernel.id),
                  [&] { return Found::wrong(over_and_over(rig, *plan, ask, launches, random)); });
        }
  }
}

}  // namespace

extern const Check check = {
    "keeps_launching", "hundreds of launches of a plan give the same answers and leave nothing behind", run};

}  // namespace weft::conformance::checks::keeps_launching

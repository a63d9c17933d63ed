#include "link/conflicts.h"

namespace weft::link {
namespace {

// Steps are processed in blocks, one bit of a word each.
constexpr size_t kWords = 64, kBlock = 64 * kWords;

struct Pair {
  uint32_t earlier, later;
};

Status check_steps(const std::vector<Step>& steps) {
  for (size_t i = 0; i < steps.size(); ++i)
    for (const uint32_t earlier : steps[i].after)
      if (earlier >= i)
        return fail(Code::internal, "step {} waits for step {}, which is not before it", i, earlier);
  return {};
}

// For each step, the steps of the block at `first` that it comes after.
class Ancestors {
 public:
  Ancestors(const std::vector<Step>& steps, size_t first)
      : first_(first), rows_((steps.size() - first) * kWords) {
    for (size_t i = first; i < steps.size(); ++i)
      for (const uint32_t earlier : steps[i].after) {
        if (earlier < first) continue;
        for (size_t w = 0; w < kWords; ++w) row(i)[w] |= row(earlier)[w];
        if (const size_t bit = earlier - first; bit < kBlock) row(i)[bit / 64] |= uint64_t{1} << bit % 64;
      }
  }
  bool has(uint32_t earlier, uint32_t later) {
    const size_t bit = earlier - first_;
    return row(later)[bit / 64] >> bit % 64 & 1;
  }

 private:
  uint64_t* row(size_t i) { return rows_.data() + (i - first_) * kWords; }
  size_t first_;
  std::vector<uint64_t> rows_;
};

std::string name(const Schedule& schedule, uint32_t i) {
  const Step& s = schedule.steps[i];
  return fmt::format("step {} ({})", i, s.prepared ? s.prepared->kernel.id : "a copy");
}

// Walks through the steps in order and finds the pairs whose order matters.
class Walk {
 public:
  explicit Walk(const Schedule& schedule) : schedule_(schedule), accesses_(schedule) {}

  Status run() {
    for (uint32_t i = 0; i < schedule_.steps.size(); ++i) {
      const auto& all = accesses_.of(schedule_.steps[i]);
      WEFT_CHECK(check_operands(all, i));
      WEFT_CHECK(check_sums(all, i));
      for (const Access& a : all) WEFT_CHECK(touch(a, i));
    }
    return {};
  }
  const std::vector<std::vector<Pair>>& pairs_by_block() const { return pairs_; }

 private:
  const BufferAllocation& slot(int32_t s) const { return schedule_.slots[static_cast<size_t>(s)]; }

  // Was the kernel asked to update this operand, and do both cover exactly the same bytes?
  bool may_lie_over(const Access& w, const Access& a, const Step& step) const {
    if (!step.prepared || w.begin != a.begin || w.end != a.end) return false;
    for (const auto& [output, input] : step.prepared->call->desc().updates)
      if (step.outputs[output] == w.slot && step.inputs[input] == a.slot) return true;
    return std::ranges::find(step.onto, a.slot) != step.onto.end();
  }

  // A step's writes overlap nothing else that it touches, except operands that it updates.
  Status check_operands(const std::vector<Access>& all, uint32_t i) const {
    for (const Access& w : all)
      for (const Access& a : all)
        if (w.writes && &w != &a && w.memory == a.memory && w.begin < a.end && a.begin < w.end &&
            (a.writes || !may_lie_over(w, a, schedule_.steps[i])))
          return fail(Code::internal, "{} writes slot {} into bytes of slot {}, which it touches too",
                      name(schedule_, i), w.slot, a.slot);
    return {};
  }

  // A result is added to a value that the step reads there.
  Status check_sums(const std::vector<Access>& all, uint32_t i) const {
    const Step& step = schedule_.steps[i];
    const uint64_t adds = step.prepared ? step.prepared->call->desc().accumulate : 0;
    for (const Access& w : all) {
      const auto k = static_cast<size_t>(std::ranges::find(step.outputs, w.slot) - step.outputs.begin());
      if (!w.writes || k == step.outputs.size() || !(adds >> k & 1)) continue;
      const auto is_it = [&](const Access& a) {
        return !a.writes && a.memory == w.memory && a.begin == w.begin && a.end == w.end &&
               std::ranges::find(step.onto, a.slot) != step.onto.end();
      };
      if (std::ranges::none_of(all, is_it))
        return fail(Code::internal, "{} adds to slot {}, and reads no value there", name(schedule_, i),
                    w.slot);
    }
    return {};
  }

  // The bytes that are read were last written as that value; in an arena, all of them.
  Status touch(const Access& a, uint32_t i) {
    uint64_t kept = 0, lost = 0;
    histories_[a.memory].touch(a, i, [&](uint32_t earlier, uint64_t bytes, int32_t as) {
      pairs_[earlier / kBlock].push_back({earlier, i});
      if (!a.writes) (slot(as).value == slot(a.slot).value ? kept : lost) += bytes;
    });
    const bool in_arena = slot(a.slot).kind == BufferAllocation::Kind::arena;
    if (a.writes || (in_arena ? kept == a.end - a.begin : lost == 0)) return {};
    return fail(Code::internal, "{} reads slot {}, and {} of its {} bytes are what was written there",
                name(schedule_, i), a.slot, in_arena ? kept : a.end - a.begin - lost, a.end - a.begin);
  }

  const Schedule& schedule_;
  Accesses accesses_;
  Histories histories_;
  std::vector<std::vector<Pair>> pairs_ =
      std::vector<std::vector<Pair>>(schedule_.steps.size() / kBlock + 1);  // by the earlier one
};

}  // namespace

Status check_dependencies(const Schedule& schedule) {
  WEFT_CHECK(check_steps(schedule.steps));
  Walk walk(schedule);
  WEFT_CHECK(walk.run());
  for (size_t b = 0; b < walk.pairs_by_block().size(); ++b) {
    if (walk.pairs_by_block()[b].empty()) continue;
    Ancestors ancestors(schedule.steps, b * kBlock);
    for (const auto& [earlier, later] : walk.pairs_by_block()[b])
      if (!ancestors.has(earlier, later))
        return fail(Code::internal, "{} and {} touch the same bytes, and nothing orders them",
                    name(schedule, earlier), name(schedule, later));
  }
  return {};
}

}  // namespace weft::link

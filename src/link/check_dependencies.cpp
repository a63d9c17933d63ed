#include "link/conflicts.h"

namespace weft::link {
namespace {

// As many steps are looked at together as one's row of bits has.
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

// Which steps of the block that begins at `first` does each step come after?
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

// The step that wrote each slot's value last, while the steps go by: of arenas, where slots share bytes.
class Values {
 public:
  explicit Values(const ExecutionPlan& plan) : plan_(plan), writer_(plan.slots.size(), kNone) {}
  uint32_t writer(int32_t slot) const { return writer_[base(slot)]; }
  bool in_arena(int32_t slot) const {
    return plan_.slots[static_cast<size_t>(slot)].kind == BufferAllocation::Kind::arena;
  }
  bool are_one(int32_t a, int32_t b) const { return base(a) == base(b); }
  void ran(const Step& step, uint32_t i) {
    for (const int32_t slot : step.outputs)
      if (slot >= 0) writer_[base(slot)] = i;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  size_t base(int32_t slot) const {
    const int32_t same = plan_.slots[static_cast<size_t>(slot)].same_as;
    return static_cast<size_t>(same < 0 ? slot : same);
  }
  const ExecutionPlan& plan_;
  std::vector<uint32_t> writer_;
};

std::string name(const ExecutionPlan& plan, uint32_t i) {
  const Step& s = plan.steps[i];
  return fmt::format("step {} ({})", i, s.plan ? s.plan->kernel.id : "a copy");
}

// Goes through the steps in their order, and finds the pairs that must keep it.
class Walk {
 public:
  explicit Walk(const ExecutionPlan& plan) : plan_(plan), accesses_(plan), values_(plan) {}

  Status run() {
    for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
      const auto& all = accesses_.of(plan_.steps[i]);
      WEFT_CHECK(check_operands(all, i));
      for (const Access& a : all) WEFT_CHECK(touch(a, i));
      values_.ran(plan_.steps[i], i);
    }
    return {};
  }
  const std::vector<std::vector<Pair>>& pairs_by_block() const { return pairs_; }

 private:
  // What a step writes is nothing else that it touches, but for an operand that it updates.
  Status check_operands(const std::vector<Access>& all, uint32_t i) const {
    for (const Access& w : all)
      for (const Access& a : all)
        if (w.writes && w.memory == a.memory && w.begin < a.end && a.begin < w.end &&
            !values_.are_one(w.slot, a.slot))
          return fail(Code::internal, "{} writes slot {} into bytes of slot {}, which it touches too",
                      name(plan_, i), w.slot, a.slot);
    return {};
  }

  // What is read from an arena is all what was written for it.
  Status touch(const Access& a, uint32_t i) {
    uint64_t kept = 0;
    histories_[a.memory].touch(a, i, [&](uint32_t earlier, uint64_t bytes) {
      pairs_[earlier / kBlock].push_back({earlier, i});
      if (!a.writes && earlier == values_.writer(a.slot)) kept += bytes;
    });
    if (a.writes || !values_.in_arena(a.slot) || kept == a.end - a.begin) return {};
    return fail(Code::internal, "{} reads slot {}, and {} of its {} bytes are what was written there",
                name(plan_, i), a.slot, kept, a.end - a.begin);
  }

  const ExecutionPlan& plan_;
  Accesses accesses_;
  Values values_;
  Histories histories_;
  std::vector<std::vector<Pair>> pairs_ =
      std::vector<std::vector<Pair>>(plan_.steps.size() / kBlock + 1);  // by the earlier one
};

}  // namespace

Status check_dependencies(const ExecutionPlan& plan) {
  WEFT_CHECK(check_steps(plan.steps));
  Walk walk(plan);
  WEFT_CHECK(walk.run());
  for (size_t b = 0; b < walk.pairs_by_block().size(); ++b) {
    if (walk.pairs_by_block()[b].empty()) continue;
    Ancestors ancestors(plan.steps, b * kBlock);
    for (const auto& [earlier, later] : walk.pairs_by_block()[b])
      if (!ancestors.has(earlier, later))
        return fail(Code::internal, "{} and {} touch the same bytes, and nothing orders them",
                    name(plan, earlier), name(plan, later));
  }
  return {};
}

}  // namespace weft::link

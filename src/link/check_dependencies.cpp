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
  /// Are these bytes, which `writer` wrote last, the value of the slot?
  bool is_kept(int32_t slot, uint32_t writer) const {
    return plan_.slots[static_cast<size_t>(slot)].kind != BufferAllocation::Kind::arena ||
           writer_[base(slot)] == writer;
  }
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

}  // namespace

Status check_dependencies(const ExecutionPlan& plan) {
  const auto& steps = plan.steps;
  WEFT_CHECK(check_steps(steps));
  Values values(plan);
  uint32_t ran = 0;
  Status lost;
  std::vector<std::vector<Pair>> by_block(steps.size() / kBlock + 1);
  for_each_conflict(plan, [&](uint32_t earlier, uint32_t later, const Access& access) {
    for (; ran < later; ++ran) values.ran(steps[ran], ran);
    by_block[earlier / kBlock].push_back({earlier, later});
    if (lost.ok() && !access.writes && !values.is_kept(access.slot, earlier))
      lost = fail(Code::internal, "{} reads slot {}, whose bytes {} has written over", name(plan, later),
                  access.slot, name(plan, earlier));
  });
  WEFT_CHECK(lost);
  for (size_t b = 0; b < by_block.size(); ++b) {
    if (by_block[b].empty()) continue;
    Ancestors ancestors(steps, b * kBlock);
    for (const auto& [earlier, later] : by_block[b])
      if (!ancestors.has(earlier, later))
        return fail(Code::internal, "{} and {} touch the same bytes, and nothing orders them",
                    name(plan, earlier), name(plan, later));
  }
  return {};
}

}  // namespace weft::link

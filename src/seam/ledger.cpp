#include "seam/ledger.h"

#include <new>

namespace weft {

std::vector<LedgerRow> ledger_rows() { return seam::ledger().rows(); }
void reset_ledger() { seam::ledger().clear(); }

std::string ledger_text() {
  std::string s =
      fmt::format("{:<24} {:<14} {:<34} {:>10} {:>12}\n", "device", "op", "kernel", "calls", "bytes moved");
  for (const auto& r : ledger_rows()) {
    s += fmt::format("{:<24} {:<14} {:<34} {:>10} {:>12}\n", r.device, r.op, r.kernel, r.calls, r.bytes);
    if (!r.why.empty()) s += fmt::format("    because {}\n", r.why);
  }
  return s;
}

namespace seam {

Ledger& ledger() {
  static auto* one = new Ledger;  // plans of ended threads still report to it while the process exits
  return *one;
}

static LedgerRow row_of(const PreparedKernel& plan) {
  return {plan.device.name(), plan.call->desc().op, plan.kernel.id, plan.why, 0, 0, plan.plan.precision};
}

static uint64_t calls_since_reset(const PreparedKernel& plan) {
  return plan.calls.load(std::memory_order_relaxed) - plan.cleared;
}

void Ledger::enter(PreparedKernel& plan) {
  std::lock_guard lock(mutex_);
  plan.after = live_;
  if (live_) live_->before = &plan;
  live_ = &plan;
}

void Ledger::leave(PreparedKernel& plan) {
  std::lock_guard lock(mutex_);
  if (live_ != &plan && !plan.before) return;  // never entered: its prepare failed
  if (plan.before) plan.before->after = plan.after;
  if (plan.after) plan.after->before = plan.before;
  if (live_ == &plan) live_ = plan.after;
  const uint64_t calls = calls_since_reset(plan);
  if (!calls) return;
  try {
    LedgerRow row = row_of(plan);
    ended_.try_emplace({row.device, row.op, row.kernel, row.why}, row).first->second.calls += calls;
  } catch (const std::bad_alloc&) {  // plans end where nothing may be raised: better the count is lost
  }
}

void Ledger::chosen(const std::string& device, const std::string& passed_over) {
  std::lock_guard lock(mutex_);
  auto row = LedgerRow{device, "choice", device, "passed over: " + passed_over, 0, 0, 0};
  ++chosen_.try_emplace({device, passed_over}, std::move(row)).first->second.calls;
}

void Ledger::copied(const std::string& from, const std::string& to, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto& row = copies_.try_emplace({from, to}, LedgerRow{from + " -> " + to, "copy", "copy", "", 0, 0, 0})
                  .first->second;
  ++row.calls, row.bytes += bytes;
}

std::vector<LedgerRow> Ledger::rows() const {
  std::lock_guard lock(mutex_);
  auto all = ended_;
  for (const PreparedKernel* plan = live_; plan; plan = plan->after) {
    const uint64_t calls = calls_since_reset(*plan);
    if (!calls) continue;
    LedgerRow row = row_of(*plan);
    all.try_emplace({row.device, row.op, row.kernel, row.why}, row).first->second.calls += calls;
  }
  std::vector<LedgerRow> out;
  for (const auto& [key, row] : chosen_) out.push_back(row);
  for (auto& [key, row] : all) out.push_back(std::move(row));
  for (const auto& [key, row] : copies_) out.push_back(row);
  return out;
}

void Ledger::clear() {
  std::lock_guard lock(mutex_);
  ended_.clear(), chosen_.clear(), copies_.clear();
  for (PreparedKernel* plan = live_; plan; plan = plan->after)
    plan->cleared = plan->calls.load(std::memory_order_relaxed);
}

}  // namespace seam
}  // namespace weft

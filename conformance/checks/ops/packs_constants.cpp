#include "conformance/asks.h"
#include "conformance/check.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/patterns.h"
#include "conformance/sizes/data.h"
#include "conformance/sizes/work.h"
#include "weft/backend/base.hpp"

// Kernels that want constants packed: two packings of one plan live at once, in guarded memory, and launches
// read nothing else. Sizes are random, and the oracle judges the answers.
namespace weft::conformance::checks::packs_constants {
namespace {

constexpr size_t kAround = 4096;
constexpr double kMostWork = 300'000;
constexpr int64_t kMostElements = 40'000;

/// The call with all operands constant, except those that it updates.
seam::CallPtr with_constants(const Ask& ask) {
  seam::CallDesc desc = value_or_raise(describe(ask))->desc();
  for (uint32_t i = 0; i < desc.inputs.size(); ++i) {
    const auto updated = [&](const auto& update) { return update.second == i; };
    if (desc.inputs[i] && std::ranges::none_of(desc.updates, updated)) desc.constants.push_back({i, {}});
  }
  return std::make_shared<const seam::OwnedCall>(std::move(desc));
}

std::vector<const weft_kernel*> wanting(Rig& rig, const seam::CallPtr& call) {
  std::vector<const weft_kernel*> found;
  for (const auto& source : rig.device.sources)
    for (const weft_kernel* k : source.kernels) {
      if (call->desc().op != k->op) continue;
      const auto plan = rig.plan(call, *k);
      if (plan.ok() && plan.value()->plan.packings) found.push_back(k);
    }
  return found;
}

/// A launch with packed constants, whose sources are overwritten before.
struct Packed {
  Rig::Placed placed;
  std::vector<Held> memory;
  std::vector<std::unique_ptr<weft_tensor>> operands;
  std::string wrong;
};
Packed pack_all(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, uint64_t key) {
  Packed p{.placed = value_or_raise(rig.place(plan, ask)), .memory = {}, .operands = {}, .wrong = {}};
  for (uint32_t i = 0; i < ask.inputs.size(); ++i) {
    const weft_packing* want = plan.plan.packings[i];
    if (!want) continue;
    const Held& held = p.memory.emplace_back(hold(rig, want->bytes + 2 * kAround, key + i));
    auto& to = *p.operands.emplace_back(std::make_unique<weft_tensor>(*p.placed.c_in[i]));
    to.dl.data = held.buffer->handle, to.dl.byte_offset = kAround, to.layout = want->layout;
    seam::CError error;
    raise_if(
        error.status(plan.kernel.pack(&plan.plan, i, p.placed.c_in[i], &to, rig.queue->c(), error.out())));
    raise_if(rig.queue->synchronize());
    std::vector<std::byte> all(held.bytes);
    raise_if(rig.queue->copy_out(all.data(), *held.buffer.get(), 0, all.size()));
    if (held.pattern.first_wrong(std::span(all).first(kAround)) ||
        held.pattern.first_wrong(std::span(all).subspan(kAround + want->bytes), kAround + want->bytes))
      p.wrong = fmt::format("packing input {} wrote outside the {} bytes that it asked for", i, want->bytes);
    const std::vector<std::byte> other(ask.inputs[i].bytes.size(), std::byte{0x3f});
    raise_if(rig.queue->copy_in(*p.placed.in[i]->buffer.get(), 0, other.data(), other.size()));
    p.placed.c_in[i] = &to;
  }
  return p;
}

std::string wrong_answer(Rig& rig, seam::PreparedKernel& plan, const Packed& packed,
                         const PreparedCase& right) {
  raise_if(rig.enqueue(plan, packed.placed));
  raise_if(rig.queue->synchronize());
  return judged(right, value_or_raise(rig.read(packed.placed)));
}

std::string wrong_by(Rig& rig, const weft_kernel& kernel, const PreparedCase& a, const PreparedCase& b) {
  const auto call = with_constants(ask_of(a));
  const auto plan = value_or_raise(rig.plan(call, kernel)), second = value_or_raise(rig.plan(call, kernel));
  const Packed first = pack_all(rig, *plan, ask_of(a), 1), other = pack_all(rig, *plan, ask_of(b), 100);
  for (const auto* p : {&first, &other})
    if (!p->wrong.empty()) return p->wrong;
  if (auto words = wrong_answer(rig, *plan, first, a); !words.empty()) return words;
  if (auto words = wrong_answer(rig, *plan, other, b); !words.empty())
    return "with the second constant, " + words;
  if (auto words = wrong_answer(rig, *plan, first, a); !words.empty())
    return "with the first constant again, " + words;
  auto words = wrong_answer(rig, *second, other, b);
  return words.empty() ? "" : "by another plan of the call, " + words;
}

PreparedCase drawn_case(const DrawnCall& call, Random& random, const std::string& label) {
  auto inputs = draw_operands(call, Data::normal, random);
  auto right = value_or_raise(bound_op(*call.op, call.attrs, inputs));
  return {*call.op, call.dtype, call.attrs, std::move(inputs), std::move(right), label};
}

void run_op(CheckRun& run, Rig& rig, const CaseFile& file, const OpCases& written) {
  const uint64_t most = run.options().full ? 400 : 12, draws = 8 * most;
  uint64_t found = 0;
  for (uint64_t i = 1; i <= draws && found < most; ++i) {
    if (found == 0 && i > draws / 2) return;  // none of its kernels packs
    Random random = random_for(run.options().seed, op_of(file), i);
    const auto call = draw_call(op_of(file), written, rig.device.capability().dtypes, random,
                                log_uniform(random, 2000, kMostElements));
    if (!call || oracle_work(*call) > kMostWork) continue;
    const auto label = fmt::format("{} {} {}", file.op, i, call->text());
    if (!run.wants(label)) continue;
    const PreparedCase types{*call->op, call->dtype, call->attrs, draw_operands(*call, Data::normal, random),
                             {},        label};
    const auto kernels = wanting(rig, with_constants(ask_of(types)));
    if (kernels.empty()) continue;
    ++found;
    run.run(label, [&] {
      const auto a = drawn_case(*call, random, label), b = drawn_case(*call, random, label);
      for (const auto* k : kernels) {
        run.covered.insert(k->id);
        if (auto words = wrong_by(rig, *k, a, b); !words.empty())
          return Found::wrong(fmt::format("{}: {}", k->id, words));
      }
      return Found();
    });
  }
}

bool has_packer(const Rig& rig, std::string_view op) {
  for (const auto& source : rig.device.sources)
    for (const weft_kernel* k : source.kernels)
      if (op == k->op && backend::read(k, &weft_kernel::pack)) return true;
  return false;
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  bool any = false;
  for (const auto& file : case_files()) {
    if (!has_packer(rig, file.op)) continue;
    any = true;
    if (run.wants(file.op)) run_op(run, rig, file, file.cases());
  }
  if (!any && run.wants("any kernel"))
    run.run("any kernel", [] { return Found::skipped("no kernel packs a constant"); });
}

}  // namespace

extern const Check check = {
    "packs_constants", "what a constant was packed into gives its right answers, whatever else is packed",
    run};

}  // namespace weft::conformance::checks::packs_constants

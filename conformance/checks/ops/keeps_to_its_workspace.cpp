#include <cstring>

#include "conformance/asks.h"
#include "conformance/check.h"
#include "conformance/edges.h"
#include "conformance/grown.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/guarded.h"
#include "conformance/seam/patterns.h"
#include "conformance/seam/usual.h"

// Every kernel that asks for a workspace, also at large sizes, gets exactly that, in guarded memory, filled
// with zeros, ones, NaN or noise. Its answer must not depend on the contents.
namespace weft::conformance::checks::keeps_to_its_workspace {
namespace {

constexpr size_t kAlignment = 64, kAround = 4096;

/// The contents of a workspace when a launch begins.
constexpr int kFillings = 4;
void fill(std::span<std::byte> bytes, int filling) {
  constexpr std::byte kBytes[] = {std::byte{0xff}, std::byte{0}, std::byte{1}};
  if (filling < 3)
    std::ranges::fill(bytes, kBytes[filling]);
  else
    Pattern(7).fill(bytes);
}

/// A workspace inside a device buffer, with a pattern on both sides.
std::string among_others(Rig& rig, seam::PreparedKernel& plan, const Ask& ask) {
  const size_t n = plan.plan.workspace;
  std::vector<HostTensor> first;
  for (int filling = 0; filling < kFillings; ++filling) {
    auto placed = value_or_raise(rig.place(plan, ask));
    const Held around = hold(rig, n + 2 * kAround, static_cast<uint64_t>(filling));
    std::vector<std::byte> inner(n);
    fill(inner, filling);
    raise_if(rig.queue->copy_in(*around.buffer.get(), kAround, inner.data(), n));
    const seam::ConcreteType type{DType::u8, {static_cast<int64_t>(n)}};
    weft_tensor workspace =
        tensor_at(static_cast<std::byte*>(around.buffer->handle), type, rig.device.dl(), kAround);
    workspace.alignment = kAlignment;
    raise_if(seam::launch(plan, *rig.queue, placed.c_in.data(), placed.c_out.data(), &workspace));
    raise_if(rig.queue->synchronize());
    std::vector<std::byte> all(around.bytes);
    raise_if(rig.queue->copy_out(all.data(), *around.buffer.get(), 0, all.size()));
    const auto before = around.pattern.first_wrong(std::span(all).first(kAround));
    const auto behind = around.pattern.first_wrong(std::span(all).subspan(kAround + n), kAround + n);
    if (before) return fmt::format("it wrote {} bytes before its workspace of {}", kAround - *before, n);
    if (behind) return fmt::format("it wrote byte {} of a workspace of {}", n + *behind, n);
    auto outputs = value_or_raise(rig.read(placed)).outputs;
    if (filling == 0) first = std::move(outputs);
    for (size_t k = 0; filling > 0 && k < first.size() && plan.plan.determinism >= WEFT_DETERMINISM_RUN; ++k)
      if (outputs[k].bytes != first[k].bytes)
        return fmt::format("output {} depends on what its workspace held before", k);
  }
  return "";
}

// In a child process, with memory that ends at a page, stray reads are seen as well.
void between_pages(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, bool at_end) {
  const size_t n = plan.plan.workspace, whole = (n + kAlignment - 1) / kAlignment * kAlignment;
  const Guarded memory(whole, at_end);
  auto placed = value_or_raise(rig.place(plan, ask));
  std::memset(memory.data(), 0xff, whole);
  const seam::ConcreteType type{DType::u8, {static_cast<int64_t>(n)}};
  weft_tensor workspace = tensor_at(memory.data(), type, rig.device.dl());
  workspace.alignment = kAlignment;
  raise_if(seam::launch(plan, *rig.queue, placed.c_in.data(), placed.c_out.data(), &workspace));
  raise_if(rig.queue->synchronize());
}

Found kept(Rig& rig, seam::PreparedKernel& plan, const Ask& ask) {
  auto words = among_others(rig, plan, ask);
  if (words.empty() && rig.device.host_memory() && !rig.device.ordered())
    for (const auto& said : in_children(2, [&](size_t i) { between_pages(rig, plan, ask, i == 0); }))
      if (words.empty()) words = said;
  return Found::wrong(words.empty() ? "" : fmt::format("{}: {}", plan.kernel.id, words));
}

/// The calls of an op, including large ones, as types without data: most kernels want no workspace.
std::vector<std::pair<Case, DType>> calls(const ir::OpDef& op, const CaseFile& file) {
  std::vector<std::pair<Case, DType>> all;
  const auto add = [&](const OpCases& cases, DTypes dtypes) {
    for (const Case& c : cases)
      for (int t = 0; t < kDTypeCount; ++t)
        if (holds(c.dtypes & dtypes, static_cast<DType>(t))) all.emplace_back(c, static_cast<DType>(t));
  };
  add(file.cases(), kAnyDType);
  add(edge_cases(op), only({DType::f32}));
  for (const int64_t factor : {8, 24})
    for (const Case& c : file.cases())
      if (const auto larger = grown(c, factor)) add({*larger}, only({DType::f32}));
  return all;
}

Ask types_of(const ir::OpDef& op, const Case& c, DType t) {
  Ask ask{.op = op.name, .attrs = c.attrs};
  for (const Input& i : c.inputs)
    ask.inputs.push_back({{i.dtype.value_or(t), IntList(i.shape.begin(), i.shape.end())}, {}});
  return ask;
}

bool wants_workspace(Rig& rig, const Ask& ask) {
  return describe(ask).ok() && std::ranges::any_of(candidates_of(rig, ask).plans,
                                                   [](const auto& plan) { return plan->plan.workspace > 0; });
}

constexpr size_t kMostOfAnOp = 40;

void run(CheckRun& run) {
  Rig rig(run.backend());
  size_t asked = 0;
  for (const auto& file : case_files()) {
    if (!run.wants(file.op)) continue;
    size_t of_op = 0;
    const auto& op = op_of(file);
    for (auto& [c, t] : calls(op, file)) {
      if (of_op == kMostOfAnOp || !wants_workspace(rig, types_of(op, c, t))) continue;
      Case one = c;
      one.dtypes = only({t});
      const auto asks = asks_of(op, {one});
      if (asks.empty()) continue;
      for (const auto& plan : candidates_of(rig, asks[0]).plans) {
        if (plan->plan.workspace == 0) continue;
        ++of_op, ++asked;
        run.run(fmt::format("{} by {}", title(asks[0]), plan->kernel.id),
                [&] { return kept(rig, *plan, asks[0]); });
      }
    }
  }
  if (asked == 0) run.run("any kernel", [] { return Found::skipped("no kernel asks for a workspace"); });
}

}  // namespace

extern const Check check = {"keeps_to_its_workspace",
                            "a kernel uses no more workspace than it asked for, and nothing that lay in it",
                            run};

}  // namespace weft::conformance::checks::keeps_to_its_workspace

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "seam/builtin.h"
#include "seam/ledger.h"
#include "seam/preference.h"
#include "seam/prepared_kernel.h"
#include "seam/registry.h"
#include "weft/backend/base.hpp"

namespace weft::seam {
namespace {

bool reads(const weft_kernel& k, std::string_view attr) {
  if (k.flags & WEFT_KERNEL_READS_ALL) return true;
  for (uint32_t i = 0; i < k.n_reads; ++i)
    if (attr == k.reads[i]) return true;
  return false;
}

constinit thread_local const Without::Refuse* refused_by_hand = nullptr;

// Yes is ok; no is a Status of code unsupported. An attribute that the kernel does not look at must have its
// default: so a kernel written before the attribute was added can't ignore it.
Status ask(const weft_kernel& k, Device& device, const OwnedCall& call) {
  if (refused_by_hand)
    if (std::string why = (*refused_by_hand)(k); !why.empty())
      return Status(Code::unsupported, std::move(why));
  for (const auto& attr : call.desc().off_default)
    if (!reads(k, attr)) return fail(Code::unsupported, "does not read attribute {}", attr);
  if (k.determinism < call.desc().determinism)
    return fail(Code::unsupported, "determinism level {} is wanted, it gives {}", call.desc().determinism,
                k.determinism);
  CError error;
  return error.status(k.accepts(&k, device.c(), call.c(), error.out()));
}

// Packings must be of constants, by kernels that have `pack`.
Status check_packings(const PreparedKernel& plan) {
  if (!plan.plan.packings) return {};
  const auto& call = plan.call->desc();
  for (uint32_t i = 0; i < call.inputs.size(); ++i) {
    const weft_packing* p = plan.plan.packings[i];
    if (!p) continue;
    const bool constant = std::ranges::count(call.constants, i, &Constant::input) > 0;
    if (!constant) return fail(Code::internal, "it wants input {} packed, which is no constant", i);
    if (!backend::read(&plan.kernel, &weft_kernel::pack))
      return fail(Code::internal, "it wants input {} packed and has no `pack`", i);
    if (!p->id || !p->id[0] || p->layout == 0 || p->alignment > 64)
      return fail(Code::internal,
                  "the packing of input {} lacks an id or a layout, or is aligned to {}, not 64", i,
                  p->alignment);
  }
  return {};
}

Result<PreparedPtr> prepare(Device& device, const weft_kernel& k, const CallPtr& call) {
  PreparedPtr prepared(new PreparedKernel(device, k, call));
  prepared->plan = {.size = sizeof(weft_plan),
                    .determinism = k.determinism,
                    .kernel = &k,
                    .call = call->c(),
                    .data = nullptr,
                    .workspace = 0,
                    .precision = WEFT_PRECISION_STRICT,
                    .reserved = 0,
                    .packings = nullptr};
  if (!k.prepare) return prepared;
  CError error;
  const weft_code code = k.prepare(&k, device.c(), call->c(), &prepared->plan, error.out());
  if (code != WEFT_OK) return error.status(code).at(k.id);
  if (prepared->plan.precision > call->desc().precision)
    return fail(Code::internal, "{}: precision mode {} was chosen, {} is allowed", k.id,
                prepared->plan.precision, call->desc().precision);
  if (prepared->plan.determinism < call->desc().determinism || prepared->plan.determinism > k.determinism)
    return fail(Code::internal, "{}: determinism level {} was chosen; {} is wanted, and it gives {} at most",
                k.id, prepared->plan.determinism, call->desc().determinism, k.determinism);
  WEFT_CHECK(check_packings(*prepared).at(k.id));
  return prepared;
}

// The kernel that was measured to be the fastest for this call. It is asked like any other; any problem with
// it only means that it is skipped.
PreparedPtr select_measured(Device& device, const CallPtr& call, std::vector<Refusal>* refusals) {
  const auto measured = preferences().find(device, call->desc());
  if (!measured || measured->kernel == measured->instead) return {};
  const auto pass_over = [&](std::string why) {
    refusals->push_back({measured->kernel, "measured as the fastest, " + std::move(why)});
    return PreparedPtr();
  };
  std::string contents;
  const weft_kernel* k = registry().find_kernel(device, measured->kernel, &contents);
  if (!k) return pass_over("and not here");
  if (contents != measured->contents) return pass_over("and changed since");
  if (!is_for(*k, call->desc())) return pass_over("and no kernel for this op");
  if (Status no = ask(*k, device, *call); !no.ok()) return pass_over("and refuses: " + no.message());
  auto plan = prepare(device, *k, call);
  if (!plan.ok()) return pass_over("and can't be prepared: " + plan.status().message());
  plan.value()->why = fmt::format("measured: {:.2f} times as fast as {}",
                                  static_cast<double>(measured->nanoseconds_instead) /
                                      static_cast<double>(std::max<uint64_t>(measured->nanoseconds, 1)),
                                  measured->instead);
  ledger().enter(*plan.value());
  return std::move(plan).value();
}

}  // namespace

namespace {

constexpr int64_t kLargeProduct = 1 << 22;  // multiply-adds: microseconds, on a GPU

int64_t multiply_adds(const CallDesc& call) {
  int64_t n = 0;
  if (call.region) {
    for (const StepDesc& s : call.region->steps) n += multiply_adds(s.call);
  } else if (call.op == "matmul") {
    const IntList& a = call.inputs[0]->shape;
    const int64_t rows = a[a.size() - 2], columns = a.back();
    const auto transposed = std::ranges::find(call.attrs, "transpose_a", &Attr::name);
    const bool is = transposed != call.attrs.end() && transposed->value == AttrValue(int64_t{1});
    n = element_count(std::span<const int64_t>(call.outputs[0].shape)) * (is ? rows : columns);
  }
  return n;
}

// The kernel of an earlier source that takes a large product in the body. It beats rendered text by more than
// the product gains from being fused with its neighbours, so the region is opened.
const weft_kernel* takes_a_product(Device& device, const KernelSource& rendered, const RegionDesc& body) {
  for (const StepDesc& step : body.steps) {
    if (multiply_adds(step.call) < kLargeProduct) continue;
    const OwnedCall call(step.call);
    for (const KernelSource* s = device.sources.data(); s != &rendered; ++s)
      for (const weft_kernel* k : s->kernels)
        if (step.call.op == k->op && ask(*k, device, call).ok()) return k;
    if (!step.call.region) continue;
    if (const weft_kernel* k = takes_a_product(device, rendered, *step.call.region)) return k;
  }
  return nullptr;
}

bool is_rendered(const KernelSource& source) {
  return std::ranges::any_of(builtin_providers(),
                             [&](const Provider& p) { return source.provider == p.name; });
}

}  // namespace

std::string text(const std::vector<Refusal>& refusals) {
  std::string s;
  for (const auto& r : refusals) s += fmt::format("{}{}: {}", s.empty() ? "" : "; ", r.kernel, r.reason);
  return s;
}

namespace {
constinit thread_local int groups = 0;
}
bool Together::open() { return groups > 0; }
Together::Together() {
  ++groups;
  for (const Provider& p : builtin_providers()) p.begin_together();
}
Together::~Together() {
  if (Status s = finish(); !s.ok()) warn("{}", s.text());
}
Status Together::finish() {
  Status first;
  for (const Provider& p : builtin_providers())
    if (Status s = open_ ? p.end_together() : Status(); first.ok()) first = std::move(s);
  groups -= open_, open_ = false;
  return first;
}

Without::Without(Refuse refuse) : refuse_(std::move(refuse)), before_(refused_by_hand) {
  refused_by_hand = &refuse_;
}
Without::~Without() { refused_by_hand = before_; }

Result<PreparedPtr> select(Device& device, const CallPtr& call, std::vector<Refusal>* refusals) {
  const auto consider = [&](std::string_view op) -> Result<PreparedPtr> {
    for (const auto& source : device.sources) {
      const weft_kernel* library = op == "region" && is_rendered(source)
                                       ? takes_a_product(device, source, *call->desc().region)
                                       : nullptr;
      if (library) {
        refusals->push_back({source.provider, fmt::format("{} takes a product in it", library->id)});
        continue;
      }
      for (const weft_kernel* k : source.kernels) {
        if (op != k->op && std::string_view(k->op) != "*") continue;
        if (Status no = ask(*k, device, *call); !no.ok()) {
          if (no.code() != Code::unsupported) return std::move(no).at(k->id);
          refusals->push_back({k->id, no.message()});
          continue;
        }
        auto plan = prepare(device, *k, call);
        if (!plan.ok()) return plan.take_status();
        plan.value()->why = text(*refusals);
        ledger().enter(*plan.value());
        return plan;
      }
    }
    return PreparedPtr();
  };
  if (auto plan = select_measured(device, call, refusals)) return plan;
  const size_t before = refusals->size();
  WEFT_TRY(PreparedPtr plan, consider(call->desc().op));
  if (plan || !call->desc().region) return plan;
  const bool bare = call->desc().op == "region";
  if (refusals->size() == before)
    refusals->push_back(
        {device.name(), bare ? "no kernel takes a region" : "no kernel is named " + call->desc().op});
  return bare ? std::move(plan) : consider("region");
}

bool is_for(const weft_kernel& k, const CallDesc& call) {
  const std::string_view op = k.op;
  return op == call.op || op == "*" || (op == "region" && call.region);
}

Result<PreparedPtr> prepare_with(Device& device, const weft_kernel& kernel, const CallPtr& call) {
  if (Status no = ask(kernel, device, *call); !no.ok()) return std::move(no).at(kernel.id);
  WEFT_TRY(auto plan, prepare(device, kernel, call));
  ledger().enter(*plan);
  return plan;
}

Status refused(const Device& device, const CallDesc& call, const std::vector<Refusal>& refusals,
               const Policy& policy, std::string_view node) {
  size_t width = 13;
  for (const auto& r : refusals) width = std::max(width, r.kernel.size());
  std::string s =
      fmt::format("{} on {} for {}", call.op, device.name(), text(call).substr(call.op.size() + 1));
  for (const auto& r : refusals) s += fmt::format("\n  {:<{}}  {}", r.kernel, width, r.reason);
  if (refusals.empty()) s += fmt::format("\n  {} has no kernel of this name", device.name());
  s += fmt::format("\n  {:<{}}  {}", "decomposition", width,
                   !call.region        ? "none: a primitive op"
                   : !policy.decompose ? "disabled by Policy::decompose"
                                       : "refused too");
  if (!node.empty()) s.append("\n  ").append(node);
  s += policy.fallback == Fallback::forbid
           ? "\n  hint: allow another device with --policy warn, or choose another backend"
           : "\n  hint: no other device could run it either";
  return Status(Code::unsupported, std::move(s));
}

Status pack(const PreparedKernel& plan, uint32_t input, const weft_tensor& from, const weft_tensor& to,
            Queue& queue) {
  CError error;
  queue.launched();
  const weft_code code = plan.kernel.pack(&plan.plan, input, &from, &to, queue.c(), error.out());
  return error.status(code).at(plan.kernel.id);
}

Status launch(PreparedKernel& plan, Queue& queue, const weft_tensor* const* inputs,
              const weft_tensor* const* outputs, const weft_tensor* workspace) {
  const weft_launch l{.size = sizeof(weft_launch),
                      .reserved = 0,
                      .plan = &plan.plan,
                      .device = plan.device.c(),
                      .queue = queue.c(),
                      .inputs = inputs,
                      .outputs = outputs,
                      .workspace = workspace};
  CError error;
  // An inline launch has run when it returns and leaves nothing in the queue, so threads may share that
  // queue.
  std::optional<Queue::Turn> turn;
  if (plan.device.ordered()) {
    turn.emplace(queue);
    WEFT_CHECK(turn->status());
    queue.launched();
  }
  const weft_code code = plan.kernel.launch(&l, error.out());
  plan.count();
  if (code == WEFT_OK) return {};
  return error.status(code).at(plan.kernel.id);
}

PreparedKernel::~PreparedKernel() {
  ledger().leave(*this);
  if (kernel.release && plan.data) kernel.release(&plan);
}

}  // namespace weft::seam

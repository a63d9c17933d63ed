#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "codegen/render.h"
#include "codegen/verify.h"
#include "loops/check.h"
#include "loops/elementwise.h"
#include "loops/loops.h"
#include "loops/stage.h"
#include "loops/text_cache.h"

namespace weft::loops {
namespace {

/// The dialect within the limits of this device. Before version 2, an element offset was an int.
codegen::Dialect spoken_by(const weft_backend& b, const weft_capability& c, codegen::Dialect dialect) {
  if (b.abi < 2) dialect.offset = dialect.scalar;
  if (c.group_items) dialect.group_items = std::min(dialect.group_items, c.group_items);
  if (c.shared_bytes) dialect.shared_bytes = std::min(dialect.shared_bytes, c.shared_bytes);
  return dialect;
}

/// Shared by the records of one opened device.
struct Site {
  Site(const weft_backend& b, weft_device d, const weft_capability& c, const codegen::Dialect& l)
      : backend(b), capability(c), dialect(spoken_by(b, c, l)), texts(b, d, dialect) {}
  const weft_backend& backend;
  const weft_capability capability;
  const codegen::Dialect dialect;
  TextCache texts;
};

struct Record {
  weft_kernel kernel{};
  std::string id;
  const Form* form = nullptr;
  Site* site = nullptr;
};

/// A dispatch that is ready but for the tensors.
struct Ready {
  Compiled* function;
  std::vector<Bound> buffers;
  Scalars scalars;
  uint32_t group;
};
/// The data of a plan: its dispatches if all sizes are known, else the functions that its launches may need,
/// null for others.
constexpr uint32_t kMaxKernels = 32;  // concat has one for each operand
struct Plan {
  bool exact = false;
  std::vector<Ready> ready;
  Compiled* functions[kMaxKernels] = {};
};

// Pending compilations of this thread's open groups of prepares (seam::Together).
struct OpenGroup {
  int depth = 0;
  std::vector<std::pair<TextCache*, Compiled*>> wanted;
};
thread_local OpenGroup group;

weft_code tell(const Status& status, weft_error* error) {
  if (!status.ok() && error) std::snprintf(error->text, sizeof error->text, "%s", status.message().c_str());
  return static_cast<weft_code>(status.code());
}
const Record& record_of(const weft_kernel* kernel) { return *static_cast<const Record*>(kernel->self); }

Status check_stages(const Record& r, const weft_call& call) {
  WEFT_TRY(const Stages stages, r.form->stages(call, r.site->capability.subgroup));
  const uint64_t most = r.site->capability.max_binding;
  if (most && stages.workspace > most)
    return fail(Code::unsupported, "needs a workspace of {} bytes, {}:{} binds at most {}", stages.workspace,
                r.site->capability.kind, r.site->capability.ordinal, most);
  for (const Stage& s : stages.list) WEFT_CHECK(codegen::verify(s.kernel));
  for (const Stage& s : stages.list)
    if (s.kernel.group > r.site->dialect.group_items)
      return fail(Code::unsupported, "groups of {} items, {} has {}", s.kernel.group, r.site->dialect.name,
                  r.site->dialect.group_items);
  return {};
}

weft_code accepts(const weft_kernel* kernel, weft_device, const weft_call* call, weft_error* error) {
  const Record& r = record_of(kernel);
  Status status = check_common(*call, *r.form, r.site->capability);
  if (status.ok()) status = r.form->stages ? check_stages(r, *call) : r.form->check(*call);
  // Errors here mean unsupported, not invalid: another kernel may take the call.
  return status.ok() ? WEFT_OK : (tell(status, error), WEFT_UNSUPPORTED);
}

Status compile(TextCache& texts, Compiled& function) {
  Compiled* const one[] = {&function};
  return function.module ? Status() : texts.compile(one);
}

/// The function of a kernel, compiled now or together with others.
Result<Compiled*> function_of(const Record& r, const codegen::LoopKernel& kernel) {
  WEFT_CHECK(codegen::verify(kernel));
  WEFT_TRY(auto function, codegen::render_function(kernel, r.site->dialect));
  Compiled& compiled = r.site->texts.place(std::move(function));
  if (group.depth > 0)
    group.wanted.emplace_back(&r.site->texts, &compiled);
  else
    WEFT_CHECK(compile(r.site->texts, compiled));
  return &compiled;
}

/// A form's dispatches for tensors of exactly the call's sizes.
Stages stages_of(const Form& form, const weft_call& call) {
  std::vector<weft_tensor> tensors(call.n_inputs + call.n_outputs);
  std::vector<const weft_tensor*> pointers(tensors.size(), nullptr);
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const weft_type* t = i < call.n_inputs ? call.inputs[i] : call.outputs[i - call.n_inputs];
    if (!t) continue;
    tensors[i].dl.ndim = t->rank, tensors[i].dl.dtype = t->dtype;
    tensors[i].dl.shape = const_cast<int64_t*>(t->max);
    pointers[i] = &tensors[i];
  }
  const Operands operands{
      call, {pointers.data(), call.n_inputs}, {pointers.data() + call.n_inputs, call.n_outputs}};
  Stages stages;
  for (uint32_t k = 0; k < kMaxKernels; ++k) {
    Job job;
    if (!(form.needed(call) >> k & 1) || !form.bind(operands, k, job)) continue;
    Stage stage{form.build(call, k), {}, job.scalars};
    for (const weft_tensor* t : job.buffers) {
      const auto i = static_cast<uint32_t>(t - tensors.data());
      const bool input = i < call.n_inputs;
      stage.buffers.push_back(
          {input ? Bound::Kind::input : Bound::Kind::output, input ? i : i - call.n_inputs, dtype(*t)});
    }
    stages.list.push_back(std::move(stage));
  }
  stages.determinism = form.determinism;
  return stages;
}

bool all_exact(const weft_call& call) {
  for (uint32_t k = 0; k < call.n_inputs; ++k)
    if (call.inputs[k] && !exact(*call.inputs[k])) return false;
  for (uint32_t k = 0; k < call.n_outputs; ++k)
    if (!exact(*call.outputs[k])) return false;
  return true;
}

Status prepare_plan(const Record& r, const weft_call& call, weft_plan& c, Plan& plan) {
  c.determinism = r.form->determinism;
  plan.exact = all_exact(call);
  if (plan.exact) {
    Stages stages;
    if (r.form->stages) {
      WEFT_TRY(stages, r.form->stages(call, r.site->capability.subgroup));
    } else {
      stages = stages_of(*r.form, call);
    }
    for (Stage& s : stages.list) {
      WEFT_TRY(Compiled* const function, function_of(r, s.kernel));
      plan.ready.push_back({function, std::move(s.buffers), s.scalars, s.kernel.group});
    }
    c.workspace = stages.workspace, c.determinism = stages.determinism;
    return {};
  }
  for (uint32_t k = 0; k < kMaxKernels; ++k)
    if (r.form->needed(call) >> k & 1) {
      WEFT_TRY(plan.functions[k], function_of(r, r.form->build(call, k)));
    }
  return {};
}

weft_code prepare(const weft_kernel* kernel, weft_device, const weft_call* call, weft_plan* plan,
                  weft_error* error) {
  const Record& r = record_of(kernel);
  auto data = std::make_unique<Plan>();
  plan->workspace = 0;
  if (Status s = prepare_plan(r, *call, *plan, *data); !s.ok()) return tell(std::move(s).at(r.id), error);
  plan->data = data.release();
  plan->precision = WEFT_PRECISION_STRICT;
  return WEFT_OK;
}
void release(weft_plan* plan) {
  delete static_cast<Plan*>(plan->data);
  plan->data = nullptr;
}

weft_code dispatch(const Record& r, weft_queue queue, weft_module module,
                   std::span<const weft_tensor* const> buffers, const Scalars& scalars, uint32_t group_items,
                   weft_error* error) {
  weft_dispatch d{};
  d.size = sizeof d;
  d.n_buffers = static_cast<uint32_t>(buffers.size());
  d.module = module;
  d.buffers = buffers.data();
  d.scalars = scalars.data();
  d.n_scalars = static_cast<uint32_t>(scalars.size());
  d.global[0] = static_cast<uint64_t>(scalars[0]) * std::max(group_items, 1u);
  d.local[0] = group_items;
  d.global[1] = d.global[2] = 1;
  d.name = r.id.c_str();
  return r.site->backend.dispatch(queue, &d, error);
}

/// Compiles what a dry run deferred; false: this is a dry run too.
Result<bool> compiled_now(const Record& r, Compiled& function) {
  if (function.module) return true;
  if (group.depth > 0) return false;
  WEFT_CHECK(compile(r.site->texts, function));
  return true;
}

weft_code launch_ready(const Record& r, const weft_launch* l, const Plan& plan, weft_error* error) {
  for (const Ready& ready : plan.ready) {
    if (ready.scalars[0] == 0) continue;
    const Result<bool> compiled = compiled_now(r, *ready.function);
    if (!compiled.ok()) return tell(Status(compiled.status()).at(r.id), error);
    if (!compiled.value()) continue;
    const size_t n = ready.buffers.size();
    SmallVector<const weft_tensor*, 16> list;
    SmallVector<weft_tensor, 8> list_of_pieces;
    const weft_tensor** const tensors = list.extend(n);
    weft_tensor* const pieces = list_of_pieces.extend(n);
    for (size_t i = 0; i < n; ++i) {
      const Bound& bound = ready.buffers[i];
      if (bound.kind != Bound::Kind::scratch) {
        tensors[i] = (bound.kind == Bound::Kind::input ? l->inputs : l->outputs)[bound.index];
        continue;
      }
      weft_tensor& piece = pieces[i];
      piece = *l->workspace;
      piece.dl.dtype = {info(bound.dtype).dlpack_code, static_cast<uint8_t>(8 * byte_size(bound.dtype)), 1};
      piece.dl.byte_offset += bound.offset;
      tensors[i] = &piece;
    }
    const weft_code code =
        dispatch(r, l->queue, ready.function->module, {tensors, n}, ready.scalars, ready.group, error);
    if (code != WEFT_OK) return code;
  }
  return WEFT_OK;
}

weft_code launch(const weft_launch* l, weft_error* error) {
  const Record& r = record_of(l->plan->kernel);
  const Plan& plan = *static_cast<const Plan*>(l->plan->data);
  const weft_call& call = *l->plan->call;
  if (plan.exact) return launch_ready(r, l, plan, error);
  const Operands operands{call, {l->inputs, call.n_inputs}, {l->outputs, call.n_outputs}};
  for (uint32_t k = 0; k < kMaxKernels; ++k) {
    Job job;
    if (!(r.form->needed(call) >> k & 1) || !r.form->bind(operands, k, job) || job.scalars[0] == 0) continue;
    const Result<bool> compiled = compiled_now(r, *plan.functions[k]);
    if (!compiled.ok()) return tell(Status(compiled.status()).at(r.id), error);
    if (!compiled.value()) continue;
    const weft_code code =
        dispatch(r, l->queue, plan.functions[k]->module, job.buffers, job.scalars, 0, error);
    if (code != WEFT_OK) return code;
  }
  return WEFT_OK;
}

/// The records made by a call to `kernels`, kept until the process ends, as the contract requires.
struct Made {
  std::mutex mutex;
  std::vector<std::unique_ptr<Site>> sites;
  std::vector<std::unique_ptr<Record>> records;
};
Made& made() {
  static Made& all = *new Made;
  return all;
}

std::unique_ptr<Record> make_record(const Form& form, Site& site) {
  auto r = std::make_unique<Record>();
  r->id = fmt::format("loops.{}.{}", form.op, form.variant);
  r->form = &form;
  r->site = &site;
  weft_kernel& k = r->kernel;
  k.size = sizeof k;
  k.determinism = form.determinism;
  k.id = r->id.c_str();
  k.op = form.op;
  k.reads = form.reads.data();
  k.n_reads = static_cast<uint32_t>(form.reads.size());
  k.flags = WEFT_KERNEL_RECORDABLE;
  if (std::string_view(form.op) == "region") k.flags |= WEFT_KERNEL_READS_ALL;
  k.self = r.get();
  k.accepts = accepts;
  k.prepare = prepare;
  k.release = release;
  k.launch = launch;
  return r;
}

std::vector<const weft_kernel*> kernels(const weft_backend& backend, weft_device device,
                                        const weft_capability& capability, const weft_host&) {
  const codegen::Dialect* dialect = codegen::find_dialect(capability.dialect);
  if (!backend.compile || !backend.dispatch || !dialect) return {};
  std::lock_guard lock(made().mutex);
  made().sites.push_back(std::make_unique<Site>(backend, device, capability, *dialect));
  std::vector<const weft_kernel*> list;
  int32_t rank = 0;  // a chain first, then groups, then one item for each element
  for (const auto forms : {elementwise_forms(), fused_forms(), fold_forms(), conv_forms(), move_forms(),
                           index_forms(), order_forms()}) {
    for (const Form& form : forms) {
      made().records.push_back(make_record(form, *made().sites.back()));
      made().records.back()->kernel.rank = rank;
      list.push_back(&made().records.back()->kernel);
    }
    --rank;
  }
  return list;
}

Result<std::string> statements(const weft_call& call, std::string_view dialect_name) {
  const codegen::Dialect* dialect = codegen::find_dialect(dialect_name);
  if (!dialect)
    return fail(Code::unsupported, "no dialect \"{}\"; known: {}", dialect_name, codegen::dialect_names());
  WEFT_CHECK(check_operands(call));
  WEFT_CHECK(check_elementwise(call));
  codegen::LoopBuilder b;
  codegen::Ids in;
  for (uint32_t k = 0; k < call.n_inputs; ++k)
    in.push_back(b.parameter(codegen::type_of(dtype(*call.inputs[k])), k));
  const codegen::Ids out = elementwise_body(b, call, in, true);
  for (uint32_t k = 0; k < call.n_outputs; ++k) b.result(k, out[k]);
  const codegen::LoopKernel fragment = b.take();
  WEFT_CHECK(codegen::verify(fragment));
  return codegen::render(fragment, *dialect);
}

void begin_together() { ++group.depth; }
Status end_together() {
  if (--group.depth > 0) return {};
  const auto wanted = std::exchange(group.wanted, {});
  std::map<TextCache*, std::vector<Compiled*>> by_device;
  for (const auto& [texts, function] : wanted) by_device[texts].push_back(function);
  Status first;
  for (const auto& [texts, functions] : by_device)
    if (Status s = texts->compile(functions); first.ok()) first = std::move(s);
  return first;
}

}  // namespace

extern constinit const seam::Provider provider = {"loops", kernels, begin_together, end_together};

uint64_t render(const weft_call* call, const char* dialect, char* text, uint64_t capacity,
                weft_error* error) {
  const Result<std::string> body = statements(*call, dialect);
  if (!body.ok()) {
    tell(body.status(), error);
    return 0;
  }
  if (text && capacity) std::snprintf(text, capacity, "%s", body.value().c_str());
  return body.value().size();
}

}  // namespace weft::loops

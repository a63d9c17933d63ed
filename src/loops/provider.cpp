#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "codegen/render.h"
#include "codegen/verify.h"
#include "loops/check.h"
#include "loops/elementwise.h"
#include "loops/loops.h"
#include "loops/text_cache.h"

namespace weft::loops {
namespace {

/// What the records of one opened device share.
struct Site {
  Site(const weft_backend& b, weft_device d, const weft_capability& c, const codegen::Dialect& l)
      : backend(b), capability(c), dialect(l), texts(b, d, l) {}
  const weft_backend& backend;
  const weft_capability capability;
  const codegen::Dialect& dialect;
  TextCache texts;
};

struct Record {
  weft_kernel kernel{};
  std::string id;
  const Form* form = nullptr;
  Site* site = nullptr;
};

/// A plan's own data: the functions that its launches may need, null for the others.
constexpr uint32_t kMaxKernels = 8;  // concat has one for each operand
struct Plan {
  Compiled* functions[kMaxKernels] = {};
};

// What the open groups of prepares of this thread (seam::Together) have left to compile.
struct Group {
  int depth = 0;
  std::vector<std::pair<TextCache*, Compiled*>> wanted;
};
thread_local Group group;

weft_code tell(const Status& status, weft_error* error) {
  if (!status.ok() && error) std::snprintf(error->text, sizeof error->text, "%s", status.message().c_str());
  return static_cast<weft_code>(status.code());
}
const Record& record_of(const weft_kernel* kernel) { return *static_cast<const Record*>(kernel->self); }

weft_code accepts(const weft_kernel* kernel, weft_device, const weft_call* call, weft_error* error) {
  const Record& r = record_of(kernel);
  Status status = check_common(*call, *r.form, r.site->capability);
  if (status.ok()) status = r.form->check(*call);
  // Whatever this call's checks let through is unsupported here, not wrong: another kernel may know better.
  return status.ok() ? WEFT_OK : (tell(status, error), WEFT_UNSUPPORTED);
}

Status compile(TextCache& texts, Compiled& function) {
  Compiled* const one[] = {&function};
  return function.module ? Status() : texts.compile(one);
}

Status prepare_plan(const Record& r, const weft_call& call, Plan& plan) {
  const uint32_t needed = r.form->needed(call);
  for (uint32_t k = 0; k < kMaxKernels; ++k) {
    if (!(needed >> k & 1)) continue;
    const codegen::LoopKernel kernel = r.form->build(call, k);
    WEFT_CHECK(codegen::verify(kernel));
    WEFT_TRY(auto function, codegen::render_function(kernel, r.site->dialect));
    Compiled& compiled = r.site->texts.place(std::move(function));
    plan.functions[k] = &compiled;
    if (group.depth > 0)
      group.wanted.emplace_back(&r.site->texts, &compiled);
    else
      WEFT_CHECK(compile(r.site->texts, compiled));
  }
  return {};
}

weft_code prepare(const weft_kernel* kernel, weft_device, const weft_call* call, weft_plan* plan,
                  weft_error* error) {
  const Record& r = record_of(kernel);
  auto data = std::make_unique<Plan>();
  if (Status s = prepare_plan(r, *call, *data); !s.ok()) return tell(std::move(s).at(r.id), error);
  plan->data = data.release();
  plan->workspace = 0;
  plan->determinism = r.form->determinism;
  plan->precision = WEFT_PRECISION_STRICT;
  return WEFT_OK;
}
void release(weft_plan* plan) {
  delete static_cast<Plan*>(plan->data);
  plan->data = nullptr;
}

weft_code dispatch(const Record& r, weft_queue queue, weft_module module, const Job& job, weft_error* error) {
  weft_dispatch d{};
  d.size = sizeof d;
  d.n_buffers = static_cast<uint32_t>(job.buffers.size());
  d.module = module;
  d.buffers = job.buffers.data();
  d.scalars = job.scalars.data();
  d.n_scalars = static_cast<uint32_t>(job.scalars.size());
  d.global[0] = static_cast<uint64_t>(job.scalars[0]);
  d.global[1] = d.global[2] = 1;
  d.name = r.id.c_str();
  return r.site->backend.dispatch(queue, &d, error);
}

weft_code launch(const weft_launch* l, weft_error* error) {
  const Record& r = record_of(l->plan->kernel);
  const Plan& plan = *static_cast<const Plan*>(l->plan->data);
  const weft_call& call = *l->plan->call;
  const Operands operands{call, {l->inputs, call.n_inputs}, {l->outputs, call.n_outputs}};
  for (uint32_t k = 0; k < kMaxKernels; ++k) {
    Job job;
    if (!(r.form->needed(call) >> k & 1) || !r.form->bind(operands, k, job) || job.scalars[0] == 0) continue;
    if (!plan.functions[k]->module) {
      if (group.depth > 0) continue;  // a rehearsal
      if (Status s = compile(r.site->texts, *plan.functions[k]); !s.ok())
        return tell(std::move(s).at(r.id), error);
    }
    if (const weft_code code = dispatch(r, l->queue, plan.functions[k]->module, job, error); code != WEFT_OK)
      return code;
  }
  return WEFT_OK;
}

/// Everything that a call to `kernels` made, kept until the process ends as the contract asks.
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
  for (const auto forms :
       {elementwise_forms(), fold_forms(), conv_forms(), move_forms(), index_forms(), order_forms()}) {
    for (const Form& form : forms) {
      made().records.push_back(make_record(form, *made().sites.back()));
      list.push_back(&made().records.back()->kernel);
    }
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

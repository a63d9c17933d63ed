#include "conformance/seam/wrapped.h"

#include <array>
#include <cstring>
#include <utility>

#include "seam/builtin.h"
#include "seam/registry.h"
#include "seam/tables.h"

// A C table knows no object, so each wrapped backend takes one of a few static slots: slot N's functions ask
// instance N.
namespace weft::conformance {

namespace {

/// The good kernel's plan and call, kept as long as the host keeps the outer plan, since a queue may run
/// late.
struct InnerPlan {
  weft_call call{};
  weft_plan plan{};
};

const Wrapped::Record& record_of(const weft_kernel* k) {
  return *static_cast<const Wrapped::Record*>(k->self);
}

weft_code prepare(const weft_kernel* k, weft_device d, const weft_call* call, weft_plan* plan,
                  weft_error* e) {
  const auto& r = record_of(k);
  auto own = std::make_unique<InnerPlan>();
  own->call = *call;
  r.owner->prepare(own->call);
  own->plan = *plan;
  own->plan.kernel = r.inner, own->plan.call = &own->call;
  if (r.inner->prepare)
    if (const weft_code code = r.inner->prepare(r.inner, d, &own->call, &own->plan, e); code != WEFT_OK)
      return code;
  plan->determinism = own->plan.determinism, plan->workspace = own->plan.workspace;
  plan->precision = own->plan.precision, plan->packings = own->plan.packings;
  plan->data = own.release();
  r.owner->prepared(*plan);
  return WEFT_OK;
}

void release(weft_plan* plan) {
  const std::unique_ptr<InnerPlan> own(static_cast<InnerPlan*>(std::exchange(plan->data, nullptr)));
  record_of(plan->kernel).owner->released(own->call);
  if (own->plan.kernel->release && own->plan.data) own->plan.kernel->release(&own->plan);
}

weft_code launch(const weft_launch* l, weft_error* e) {
  weft_launch inner = *l;
  inner.plan = &static_cast<const InnerPlan*>(l->plan->data)->plan;
  return record_of(l->plan->kernel).owner->enter(&inner, e);
}

weft_code pack(const weft_plan* plan, uint32_t input, const weft_tensor* from, const weft_tensor* to,
               weft_queue q, weft_error* e) {
  const weft_plan& inner = static_cast<const InnerPlan*>(plan->data)->plan;
  return record_of(plan->kernel).owner->pack(&inner, input, from, to, q, e);
}

/// The steps of a sequence with the good kernels' plans.
class InnerSteps {
 public:
  explicit InnerSteps(const weft_sequence_desc& outer) : desc_(outer) {
    for (uint32_t i = 0; i < outer.n_steps; ++i) {
      weft_sequence_step& step = steps_.emplace_back(*outer.steps[i]);
      if (step.launch) {
        weft_launch& l = launches_.emplace_back(*step.launch);
        l.plan = &static_cast<const InnerPlan*>(l.plan->data)->plan;
        step.launch = &l;
      }
      pointers_.push_back(&step);
    }
    desc_.steps = pointers_.data();
  }
  InnerSteps(const InnerSteps&) = delete;
  const weft_sequence_desc* desc() const { return &desc_; }

 private:
  weft_sequence_desc desc_;
  std::deque<weft_launch> launches_;
  std::deque<weft_sequence_step> steps_;
  std::vector<const weft_sequence_step*> pointers_;
};

constexpr size_t kSlots = 256;
std::array<Wrapped*, kSlots> instances{};
size_t taken = 0;

}  // namespace

/// What the tables need of a wrapped backend, and nobody else.
class Slots {
 public:
  static weft_code open_device(Wrapped& w, uint32_t ordinal, weft_device* d, weft_capability* c,
                               weft_error* e);
  static weft_code kernels(Wrapped& w, weft_device d, const weft_kernel* const** list, uint32_t* n,
                           weft_error* e);
  /// Compiling is then the generated kernels' alone: the host would generate its own, unwrapped.
  static void hide_compiler(Wrapped& w, weft_backend& table);

 private:
  static const weft_kernel* wrap(Wrapped& w, const weft_kernel& inner, int32_t rank);
  static void add_generated(Wrapped& w, weft_device d, std::vector<const weft_kernel*>& list);
};

namespace {

weft_code probe(Wrapped& w, weft_probe* p, weft_error* e) {
  const weft_code code = w.inner().probe(p, e);
  if (code == WEFT_OK) p->n_devices = w.devices(p->n_devices);
  return code;
}

weft_code describe(Wrapped& w, uint32_t ordinal, weft_capability* c, weft_error* e) {
  const weft_code code = w.describe(ordinal, c, e);
  if (code == WEFT_OK) w.capability(*c);
  return code;
}

weft_code make_sequence(Wrapped& w, weft_device d, const weft_sequence_desc* desc, weft_sequence* s,
                        uint32_t* refused, weft_error* e) {
  return w.make_sequence(d, InnerSteps(*desc).desc(), s, refused, e);
}

/// `of<N>`: an entry of slot N's table, which asks instance N by this member or function. One small function
/// each, as there are thousands of them.
template <auto Asked>
struct Entry;
template <class R, class... A, R (Wrapped::*Asked)(A...)>
struct Entry<Asked> {
  template <size_t N>
  static R of(A... a) {
    return (instances[N]->*Asked)(a...);
  }
};
template <class R, class... A, R (*Asked)(Wrapped&, A...)>
struct Entry<Asked> {
  template <size_t N>
  static R of(A... a) {
    return Asked(*instances[N], a...);
  }
};

template <size_t N>
constexpr weft_backend entries = {
    .probe = Entry<probe>::of<N>,
    .open_device = Entry<&Slots::open_device>::of<N>,
    .close_device = Entry<&Wrapped::close_device>::of<N>,
    .allocate = Entry<&Wrapped::allocate>::of<N>,
    .free = Entry<&Wrapped::free>::of<N>,
    .open_queue = Entry<&Wrapped::open_queue>::of<N>,
    .close_queue = Entry<&Wrapped::close_queue>::of<N>,
    .copy = Entry<&Wrapped::copy>::of<N>,
    .synchronize = Entry<&Wrapped::synchronize>::of<N>,
    .kernels = Entry<&Slots::kernels>::of<N>,
    .dispatch = Entry<&Wrapped::dispatch>::of<N>,
    .mark = Entry<&Wrapped::mark>::of<N>,
    .wait = Entry<&Wrapped::wait>::of<N>,
    .await = Entry<&Wrapped::await>::of<N>,
    .allocate_pinned = Entry<&Wrapped::allocate_pinned>::of<N>,
    .import_memory = Entry<&Wrapped::import_memory>::of<N>,
    .make_sequence = Entry<make_sequence>::of<N>,
    .run_sequence = Entry<&Wrapped::run_sequence>::of<N>,
    .free_sequence = Entry<&Wrapped::free_sequence>::of<N>,
    .describe = Entry<describe>::of<N>,
    .stamp = Entry<&Wrapped::stamp>::of<N>,
    .read_stamps = Entry<&Wrapped::read_stamps>::of<N>,
};

template <size_t... N>
const weft_backend& entries_of(size_t slot, std::index_sequence<N...>) {
  constexpr const weft_backend* all[] = {&entries<N>...};
  return *all[slot];
}

/// The good backend's table; what it has of `mine` asks `w`.
weft_backend table_of(Wrapped& w, const weft_backend& mine) {
  weft_backend t = w.inner();
  t.size = sizeof t;
  t.name = w.name().c_str();
  t.rank = 0;  // so it does not become the default
  const auto take = [&](auto weft_backend::* entry) {
    if (t.*entry) t.*entry = mine.*entry;
  };
  using B = weft_backend;
  take(&B::probe), take(&B::open_device), take(&B::describe), take(&B::close_device), take(&B::open_queue);
  take(&B::close_queue), take(&B::allocate), take(&B::free), take(&B::copy), take(&B::synchronize);
  take(&B::kernels), take(&B::dispatch), take(&B::mark), take(&B::wait), take(&B::await);
  take(&B::make_sequence), take(&B::run_sequence), take(&B::free_sequence);
  take(&B::stamp), take(&B::read_stamps), take(&B::allocate_pinned), take(&B::import_memory);
  if (!w.records()) t.make_sequence = nullptr, t.run_sequence = nullptr, t.free_sequence = nullptr;
  Slots::hide_compiler(w, t);
  w.table(t);
  return t;
}

}  // namespace

weft_code Slots::open_device(Wrapped& w, uint32_t ordinal, weft_device* d, weft_capability* c,
                             weft_error* e) {
  const weft_code code = w.open_device(ordinal, d, c, e);
  if (code != WEFT_OK) return code;
  w.good_ = *c;
  w.capability(*c);
  return code;
}

void Slots::hide_compiler(Wrapped& w, weft_backend& table) {
  if (!w.takes_generated_) return;
  w.generated_ = table;
  table.compile = nullptr, table.release_module = nullptr, table.dispatch = nullptr;
}

const weft_kernel* Slots::wrap(Wrapped& w, const weft_kernel& inner, int32_t rank) {
  auto& r = w.records_.emplace_back();
  r.outer = inner, r.inner = &inner, r.owner = &w;
  r.id = w.name() + std::strchr(inner.id, '.');
  r.outer.id = r.id.c_str(), r.outer.self = &r, r.outer.rank = rank;
  r.outer.accepts = [](const weft_kernel* k, weft_device device, const weft_call* c, weft_error* error) {
    return record_of(k).owner->accepts(*record_of(k).inner, device, c, error);
  };
  r.outer.prepare = prepare, r.outer.release = release, r.outer.launch = launch;
  if (r.outer.pack) r.outer.pack = pack;
  w.record(r.outer);
  return &r.outer;
}

// Behind all of the good backend's own, in their order.
void Slots::add_generated(Wrapped& w, weft_device d, std::vector<const weft_kernel*>& list) {
  constexpr int32_t kBehind = 1 << 20;
  for (const auto& provider : seam::builtin_providers())
    for (const weft_kernel* k : provider.kernels(w.generated_, d, w.good_, seam::host()))
      if (w.offers(*k)) list.push_back(wrap(w, *k, k->rank - kBehind));
}

weft_code Slots::kernels(Wrapped& w, weft_device d, const weft_kernel* const** list, uint32_t* n,
                         weft_error* e) {
  const std::lock_guard lock(w.mutex_);
  const weft_kernel* const* inner = nullptr;
  uint32_t count = 0;
  if (const weft_code code = w.inner().kernels(d, &inner, &count, e); code != WEFT_OK) return code;
  if (w.list_.empty())
    for (uint32_t i = 0; i < count; ++i)
      if (w.offers(*inner[i])) w.list_.push_back(wrap(w, *inner[i], seam::rank_of(*inner[i])));
  const auto* all = &w.list_;
  if (w.takes_generated_) {
    all = &w.lists_.emplace_back(w.list_);
    add_generated(w, d, w.lists_.back());
  }
  *list = all->data(), *n = static_cast<uint32_t>(all->size());
  return WEFT_OK;
}

void adopt(Wrapped& wrapped) {
  if (taken == kSlots) throw Error(invalid("{} backends are wrapped already", kSlots));
  instances[taken] = &wrapped;
  const weft_backend table = table_of(wrapped, entries_of(taken++, std::make_index_sequence<kSlots>()));
  raise_if(seam::registry().adopt(table, "wrapped"));
}

}  // namespace weft::conformance

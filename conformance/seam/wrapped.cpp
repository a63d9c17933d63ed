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

template <size_t N>
void add_points(weft_backend& t) {
  t.mark = [](weft_queue q, uint64_t* point, weft_error* e) { return instances[N]->mark(q, point, e); };
  t.wait = [](weft_queue q, weft_queue other, uint64_t point, weft_error* e) {
    return instances[N]->wait(q, other, point, e);
  };
  t.await = [](weft_queue q, uint64_t point, uint64_t ns, uint64_t* reached, weft_error* e) {
    return instances[N]->await(q, point, ns, reached, e);
  };
}

template <size_t N>
void add_sequences(weft_backend& t) {
  if (!instances[N]->records()) {
    t.make_sequence = nullptr, t.run_sequence = nullptr, t.free_sequence = nullptr;
    return;
  }
  t.make_sequence = [](weft_device d, const weft_sequence_desc* desc, weft_sequence* s, uint32_t* refused,
                       weft_error* e) {
    return instances[N]->make_sequence(d, InnerSteps(*desc).desc(), s, refused, e);
  };
  t.run_sequence = [](weft_sequence s, weft_queue q, void* const* handles, uint32_t n, weft_error* e) {
    return instances[N]->run_sequence(s, q, handles, n, e);
  };
  t.free_sequence = [](weft_sequence s) { instances[N]->free_sequence(s); };
}

template <size_t N>
weft_backend slot_table() {
  weft_backend t = instances[N]->inner();
  t.size = sizeof t;
  t.name = instances[N]->name().c_str();
  t.rank = 0;  // so it does not become the default
  t.probe = [](weft_probe* p, weft_error* e) {
    const weft_code code = instances[N]->inner().probe(p, e);
    if (code == WEFT_OK) p->n_devices = instances[N]->devices(p->n_devices);
    return code;
  };
  t.open_device = [](uint32_t ordinal, weft_device* d, weft_capability* c, weft_error* e) {
    return Slots::open_device(*instances[N], ordinal, d, c, e);
  };
  if (t.describe)
    t.describe = [](uint32_t ordinal, weft_capability* c, weft_error* e) {
      const weft_code code = instances[N]->describe(ordinal, c, e);
      if (code == WEFT_OK) instances[N]->capability(*c);
      return code;
    };
  t.close_device = [](weft_device d) { instances[N]->close_device(d); };
  t.open_queue = [](weft_device d, weft_queue* q, weft_error* e) {
    return instances[N]->open_queue(d, q, e);
  };
  t.close_queue = [](weft_queue q) { instances[N]->close_queue(q); };
  t.allocate = [](weft_device d, uint64_t n, void** h, weft_error* e) {
    return instances[N]->allocate(d, n, h, e);
  };
  t.free = [](weft_device d, void* h) { instances[N]->free(d, h); };
  t.copy = [](weft_queue q, const weft_copy* c, weft_error* e) { return instances[N]->copy(q, c, e); };
  t.synchronize = [](weft_queue q, weft_error* e) { return instances[N]->synchronize(q, e); };
  t.kernels = [](weft_device d, const weft_kernel* const** list, uint32_t* n, weft_error* e) {
    return Slots::kernels(*instances[N], d, list, n, e);
  };
  if (t.dispatch)
    t.dispatch = [](weft_queue q, const weft_dispatch* d, weft_error* e) {
      return instances[N]->dispatch(q, d, e);
    };
  if (t.mark) add_points<N>(t);
  if (t.make_sequence) add_sequences<N>(t);
  if (t.allocate_pinned)
    t.allocate_pinned = [](weft_device d, uint64_t n, void** h, void** at, weft_error* e) {
      return instances[N]->allocate_pinned(d, n, h, at, e);
    };
  if (t.import_memory)
    t.import_memory = [](weft_device d, const DLTensor* from, uint64_t n, void** h, weft_error* e) {
      return instances[N]->import_memory(d, from, n, h, e);
    };
  Slots::hide_compiler(*instances[N], t);
  instances[N]->table(t);
  return t;
}

template <size_t... N>
weft_backend table_of(size_t slot, std::index_sequence<N...>) {
  constexpr weft_backend (*tables[])() = {slot_table<N>...};
  return tables[slot]();
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
  const weft_backend table = table_of(taken++, std::make_index_sequence<kSlots>());
  raise_if(seam::registry().adopt(table, "wrapped"));
}

}  // namespace weft::conformance

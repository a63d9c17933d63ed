#include "served.h"

#include <map>

namespace weft::cudnn {

using namespace backend;

Outcome stream_of(const Launch&, void** to);  // cudnn.cpp

namespace {

/// cuDNN's state of one device, and the plans that were made for it. Its stream is set for each launch.
struct Device {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
  struct Answer {
    std::shared_ptr<const Plan> plan;
    Support support;
  };
  std::map<std::string, Answer> plans;
};

constexpr size_t kMostPlans = 1024;

struct Devices {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Device>> all;
};
Devices& devices() {
  static Devices& d = *new Devices;
  return d;
}
int current() {
  int ordinal = 0;
  cudaGetDevice(&ordinal);
  return ordinal;
}
std::shared_ptr<Device> device() {
  const std::lock_guard lock(devices().mutex);
  const auto at = devices().all.find(current());
  return at == devices().all.end() ? nullptr : at->second;
}

/// What the plan of a call depends on, as text.
std::string key_of(const OpCall& c) {
  std::string key = format("{} {} {}", c.op(), c.precision(), c.determinism());
  for (int64_t i = 0; i < c.n_inputs() + c.n_outputs(); ++i) {
    const TypeView t = i < c.n_inputs() ? c.input(i) : c.output(i - c.n_inputs());
    key += t.has() ? format(" {}{}", t.dtype(), t.max()) : " -";
  }
  for (uint32_t i = 0; i < c.raw()->n_attrs; ++i) {
    const weft_attr& a = *c.raw()->attrs[i];
    const AttrView view(&a);
    key +=
        format(" {}={}", a.name, a.kind == WEFT_ATTR_FLOAT ? std::to_string(a.f) : format("{}", view.ints()));
  }
  return key;
}

Support known_sizes(const OpCall& c) {
  for (int64_t i = 0; i < c.n_inputs() + c.n_outputs(); ++i) {
    const bool in = i < c.n_inputs();
    const TypeView t = in ? c.input(i) : c.output(i - c.n_inputs());
    for (int64_t d = 0; t.has() && d < t.rank(); ++d) {
      const Dim size = t.shape()[d];
      const char* what = in ? "input" : "output";
      if (!size.known()) return Support::no("an {} has sizes from {} to {}", what, size.min(), size.max());
      if (size.max() == 0) return Support::no("an {} is empty", what);
    }
  }
  return Support::yes();
}

Support make(const OpCall& c, Describe describe, cudnnHandle_t handle, std::shared_ptr<const Plan>& plan) {
  try {
    Graph graph;
    graph.rules.repeatable = c.determinism() >= WEFT_DETERMINISM_RUN;
    if (auto s = describe(c, graph); !s) return s;
    plan = std::make_shared<const Plan>(std::move(graph), Target{handle, nullptr});
    return Support::yes();
  } catch (const Failure& failure) {
    return Support::no("{}", failure.outcome.text);
  }
}

}  // namespace

Outcome remember_device() {
  const std::lock_guard lock(devices().mutex);
  auto& kept = devices().all[current()];
  if (kept) return Outcome::ok();
  auto d = std::make_shared<Device>();
  try {
    WEFT_CUDNN_TRY(cudnnCreate(&d->handle));
  } catch (const Failure& failure) {
    return failure.outcome;
  }
  kept = std::move(d);
  return Outcome::ok();
}

void forget_device() {
  const std::lock_guard lock(devices().mutex);
  const auto at = devices().all.find(current());
  if (at == devices().all.end()) return;
  library().cudnnDestroy(at->second->handle);
  devices().all.erase(at);
}

Support plan_of(const OpCall& c, Describe describe, std::shared_ptr<const Plan>& plan) {
  if (auto s = known_sizes(c); !s) return s;
  const auto d = device();
  if (!d) return Support::no("no device is open");
  const std::string key = key_of(c);
  const std::lock_guard lock(d->mutex);
  auto at = d->plans.find(key);
  if (at == d->plans.end()) {
    if (d->plans.size() >= kMostPlans) d->plans.clear();
    Device::Answer answer;
    answer.support = make(c, describe, d->handle, answer.plan);
    at = d->plans.emplace(key, std::move(answer)).first;
  }
  plan = at->second.plan;
  return at->second.support;
}

namespace {

/// What a prepared kernel holds.
struct Prepared {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Plan> plan;
};

/// f32 by tensor cores is TF32. Attention of halves rounds its weights, and says so by asking for bf16.
uint32_t precision_of(const OpCall& c, const Plan& plan) {
  if (c.op().starts_with("attention")) return WEFT_PRECISION_BF16;
  return c.output(0).dtype() == DType::f32 && plan.uses_tensor_cores() ? WEFT_PRECISION_TF32
                                                                       : WEFT_PRECISION_STRICT;
}

}  // namespace

Outcome keep(const OpCall& c, Describe describe, weft_plan& plan) {
  auto p = std::make_unique<Prepared>();
  if (const auto s = plan_of(c, describe, p->plan); !s)
    return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  p->device = device();
  plan.workspace = p->plan->workspace();
  plan.precision = precision_of(c, *p->plan);
  plan.determinism = c.determinism() >= WEFT_DETERMINISM_RUN ? WEFT_DETERMINISM_RUN : WEFT_DETERMINISM_ANY;
  plan.data = p.release();
  return Outcome::ok();
}

void release(weft_plan* plan) {
  delete static_cast<Prepared*>(plan->data);
  plan->data = nullptr;
}

Outcome launch(const Launch& l) {
  void* stream = nullptr;
  if (auto got = stream_of(l, &stream); !got.good()) return got;
  const auto& p = *static_cast<const Prepared*>(l.raw()->plan->data);
  try {
    const std::lock_guard lock(p.device->mutex);
    WEFT_CUDNN_TRY(cudnnSetStream(p.device->handle, static_cast<cudaStream_t>(stream)));
    p.plan->run(p.device->handle, static_cast<cudaStream_t>(stream), l);
    return Outcome::ok();
  } catch (const Failure& failure) {
    return failure.outcome;
  }
}

}  // namespace weft::cudnn

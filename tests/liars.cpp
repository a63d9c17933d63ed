#include "liars.h"

#include <cstring>
#include <map>
#include <set>

#include "weft/backend/views.hpp"
#include "wrapped_backend.h"

// Each class is one fault. They stay as close to a plausible mistake of a kernel author as possible.
namespace weft::testing {
namespace {

using backend::TensorView;

/// The bytes of an output; only on a device of host memory.
std::span<char> bytes_of(const weft_tensor* t) {
  return {TensorView(t).data<char>(), static_cast<size_t>(TensorView(t).bytes())};
}

// "The result is still there from the last time": a cache keyed by the kernel, not by the data.
class StaleOutput : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    auto& kept = first_[l->plan];
    const auto out = bytes_of(l->outputs[0]);
    if (kept.size() == out.size() && !out.empty()) {
      std::memcpy(out.data(), kept.data(), kept.size());
      return WEFT_OK;
    }
    const weft_code code = Wrapped::launch(l, e);
    kept.assign(out.begin(), out.end());
    return code;
  }

 private:
  std::map<const weft_plan*, std::vector<char>> first_;
};

// A vector loop without its tail.
class PartialOutput : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const auto out = bytes_of(l->outputs[0]);
    const size_t tail =
        TensorView(l->outputs[0]).size() > 1 ? byte_size(TensorView(l->outputs[0]).dtype()) : 0;
    const std::vector<char> before(out.end() - static_cast<std::ptrdiff_t>(tail), out.end());
    const weft_code code = Wrapped::launch(l, e);
    std::memcpy(out.data() + out.size() - tail, before.data(), tail);
    return code;
  }
};

class ForgetsAccumulate : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void prepare(weft_call& call) override { call.accumulate = 0; }
};

// "It usually is zero": adds where it should, but takes what is no number for zero.
class CleansAccumulator : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const TensorView out(l->outputs[0]);
    if (l->plan->call->accumulate && out.dtype() == DType::f32)
      for (int64_t i = 0; i < out.size(); ++i)
        if (auto& v = out.data<float>()[i]; v != v) v = 0;
    return Wrapped::launch(l, e);
  }
};

class ReadsHandle : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const volatile char* data = l->plan->call->n_inputs ? static_cast<char*>(l->inputs[0]->dl.data) : nullptr;
    if (data && *data == 0x7f) return WEFT_INTERNAL;  // any use of the value
    return Wrapped::launch(l, e);
  }
};

// Lists the attribute among those that it reads, and then takes the default.
class IgnoresAttribute : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void prepare(weft_call& call) override {
    auto& kept = lists_.emplace_back();
    for (uint32_t i = 0; i < call.n_attrs; ++i)
      if (std::strcmp(call.attrs[i]->name, "transpose_b") != 0) kept.push_back(call.attrs[i]);
    call.attrs = kept.data(), call.n_attrs = static_cast<uint32_t>(kept.size());
  }

 private:
  std::deque<std::vector<const weft_attr*>> lists_;
};

// A queue whose synchronize answers before the work has passed. Asked again, it waits.
class PassesEarly : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    fresh_.insert(l->queue);
    return Wrapped::launch(l, e);
  }
  weft_code synchronize(weft_queue q, weft_error* e) override {
    return fresh_.erase(q) ? weft_code{WEFT_OK} : Wrapped::synchronize(q, e);
  }

 private:
  std::set<weft_queue> fresh_;
};

// An ordered queue that says it runs before it returns: the host then frees what is still needed.
class CallsItselfInline : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void capability(weft_capability& c) override { c.queue_kind = WEFT_QUEUE_INLINE; }
};

class SwallowsErrors : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code synchronize(weft_queue q, weft_error* e) override {
    (void)Wrapped::synchronize(q, e);
    return WEFT_OK;
  }
};

// A kernel with its first shape in a static. It never writes beyond what it is given.
class KeepsShape : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (std::string_view(l->plan->call->op) != "add") return Wrapped::launch(l, e);
    const int64_t n = TensorView(l->outputs[0]).size();
    if (kept_ == 0 || kept_ > n) kept_ = n;
    std::vector<weft_tensor> copies;
    copies.reserve(3);
    const auto cut = [&](const weft_tensor* t) {
      copies.push_back(*t);
      copies.back().dl.ndim = 1, copies.back().dl.shape = &kept_;
      return &copies.back();
    };
    const weft_tensor* in[] = {cut(l->inputs[0]), cut(l->inputs[1])};
    const weft_tensor* out[] = {cut(l->outputs[0])};
    weft_launch first = *l;
    first.inputs = in, first.outputs = out;
    return Wrapped::launch(&first, e);
  }

 private:
  int64_t kept_ = 0;
};

// Uses an operand as scratch space.
class SpoilsInput : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = Wrapped::launch(l, e);
    if (l->plan->call->n_inputs && !bytes_of(l->inputs[0]).empty()) bytes_of(l->inputs[0])[0] ^= 1;
    return code;
  }
};

template <class L>
Wrapped* make(const Liar& liar) {
  return new L(liar.name, inner_table(liar.on));  // a backend lives until the process ends
}

constexpr struct Entry {
  Liar liar;
  Wrapped* (*make)(const Liar&);
} kEntries[] = {
    {{"liar_stale_output", "reference", "gives the result of the first launch again", "follows_its_data"},
     make<StaleOutput>},
    {{"liar_partial_output", "reference", "leaves the last element unwritten", "writes_every_element"},
     make<PartialOutput>},
    {{"liar_forgets_accumulate", "reference", "overwrites where `+=` is asked", "adds_where_asked"},
     make<ForgetsAccumulate>},
    {{"liar_cleans_accumulator", "reference", "takes a poisoned sum for zero", "adds_where_asked"},
     make<CleansAccumulator>},
    {{"liar_reads_handle", "far", "reads an opaque handle on the host", "reads_no_handle"},
     make<ReadsHandle>},
    {{"liar_ignores_attribute", "reference", "lists transpose_b as read, and ignores it",
      "honours_attributes"},
     make<IgnoresAttribute>},
    {{"liar_passes_early", "far", "synchronize answers before the queue has passed", "waits_when_asked"},
     make<PassesEarly>},
    {{"liar_calls_itself_inline", "far", "an ordered queue that says it is inline",
      "keeps_buffers_until_passed"},
     make<CallsItselfInline>},
    {{"liar_swallows_errors", "far", "a failed launch is never reported", "reports_its_errors"},
     make<SwallowsErrors>},
    {{"liar_keeps_shape", "reference", "runs a second shape as the first", "serves_the_shape_asked"},
     make<KeepsShape>},
    {{"liar_spoils_input", "reference", "writes into an operand", "leaves_inputs_alone"}, make<SpoilsInput>},
};

}  // namespace

std::span<const Liar> liars() {
  static const auto list = [] {
    std::vector<Liar> all;
    for (const auto& e : kEntries) all.push_back(e.liar);
    return all;
  }();
  return list;
}

void wake(const Liar& liar) {
  static std::set<std::string> awake;
  for (const auto& e : kEntries)
    if (std::string_view(e.liar.name) == liar.name && awake.insert(liar.name).second) adopt(*e.make(e.liar));
}

}  // namespace weft::testing

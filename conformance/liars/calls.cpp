#include <cstring>
#include <deque>

#include "base/thread_pool.h"
#include "conformance/liars/liar.h"
#include "weft/backend/base.hpp"

// Misread calls: attributes, accumulation, shapes, offsets, answers of accepts.
namespace weft::conformance {
namespace {

using backend::TensorView;

class ForgetsAccumulate : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void prepare(weft_call& call) override { call.accumulate = 0; }
};

// Adds as asked, but treats NaN in the target as zero.
class CleansAccumulator : public Mirrored {
 public:
  using Mirrored::Mirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const TensorView out(l->outputs[0]);
    if (l->plan->call->accumulate && out.dtype() == DType::f32)
      for (int64_t i = 0; i < out.size(); ++i)
        if (auto& v = out.data<float>()[i]; v != v) v = 0;
    return Mirrored::launch(l, e);
  }
};

// The pointer to the accumulator never advances.
class AddsToTheFirst : public Mirrored {
 public:
  using Mirrored::Mirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const auto bytes = bytes_of(l->outputs[0]);
    if (l->plan->call->accumulate)
      for (size_t one = byte_size(out_of(l).dtype()), at = one; at < bytes.size(); at += one)
        std::memcpy(&bytes[at], bytes.data(), one);
    return Mirrored::launch(l, e);
  }
};

// Lists the attribute as read, then uses the default.
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

// An attribute in a static variable: every call uses the first call's axis.
class KeepsAttributes : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void prepare(weft_call& call) override {
    if (std::strcmp(call.op, "sum") != 0) return;
    if (!attrs_) attrs_ = call.attrs, n_ = call.n_attrs;
    if (call.n_attrs == n_) call.attrs = attrs_;
  }

 private:
  const weft_attr* const* attrs_ = nullptr;
  uint32_t n_ = 0;
};

// A kernel with its first size in a static variable. It never writes out of bounds.
class KeepsShape : public Mirrored {
 public:
  using Mirrored::Mirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (op_of(l) != "add") return Mirrored::launch(l, e);
    const auto out = bytes_of(l->outputs[0]);
    const std::vector<char> before(out.begin(), out.end());
    const weft_code code = Mirrored::launch(l, e);
    const auto n = static_cast<size_t>(out_of(l).size()), one = byte_size(out_of(l).dtype());
    if (kept_ == 0 || kept_ > n) kept_ = n;
    const auto from = static_cast<std::ptrdiff_t>(kept_ * one);
    std::copy(before.begin() + from, before.end(), out.begin() + from);
    return code;
  }

 private:
  size_t kept_ = 0;
};

// Reads an operand from the beginning of its memory, ignoring the offset.
class IgnoresOffset : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (l->plan->call->n_inputs == 0 || !l->inputs[0]) return Wrapped::launch(l, e);
    weft_tensor first = *l->inputs[0];
    first.dl.byte_offset = 0;
    std::vector<const weft_tensor*> in(l->inputs, l->inputs + l->plan->call->n_inputs);
    in[0] = &first;
    weft_launch other = *l;
    other.inputs = in.data();
    return Wrapped::launch(&other, e);
  }
};

// Accepts every layout of an addition and reads all as row-major.
class TakesStridesForRows : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) override {
    const weft_code code = Wrapped::accepts(k, d, c, e);
    return code == WEFT_UNSUPPORTED && std::strcmp(c->op, "add") == 0 ? weft_code{WEFT_OK} : code;
  }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    std::deque<weft_tensor> plain;
    std::vector<const weft_tensor*> in;
    for (uint32_t i = 0; i < l->plan->call->n_inputs; ++i) {
      if (l->inputs[i]) plain.push_back(*l->inputs[i]), plain.back().dl.strides = nullptr;
      in.push_back(l->inputs[i] ? &plain.back() : nullptr);
    }
    weft_launch other = *l;
    other.inputs = in.data();
    return Wrapped::launch(&other, e);
  }
};

// Accepts calls that it has no code for.
class ClaimsAndFails : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (op_of(l) == "erf") return backend::fill(e, WEFT_INTERNAL, "not written yet");
    return Wrapped::launch(l, e);
  }
};

// Compiles every text to a function that does nothing.
class CompilesNothing : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code dispatch(weft_queue, const weft_dispatch*, weft_error*) override { return WEFT_OK; }
};

// Refuses calls that it could run, so another kernel runs them.
class RefusesWhatItCould : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) override {
    if (std::strcmp(c->op, "tanh") == 0) return backend::fill(e, WEFT_UNSUPPORTED, "rather not");
    return Wrapped::accepts(k, d, c, e);
  }
};

// Refuses without a reason.
class RefusesWithoutAReason : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) override {
    const weft_code code = Wrapped::accepts(k, d, c, e);
    if (code == WEFT_UNSUPPORTED && e) e->text[0] = 0;
    return code;
  }
};

// Kernels are in the order of the files, not of ranks.
class HasNoOrder : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void record(weft_kernel& kernel) override { kernel.rank = 0; }
};

// One record runs another's kernel under its own name.
class LiesAboutItsName : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void record(weft_kernel& k) override {
    if (std::strcmp(k.op, "exp") == 0) k.id = "somebody.log.fast";
  }
};

// Claims a determinism level that it does not provide.
class ClaimsEveryLevel : public Mirrored {
 public:
  using Mirrored::Mirrored;
  void record(weft_kernel& k) override { k.determinism = WEFT_DETERMINISM_DEVICES; }
  void prepared(weft_plan& plan) override { plan.determinism = WEFT_DETERMINISM_DEVICES; }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = Mirrored::launch(l, e);
    if (code == WEFT_OK && out_of(l).dtype() == DType::f32 && out_of(l).rank() > 1 && out_of(l).dim(0) % 2)
      if (const auto bytes = bytes_of(l->outputs[0]); !bytes.empty()) bytes[0] ^= 1;
    return code;
  }
};

// Sums in as many parts as there are threads, but claims independence of threads.
class DependsOnThreads : public SpoilsOutput {
 public:
  using SpoilsOutput::SpoilsOutput;

 private:
  void spoil(const weft_launch* l, uint32_t k, std::span<char> bytes) override {
    if (out_of(l, k).dtype() == DType::f32 && thread_count() > 3) bytes[0] ^= 1;
  }
};

constexpr Liar kCallsLiars[] = {
    {"liar_forgets_accumulate", "reference", "overwrites where += is asked", "adds_where_asked/add",
     make_liar<ForgetsAccumulate>, nullptr, "adds_where_asked/matmul"},
    {"liar_cleans_accumulator", "reference", "takes a poisoned sum for zero", "adds_where_asked/add",
     make_liar<CleansAccumulator>, nullptr, "adds_where_asked/matmul"},
    {"liar_adds_to_the_first", "reference", "reads one element of a sum for all of them",
     "adds_where_asked/add", make_liar<AddsToTheFirst>, nullptr, "adds_where_asked/matmul"},
    {"liar_ignores_attribute", "reference", "lists transpose_b as read, and ignores it", "honours_attributes",
     make_liar<IgnoresAttribute>},
    {"liar_keeps_attributes", "reference", "the first sum's axes are every sum's", "ops/sum",
     make_liar<KeepsAttributes>},
    {"liar_keeps_shape", "reference", "runs a second shape as the first", "serves_the_shape_asked",
     make_liar<KeepsShape>},
    {"liar_ignores_offset", "reference", "takes an operand from the beginning of its memory",
     "honours_places", make_liar<IgnoresOffset>},
    {"liar_takes_strides_for_rows", "reference", "accepts strided operands and reads them as rows",
     "honours_places", make_liar<TakesStridesForRows>},
    {"liar_claims_and_fails", "reference", "accepts erf and can't run it", "ops/erf",
     make_liar<ClaimsAndFails>},
    {"liar_compiles_nothing", "opencl", "compiled functions do nothing", "ops/exp",
     make_liar<CompilesNothing>, lacks_a_compiler},
    {"liar_refuses_what_it_could", "reference", "refuses tanh, which it has", "ops/tanh",
     make_liar<RefusesWhatItCould>},
    {"liar_refuses_without_a_reason", "reference", "says no without a word", "says_why",
     make_liar<RefusesWithoutAReason>},
    {"liar_lies_about_its_name", "reference", "a kernel under another's name", "names_what_ran",
     make_liar<LiesAboutItsName>},
    {"liar_has_no_order", "native", "all kernels have one rank", "ranks_its_kernels", make_liar<HasNoOrder>},
    {"liar_claims_every_level", "reference", "a determinism that it does not give", "rows_stand_alone",
     make_liar<ClaimsEveryLevel>},
    {"liar_depends_on_threads", "reference", "other bits on more than three threads", "any_thread_count",
     make_liar<DependsOnThreads>},
};

}  // namespace

Liars calls_liars() { return kCallsLiars; }

}  // namespace weft::conformance

#pragma once
#include <span>

#include "conformance/numbers.h"
#include "conformance/seam/late.h"
#include "conformance/seam/mirrored.h"
#include "weft/backend/views.hpp"

// Faulty backends: good ones with one planted fault each, a plausible mistake. Each file of this folder
// defines `Liars <file>_liars()`; the build lists the folder.
namespace weft::seam {
class Device;
}

namespace weft::conformance {

struct Liar {
  const char* name;       ///< its own, as a backend
  const char* on;         ///< the good backend that it wraps where no other is asked for
  const char* fault;      ///< what it does wrong, in words
  const char* caught_by;  ///< the check that must find it, or "check/case"
  Wrapped* (*make)(const char* name, const weft_backend& good);
  /// What this good device lacks for the fault to show, in words; nothing, or no function: it has all.
  const char* (*lacks)(seam::Device& good) = nullptr;
  /// Where `caught_by` can't see it, this check must.
  const char* or_by = nullptr;
};
using Liars = std::span<const Liar>;

/// Those of all files, in order of file.
std::vector<Liar> all_liars();
/// Registers it as a backend at the first call. Raises if the good backend is missing.
const Wrapped& wake(const Liar& liar, const std::string& good);
inline const Wrapped& wake(const Liar& liar) { return wake(liar, liar.on); }

/// Seeds the random choices of liars, together with their names; call before the first liar is made.
void seed_liars(uint64_t seed);
Random drawn_for(const std::string& liar);

template <class L>
Wrapped* make_liar(const char* name, const weft_backend& good) {
  return new L(name, good);  // a backend lives until the process ends
}

// ---- what faults need of a good device: for Liar::lacks

const char* lacks_host_memory(seam::Device& good);
const char* lacks_an_inline_queue(seam::Device& good);
const char* lacks_an_ordered_queue(seam::Device& good);
const char* lacks_a_compiler(seam::Device& good);
const char* lacks_imports(seam::Device& good);
const char* lacks_points(seam::Device& good);
const char* lacks_pinned_memory(seam::Device& good);
/// Errors that only the data show, such as an index out of range.
const char* lacks_errors_of_kernels(seam::Device& good);
/// Buffers of more than 4 GiB.
const char* lacks_large_buffers(seam::Device& good);
/// A kernel of this op, with its own name.
const char* lacks_kernel_of(seam::Device& good, const char* op);

/// The bytes of a tensor; only on a device of host memory, and in the launches of a Mirrored.
inline std::span<char> bytes_of(const weft_tensor* t) {
  return {backend::TensorView(t).data<char>(), static_cast<size_t>(backend::TensorView(t).bytes())};
}
inline backend::TensorView out_of(const weft_launch* l, uint32_t k = 0) {
  return backend::TensorView(l->outputs[k]);
}
inline std::string_view op_of(const weft_launch* l) { return l->plan->call->op; }

/// A number from `least` to `most`.
inline uint64_t between(Random& random, uint64_t least, uint64_t most) {
  return least + random.bits() % (most - least + 1);
}

/// A liar with random parameters, which differ from run to run.
template <class Base>
class DrawnOn : public Base {
 public:
  using Base::Base;

 protected:
  Random random_ = drawn_for(this->name());
};
using Drawn = DrawnOn<Wrapped>;
using DrawnLate = DrawnOn<Late>;          ///< about waiting
using DrawnMirrored = DrawnOn<Mirrored>;  ///< about bytes

/// Computes like the good backend, then corrupts each output that is not empty.
class SpoilsOutput : public Mirrored {
 public:
  using Mirrored::Mirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = Mirrored::launch(l, e);
    if (code == WEFT_OK)
      for (uint32_t k = 0; k < l->plan->call->n_outputs; ++k)
        if (const auto bytes = bytes_of(l->outputs[k]); !bytes.empty()) spoil(l, k, bytes);
    return code;
  }

 private:
  virtual void spoil(const weft_launch* l, uint32_t k, std::span<char> bytes) = 0;
};
template <void (*how)(const weft_launch*, uint32_t, std::span<char>)>
class Spoils : public SpoilsOutput {
 public:
  using SpoilsOutput::SpoilsOutput;

 private:
  void spoil(const weft_launch* l, uint32_t k, std::span<char> bytes) override { how(l, k, bytes); }
};

}  // namespace weft::conformance

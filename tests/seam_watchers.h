#pragma once
#include <condition_variable>
#include <map>

#include "conformance/seam/wrapped.h"

// Honest backends that watch the host: its requests, launches and copies, and its reaction to refusals.
namespace weft::testing {

using conformance::Wrapped;

/// Counts what passes. Bytes are those between the device and the host.
class Watching : public Wrapped {
 public:
  using Wrapped::Wrapped;
  uint64_t asked = 0, bytes_in = 0, bytes_out = 0;
  std::map<std::string, uint64_t> launches;  // by op

  void reset() { asked = bytes_in = bytes_out = 0, launches.clear(); }
  weft_code accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) override {
    ++asked;
    return Wrapped::accepts(k, d, c, e);
  }
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    if (!c->source) bytes_in += c->bytes;
    if (!c->target) bytes_out += c->bytes;
    return Wrapped::copy(q, c, e);
  }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    ++launches[l->plan->call->op];
    return Wrapped::launch(l, e);
  }
};

/// Has no exp.
class Picky : public Watching {
 public:
  using Watching::Watching;
  weft_code accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) override;
};

/// Kernels from before the attributes of matmul were invented.
class Forgetful : public Watching {
 public:
  using Watching::Watching;
  void record(weft_kernel& k) override {
    if (std::string(k.op) == "matmul") k.n_reads = 0;
  }
};

/// A number of allocations succeed; then memory is out.
class Starving : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void allow(uint64_t n) { left_ = n; }
  uint64_t left() const { return left_; }
  /// While on, what is freed may be allocated again.
  void returns(bool on) { returns_ = on; }
  void free(weft_device d, void* handle) override {
    if (returns_) ++left_;
    Wrapped::free(d, handle);
  }
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override;

 private:
  uint64_t left_ = UINT64_MAX;
  bool returns_ = false;
};

/// While closed, synchronize blocks at the gate.
class Gate : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void close() { set(true); }
  void open() { set(false); }
  void wait_for_a_visitor();
  weft_code synchronize(weft_queue q, weft_error* e) override;

 private:
  void set(bool closed);
  std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  int visitors_ = 0;
};

/// One of each, registered at first use: watch_picky (on far), watch_forgetful, watch_counting (on far),
/// watch_starving, watch_gate.
Picky& picky();
Forgetful& forgetful();
Watching& counting_backend();
Starving& starving();
Gate& gate();

}  // namespace weft::testing

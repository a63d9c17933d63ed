#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weft/backend.h"

namespace weft::conformance {

/// A good backend under another name. Each entry forwards the call; a test overrides the one that it wants to
/// observe or to break. Handles are the good backend's, so compile and dispatch work too.
class Wrapped {
 public:
  Wrapped(std::string name, const weft_backend& inner) : name_(std::move(name)), inner_(inner) {}
  virtual ~Wrapped() = default;
  Wrapped(const Wrapped&) = delete;

  const std::string& name() const { return name_; }
  const weft_backend& inner() const { return inner_; }
  /// Of the good device that was opened last.
  const weft_capability& good() const { return good_; }
  bool host_memory() const { return good_.host_memory != 0; }
  bool ordered() const { return good_.queue_kind == WEFT_QUEUE_ORDERED; }

  /// Before a device is opened: kernels that the host generates for the good device are the wrapped one's
  /// own, so that their launches come by here, too.
  void take_generated() { takes_generated_ = true; }

  /// The op whose launches differ from the good backend's; empty: of any op, or none.
  virtual std::string one_op() const { return ""; }

  virtual uint32_t devices(uint32_t n) { return n; }
  virtual weft_code open_device(uint32_t ordinal, weft_device* d, weft_capability* c, weft_error* e) {
    return inner_.open_device(ordinal, d, c, e);
  }
  /// Called only if the good backend describes its devices.
  virtual weft_code describe(uint32_t ordinal, weft_capability* c, weft_error* e) {
    return inner_.describe(ordinal, c, e);
  }
  virtual void close_device(weft_device d) { inner_.close_device(d); }
  virtual weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) {
    return inner_.open_queue(d, q, e);
  }
  virtual void close_queue(weft_queue q) { inner_.close_queue(q); }
  virtual void capability(weft_capability&) {}
  virtual weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) {
    return inner_.allocate(d, bytes, handle, e);
  }
  virtual void free(weft_device d, void* handle) { inner_.free(d, handle); }
  virtual weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) { return inner_.copy(q, c, e); }
  virtual weft_code synchronize(weft_queue q, weft_error* e) { return inner_.synchronize(q, e); }
  /// Points; called only if the good backend has them.
  virtual weft_code mark(weft_queue q, uint64_t* point, weft_error* e) { return inner_.mark(q, point, e); }
  virtual weft_code wait(weft_queue q, weft_queue other, uint64_t point, weft_error* e) {
    return inner_.wait(q, other, point, e);
  }
  virtual weft_code await(weft_queue q, uint64_t point, uint64_t ns, uint64_t* reached, weft_error* e) {
    return inner_.await(q, point, ns, reached, e);
  }
  /// Called only if the good backend has a clock.
  virtual weft_code stamp(weft_queue q, weft_error* e) { return inner_.stamp(q, e); }
  virtual weft_code read_stamps(weft_queue q, uint64_t* nanoseconds, uint32_t n, weft_error* e) {
    return inner_.read_stamps(q, nanoseconds, n, e);
  }
  /// Called only if the good backend has pinned memory.
  virtual weft_code allocate_pinned(weft_device d, uint64_t bytes, void** handle, void** address,
                                    weft_error* e) {
    return inner_.allocate_pinned(d, bytes, handle, address, e);
  }
  /// Called only if the good backend imports memory.
  virtual weft_code import_memory(weft_device d, const DLTensor* t, uint64_t bytes, void** handle,
                                  weft_error* e) {
    return inner_.import_memory(d, t, bytes, handle, e);
  }
  /// Whether it records sequences, if the good backend does. Their launches bypass `launch`.
  virtual bool records() const { return false; }
  /// `desc` is in the good kernels' terms.
  virtual weft_code make_sequence(weft_device d, const weft_sequence_desc* desc, weft_sequence* s,
                                  uint32_t* refused, weft_error* e) {
    return inner_.make_sequence(d, desc, s, refused, e);
  }
  virtual weft_code run_sequence(weft_sequence s, weft_queue q, void* const* handles, uint32_t n,
                                 weft_error* e) {
    return inner_.run_sequence(s, q, handles, n, e);
  }
  virtual void free_sequence(weft_sequence s) { inner_.free_sequence(s); }
  /// May remove entries from the table, or add some that the good backend lacks.
  virtual void table(weft_backend&) {}
  /// Runs what the good backend compiled; called only if it compiles.
  virtual weft_code dispatch(weft_queue q, const weft_dispatch* d, weft_error* e) {
    return inner_.dispatch(q, d, e);
  }
  /// Whether the wrapped backend keeps a record of the good one.
  virtual bool offers(const weft_kernel&) { return true; }
  /// The record that the host will see; id and functions are already set.
  virtual void record(weft_kernel&) {}
  virtual weft_code accepts(const weft_kernel& kernel, weft_device d, const weft_call* c, weft_error* e) {
    return kernel.accepts(&kernel, d, c, e);
  }
  /// The call that the good kernel will see; a change lives as long as the plan.
  virtual void prepare(weft_call&) {}
  /// The good kernel's plan, as the host will see it.
  virtual void prepared(weft_plan&) {}
  /// This plan ends; the call is the good kernel's.
  virtual void released(const weft_call&) {}
  /// What the host launches, already in the good kernel's terms: its plan and its record.
  virtual weft_code enter(const weft_launch* l, weft_error* e) { return launch(l, e); }
  virtual weft_code launch(const weft_launch* l, weft_error* e) { return l->plan->kernel->launch(l, e); }

  /// `plan` is the good kernel's; called only if it packs.
  virtual weft_code pack(const weft_plan* plan, uint32_t input, const weft_tensor* from,
                         const weft_tensor* to, weft_queue q, weft_error* e) {
    return plan->kernel->pack(plan, input, from, to, q, e);
  }

  struct Record {
    weft_kernel outer{};
    const weft_kernel* inner = nullptr;
    Wrapped* owner = nullptr;
    std::string id;
  };

 private:
  std::string name_;
  const weft_backend& inner_;
  weft_capability good_{};
  bool takes_generated_ = false;
  friend class Slots;
  std::mutex mutex_;
  weft_backend generated_{};  // the table that generated kernels are given
  std::deque<Record> records_;
  std::vector<const weft_kernel*> list_;                    // the good backend's
  std::deque<std::vector<const weft_kernel*>> lists_ = {};  // with those that are generated, a list a device
};

/// Registers it; the backend, and so `wrapped`, lives until the process ends. Raises if it is refused.
void adopt(Wrapped& wrapped);

}  // namespace weft::conformance

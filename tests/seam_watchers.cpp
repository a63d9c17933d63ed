#include "seam_watchers.h"

#include <chrono>

#include "seam/registry.h"
#include "test_backends.h"
#include "weft/backend/base.hpp"

namespace weft::testing {
namespace {

template <class W>
W& awake(const char* name, const char* on) {
  static W& one = [&]() -> W& {
    load_plugin(on);  // false where it is built in
    auto* made = new W(
        name,
        value_or_raise(seam::registry().open(on))->backend());  // a backend lives until the process ends
    conformance::adopt(*made);
    return *made;
  }();
  return one;
}

}  // namespace

weft_code Picky::accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) {
  if (std::string(c->op) == "exp") return backend::fill(e, WEFT_UNSUPPORTED, "not on a Sunday");
  return Watching::accepts(k, d, c, e);
}

weft_code Starving::allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) {
  if (left_ == 0) return backend::fill(e, WEFT_OUT_OF_MEMORY, "this is all there is");
  --left_;
  return Wrapped::allocate(d, bytes, handle, e);
}

void Gate::set(bool closed) {
  const std::lock_guard lock(mutex_);
  closed_ = closed;
  changed_.notify_all();
}

void Gate::wait_for_a_visitor() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return visitors_ > 0; });
}

weft_code Gate::synchronize(weft_queue q, weft_error* e) {
  {
    std::unique_lock lock(mutex_);
    ++visitors_;
    changed_.notify_all();
    // Not forever: a caller that should have been refused waits here too, and the test must fail, not hang.
    changed_.wait_for(lock, std::chrono::seconds(2), [this] { return !closed_; });
    --visitors_;
  }
  return Wrapped::synchronize(q, e);
}

Picky& picky() { return awake<Picky>("watch_picky", "far"); }
Forgetful& forgetful() { return awake<Forgetful>("watch_forgetful", "reference"); }
Watching& counting_backend() { return awake<Watching>("watch_counting", "far"); }
Starving& starving() { return awake<Starving>("watch_starving", "reference"); }
Gate& gate() { return awake<Gate>("watch_gate", "reference"); }

}  // namespace weft::testing

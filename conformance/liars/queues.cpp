#include <deque>
#include <map>
#include <set>
#include <string>

#include "conformance/liars/liar.h"
#include "weft/backend/base.hpp"

// Long queues, several queues, failures in queues, and several devices.
namespace weft::conformance {
namespace {

/// Counts launches that wait.
class CountsWaiting : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    ++waiting_[l->queue];
    return DrawnLate::launch(l, e);
  }

 protected:
  std::map<weft_queue, uint64_t> waiting_;
};

// A ring buffer of launches that overwrites pending entries.
class ForgetsLongQueues : public CountsWaiting {
 public:
  using CountsWaiting::CountsWaiting;
  weft_code synchronize(weft_queue q, weft_error* e) override {
    return std::exchange(waiting_[q], 0) > places_ ? weft_code{WEFT_OK} : CountsWaiting::synchronize(q, e);
  }

 private:
  const uint64_t places_ = between(random_, 5, 300);
};

// Every synchronize waits for the queue that was opened last.
class WaitsForTheLastQueue : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) override {
    const weft_code code = DrawnLate::open_queue(d, q, e);
    if (code == WEFT_OK && ++opened_ > first_) last_ = *q;
    return code;
  }
  void close_queue(weft_queue q) override {
    if (last_ == q) last_ = nullptr;
    DrawnLate::close_queue(q);
  }
  weft_code synchronize(weft_queue q, weft_error* e) override {
    return DrawnLate::synchronize(last_ ? last_ : q, e);
  }

 private:
  const uint64_t first_ = between(random_, 1, 3);
  uint64_t opened_ = 0;
  weft_queue last_ = nullptr;
};

// After a queue has been closed, no synchronize waits.
class StopsWaiting : public DrawnLate {
 public:
  using DrawnLate::DrawnLate;
  void close_queue(weft_queue q) override {
    ++closed_;
    DrawnLate::close_queue(q);
  }
  weft_code synchronize(weft_queue q, weft_error* e) override {
    return closed_ > most_ ? weft_code{WEFT_OK} : DrawnLate::synchronize(q, e);
  }

 private:
  const uint64_t most_ = between(random_, 1, 4);
  uint64_t closed_ = 0;
};

/// Defers some launches to the next synchronize.
class Defers : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (++launches_ % every_) return Drawn::launch(l, e);
    waiting_[l->queue].push_back(kept(l));
    return WEFT_OK;
  }
  weft_code synchronize(weft_queue q, weft_error* e) override {
    for (const auto& l : std::exchange(waiting_[q], {}))
      if (const weft_code code = Drawn::launch(&l, e); code != WEFT_OK) return code;
    return Drawn::synchronize(q, e);
  }

 protected:
  virtual weft_launch kept(const weft_launch* l) {
    weft_launch own = *l;
    own.inputs = copies_of(l->inputs, l->plan->call->n_inputs);
    own.outputs = copies_of(l->outputs, l->plan->call->n_outputs);
    return own;
  }

 private:
  const weft_tensor* const* copies_of(const weft_tensor* const* list, uint32_t n) {
    auto& pointers = pointers_.emplace_back();
    for (uint32_t i = 0; i < n; ++i) pointers.push_back(list[i] ? &tensors_.emplace_back(*list[i]) : nullptr);
    return pointers.data();
  }

  const uint64_t every_ = between(random_, 2, 9);
  uint64_t launches_ = 0;
  std::map<weft_queue, std::vector<weft_launch>> waiting_;
  std::deque<weft_tensor> tensors_;
  std::deque<std::vector<const weft_tensor*>> pointers_;
};
// Reads the host's structs at that time; and reports an ordered queue.
class DefersInOrder : public Defers {
 public:
  using Defers::Defers;
  void capability(weft_capability& c) override { c.queue_kind = WEFT_QUEUE_ORDERED; }

 protected:
  weft_launch kept(const weft_launch* l) override { return *l; }
};

// ---- failures

// A reported error is reported again and again.
class RepeatsErrors : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code synchronize(weft_queue q, weft_error* e) override {
    const weft_code code = Drawn::synchronize(q, e);
    if (code != WEFT_OK) kept_[q] = {code, times_, e->text};
    auto& kept = kept_[q];
    if (code != WEFT_OK || kept.left == 0) return code;
    --kept.left;
    return backend::fill(e, kept.code, kept.words);
  }
  void close_queue(weft_queue q) override {
    kept_.erase(q);
    Drawn::close_queue(q);
  }

 private:
  struct Kept {
    weft_code code = WEFT_OK;
    uint64_t left = 0;
    std::string words;
  };
  const uint64_t times_ = between(random_, 1, 5);
  std::map<weft_queue, Kept> kept_;
};

// A success after a failure clears the error.
class ForgetsErrorsBehindLaunches : public CountsWaiting {
 public:
  using CountsWaiting::CountsWaiting;
  weft_code synchronize(weft_queue q, weft_error* e) override {
    const weft_code code = CountsWaiting::synchronize(q, e);
    return std::exchange(waiting_[q], 0) > most_ ? weft_code{WEFT_OK} : code;
  }

 private:
  const uint64_t most_ = between(random_, 1, 40);
};

// One error slot for all queues: the first synchronize of any queue reports it.
class MixesUpErrors : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) override {
    const weft_code code = Drawn::open_queue(d, q, e);
    if (code == WEFT_OK) queues_.push_back(*q);
    return code;
  }
  void close_queue(weft_queue q) override {
    std::erase(queues_, q);
    Drawn::close_queue(q);
  }
  weft_code synchronize(weft_queue, weft_error* e) override {
    weft_code first = WEFT_OK;
    for (const weft_queue q : queues_)
      if (weft_error other{.size = sizeof other, .text = {}}; first == WEFT_OK) {
        first = Drawn::synchronize(q, &other);
        if (first != WEFT_OK) backend::fill(e, first, std::string(other.text));
      }
    return first;
  }

 private:
  std::vector<weft_queue> queues_;
};

// ---- devices

/// Reports two devices. The second one is another of the good backend's, with a fault.
class SecondIsWorse : public Drawn {
 public:
  using Drawn::Drawn;
  uint32_t devices(uint32_t) override { return 2; }
  weft_code open_device(uint32_t ordinal, weft_device* d, weft_capability* c, weft_error* e) override {
    const weft_code code = Drawn::open_device(0, d, c, e);
    if (code == WEFT_OK && ordinal == 1) second_.insert(*d);
    return code;
  }
  weft_code describe(uint32_t, weft_capability* c, weft_error* e) override {
    return Drawn::describe(0, c, e);
  }
  void close_device(weft_device d) override {
    second_.erase(d);
    Drawn::close_device(d);
  }
  weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) override {
    const weft_code code = Drawn::open_queue(d, q, e);
    if (code == WEFT_OK && second_.contains(d)) seconds_.insert(*q);
    return code;
  }
  void close_queue(weft_queue q) override {
    seconds_.erase(q);
    Drawn::close_queue(q);
  }

 protected:
  bool is_second(weft_queue q) const { return seconds_.contains(q); }

 private:
  std::set<weft_device> second_;
  std::set<weft_queue> seconds_;
};
class SecondCopiesLess : public SecondIsWorse {
 public:
  using SecondIsWorse::SecondIsWorse;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy less = *c;
    if (is_second(q) && less.bytes > most_) --less.bytes;
    return SecondIsWorse::copy(q, &less, e);
  }

 private:
  const uint64_t most_ = between(random_, 8, 3000);
};
class SecondComputesLess : public SecondIsWorse {
 public:
  using SecondIsWorse::SecondIsWorse;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    return is_second(l->queue) && op_ == op_of(l) ? weft_code{WEFT_OK} : SecondIsWorse::launch(l, e);
  }

 private:
  static constexpr const char* kOps[] = {"add", "matmul", "sum", "gather", "where"};
  const std::string op_ = kOps[random_.bits() % std::size(kOps)];
};

// Closing one handle of the device closes it for all others, too.
class ClosesForAll : public Drawn {
 public:
  using Drawn::Drawn;
  void close_device(weft_device d) override {
    ++closed_;
    Drawn::close_device(d);
  }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    return closed_ > most_ ? weft_code{WEFT_OK} : Drawn::launch(l, e);
  }

 private:
  const uint64_t most_ = between(random_, 1, 20);  // the host describes a device once before it opens it
  uint64_t closed_ = 0;
};

// describe reports other properties than the opened device.
class DescribesAnother : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code describe(uint32_t ordinal, weft_capability* c, weft_error* e) override {
    const weft_code code = Drawn::describe(ordinal, c, e);
    uint64_t* const fields[] = {&c->memory, &c->max_buffer, &c->max_binding, &c->dtypes};
    if (code == WEFT_OK) *fields[field_] /= 2;
    return code;
  }

 private:
  const uint64_t field_ = between(random_, 1, 3);
};

constexpr Liar kQueuesLiars[] = {
    {"liar_forgets_long_queues", "far", "synchronize waits for no queue that is long",
     "waits_for_long_queues", make_liar<ForgetsLongQueues>, lacks_an_ordered_queue},
    {"liar_waits_for_the_last_queue", "far", "synchronize waits for the queue that was opened last",
     "waits_for_long_queues/one busy", make_liar<WaitsForTheLastQueue>, lacks_an_ordered_queue},
    {"liar_stops_waiting", "far", "synchronize waits no more when queues have been closed",
     "waits_for_long_queues/launches that take", make_liar<StopsWaiting>, lacks_an_ordered_queue},
    {"liar_defers", "reference", "launches of an inline queue run at synchronize",
     "waits_for_long_queues/at once", make_liar<Defers>, lacks_an_inline_queue},
    {"liar_defers_in_order", "reference", "reads the host's structs after launch has returned",
     "waits_for_long_queues/structs", make_liar<DefersInOrder>, lacks_an_inline_queue},
    {"liar_repeats_errors", "far", "an error is reported several times", "errors_come_once",
     make_liar<RepeatsErrors>, lacks_an_ordered_queue},
    {"liar_forgets_errors_behind_launches", "far", "a failure among many launches is not reported",
     "errors_come_once", make_liar<ForgetsErrorsBehindLaunches>, lacks_an_ordered_queue},
    {"liar_mixes_up_errors", "far", "any queue reports the failure of another", "errors_come_once",
     make_liar<MixesUpErrors>, lacks_an_ordered_queue},
    {"liar_second_copies_less", "far", "copies of a second device lose a byte", "opens_again",
     make_liar<SecondCopiesLess>},
    {"liar_second_computes_less", "far", "an op does nothing on a second device", "opens_again",
     make_liar<SecondComputesLess>},
    {"liar_describes_another", "reference", "describe says less of a device than open_device",
     "negotiates/devices that are described", make_liar<DescribesAnother>},
    {"liar_closes_for_all", "far", "closing a handle of a device breaks the others", "opens_again",
     make_liar<ClosesForAll>},
};

}  // namespace

Liars queues_liars() { return kQueuesLiars; }

}  // namespace weft::conformance

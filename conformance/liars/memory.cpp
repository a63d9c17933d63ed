#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "conformance/liars/liar.h"
#include "seam/device.h"
#include "weft/backend/base.hpp"

// Faults of memory and queues.
namespace weft::conformance {
namespace {

class ReadsHandle : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const volatile char* data = l->plan->call->n_inputs ? static_cast<char*>(l->inputs[0]->dl.data) : nullptr;
    if (data && *data == 0x7f) return WEFT_INTERNAL;  // any use of the value
    return Wrapped::launch(l, e);
  }
};

// synchronize returns before the work is complete. A second call waits.
class PassesEarly : public Late {
 public:
  using Late::Late;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    fresh_.insert(l->queue);
    return Late::launch(l, e);
  }
  weft_code synchronize(weft_queue q, weft_error* e) override {
    return fresh_.erase(q) ? weft_code{WEFT_OK} : Late::synchronize(q, e);
  }

 private:
  std::set<weft_queue> fresh_;
};

// An ordered queue that claims to be inline: the host then frees memory that is still in use.
class CallsItselfInline : public Late {
 public:
  using Late::Late;
  void capability(weft_capability& c) override { c.queue_kind = WEFT_QUEUE_INLINE; }
};

// A kernel that does not join its own thread: it returns while the second half is still being written.
class Races : public SpoilsOutput {
 public:
  using SpoilsOutput::SpoilsOutput;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    late_ = {};
    return SpoilsOutput::launch(l, e);
  }
  void free(weft_device d, void* handle) override {
    late_ = {};
    Wrapped::free(d, handle);
  }

 private:
  void spoil(const weft_launch* l, uint32_t k, std::span<char> bytes) override {
    const auto half = bytes.subspan(bytes.size() / 2);
    std::vector<char> right(half.begin(), half.end());
    std::ranges::fill(half, char{0x7f});
    Place there = place_of(l, l->outputs[k]);
    there.offset += bytes.size() / 2;
    late_ = std::jthread([this, there, right = std::move(right)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      write(there, right);
    });
  }

  std::jthread late_;
};

class SwallowsErrors : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code synchronize(weft_queue q, weft_error* e) override {
    (void)Wrapped::synchronize(q, e);
    return WEFT_OK;
  }
};

// Uses an operand as scratch space.
class SpoilsInput : public Mirrored {
 public:
  using Mirrored::Mirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = Mirrored::launch(l, e);
    if (l->plan->call->n_inputs && l->inputs[0] && !bytes_of(l->inputs[0]).empty())
      bytes_of(l->inputs[0])[0] ^= 1;
    return code;
  }
};

// Accepts a result over an operand, as elementwise kernels may, but reads the operand after writing.
class WritesOverWhatItReads : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) override {
    weft_call apart = *c;
    prepare(apart);
    return Wrapped::accepts(k, d, &apart, e);
  }
  void prepare(weft_call& c) override {
    if (std::strcmp(c.op, "matmul") == 0 || std::strcmp(c.op, "permute") == 0) c.updates = 0;
  }
};

// A vector store of sixteen bytes at the end, even if fewer are left.
class WritesPastTheEnd : public SpoilsOutput {
 public:
  using SpoilsOutput::SpoilsOutput;

 private:
  void spoil(const weft_launch*, uint32_t, std::span<char> bytes) override {
    volatile char* const behind = bytes.data() + bytes.size();
    *behind = static_cast<char>(~*behind);
  }
};

// A vector load beyond the end of an operand, whose result is not used.
class ReadsPastTheEnd : public Mirrored {
 public:
  using Mirrored::Mirrored;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (l->plan->call->n_inputs && l->inputs[0] && !bytes_of(l->inputs[0]).empty())
      seen_ =
          *(const_cast<const volatile char*>(bytes_of(l->inputs[0]).data()) + bytes_of(l->inputs[0]).size());
    return Mirrored::launch(l, e);
  }

 private:
  char seen_ = 0;
};

// Never frees memory. It stays reachable, so LeakSanitizer does not report it.
class Leaks : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void free(weft_device, void* handle) override {
    const std::lock_guard lock(mutex_);
    kept_.push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::vector<void*> kept_;
};

// Leaks the memory of plans.
class KeepsPlans : public Wrapped {
 public:
  using Wrapped::Wrapped;
  void prepare(weft_call&) override { kept_.push_back(std::make_unique<std::array<char, 1000>>()); }

 private:
  std::deque<std::unique_ptr<std::array<char, 1000>>> kept_;
};

/// Is told of errors: of a launch of an inline queue at once, of others where their queue is waited for.
class MeetsErrors : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override { return met(Wrapped::launch(l, e)); }
  weft_code synchronize(weft_queue q, weft_error* e) override { return met(Wrapped::synchronize(q, e)); }

 private:
  virtual void meets() = 0;
  weft_code met(weft_code code) {
    if (code != WEFT_OK) meets();
    return code;
  }
};

// Leaks memory on the error path.
class LeaksWhereItFails : public MeetsErrors {
 public:
  using MeetsErrors::MeetsErrors;

 private:
  void meets() override { kept_.push_back(std::make_unique<std::array<char, 1000>>()); }
  std::deque<std::unique_ptr<std::array<char, 1000>>> kept_;
};

// Copies omit the bytes after the last multiple of eight.
class CopiesWholeWords : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy whole = *c;
    if (whole.bytes > 8) whole.bytes -= whole.bytes % 8;
    return Wrapped::copy(q, &whole, e);
  }
};

// Copies within the device ignore the source's offset.
class CopiesFromTheBeginning : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy other = *c;
    if (other.source && other.target) other.source_offset = 0;
    return Wrapped::copy(q, &other, e);
  }
};

// Copies from the host ignore the target's offset.
class CopiesToTheBeginning : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy other = *c;
    if (!other.source && other.target) other.target_offset = 0;
    return Wrapped::copy(q, &other, e);
  }
};

// Memory with malloc's alignment.
class AlignsAsMalloc : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override {
    if (bytes > UINT64_MAX - kAlignment) return Wrapped::allocate(d, bytes, handle, e);
    const weft_code code = Wrapped::allocate(d, bytes + kAlignment, handle, e);
    if (code == WEFT_OK) *handle = static_cast<char*>(*handle) + kAlignment;
    return code;
  }
  void free(weft_device d, void* handle) override {
    Wrapped::free(d, handle ? static_cast<char*>(handle) - kAlignment : nullptr);
  }

 private:
  static constexpr uint64_t kAlignment = 16;
};

// All launches use one scratch buffer, which the next launch may overwrite too early.
class SharesItsScratch : public SpoilsOutput {
 public:
  using SpoilsOutput::SpoilsOutput;

 private:
  void spoil(const weft_launch*, uint32_t, std::span<char> bytes) override {
    {
      const std::lock_guard lock(mutex_);  // the fault is the order, not the access
      scratch_.assign(bytes.begin(), bytes.end());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    const std::lock_guard lock(mutex_);
    std::copy_n(scratch_.begin(), std::min(scratch_.size(), bytes.size()), bytes.begin());
  }

  std::mutex mutex_;
  std::vector<char> scratch_;
};

// After a failed launch, the next one is treated as its rest.
class SkipsAfterAnError : public MeetsErrors {
 public:
  using MeetsErrors::MeetsErrors;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    return std::exchange(failed_, false) ? weft_code{WEFT_OK} : MeetsErrors::launch(l, e);
  }

 private:
  void meets() override { failed_ = true; }
  bool failed_ = false;
};

// Tried by the system, which does not end the process.
const char* lacks_opaque_handles(seam::Device& good) {
  const auto buffer = value_or_raise(good.allocate_unpooled(4096));
  int ends[2];
  if (::pipe(ends) != 0) return "there is no pipe to try a handle with";
  const bool readable = ::write(ends[1], buffer->handle, 1) == 1;
  ::close(ends[0]), ::close(ends[1]);
  return readable ? "the host can read where its handles point" : nullptr;
}

constexpr Liar kMemoryLiars[] = {
    {"liar_reads_handle", "far", "reads an opaque handle on the host", "reads_no_handle",
     make_liar<ReadsHandle>, lacks_opaque_handles},
    {"liar_passes_early", "far", "synchronize answers before the queue has passed", "waits_when_asked",
     make_liar<PassesEarly>, lacks_an_ordered_queue, "waits_for_long_queues"},
    {"liar_calls_itself_inline", "far", "an ordered queue that says it is inline",
     "keeps_buffers_until_passed", make_liar<CallsItselfInline>, lacks_an_ordered_queue,
     "waits_for_long_queues"},
    {"liar_races", "reference", "returns while a thread of its own still writes", "ops/add",
     make_liar<Races>},
    {"liar_swallows_errors", "far", "a failed launch is never reported", "reports_its_errors",
     make_liar<SwallowsErrors>, lacks_an_ordered_queue},
    {"liar_spoils_input", "reference", "writes into an operand", "leaves_inputs_alone",
     make_liar<SpoilsInput>},
    {"liar_writes_over_what_it_reads", "reference", "takes a result over an operand that it reads afterwards",
     "writes_over_operands/permute", make_liar<WritesOverWhatItReads>, nullptr,
     "writes_over_operands/matmul"},
    {"liar_writes_past_the_end", "reference", "stores a byte behind its output", "stays_within_bounds",
     make_liar<WritesPastTheEnd>},
    {"liar_reads_past_the_end", "reference", "loads a byte behind an operand", "stays_within_bounds",
     make_liar<ReadsPastTheEnd>, lacks_host_memory},
    {"liar_leaks", "reference", "keeps memory that was freed", "gives_memory_back", make_liar<Leaks>},
    {"liar_keeps_plans", "reference", "keeps what plans that went needed", "gives_memory_back",
     make_liar<KeepsPlans>},
    {"liar_leaks_where_it_fails", "reference", "a launch that fails keeps its scratch",
     "gives_memory_back/launches that failed", make_liar<LeaksWhereItFails>},
    {"liar_copies_whole_words", "reference", "a copy loses its last bytes", "copies_every_byte",
     make_liar<CopiesWholeWords>},
    {"liar_copies_from_the_beginning", "reference", "a copy forgets where its source begins",
     "copies_every_byte", make_liar<CopiesFromTheBeginning>},
    {"liar_copies_to_the_beginning", "reference", "a copy from the host forgets where its target begins",
     "copies_every_byte", make_liar<CopiesToTheBeginning>},
    {"liar_aligns_as_malloc", "reference", "memory begins at multiples of 16 bytes", "aligns_memory",
     make_liar<AlignsAsMalloc>},
    {"liar_shares_its_scratch", "reference", "every launch goes through one scratch memory",
     "runs_beside_others", make_liar<SharesItsScratch>},
    {"liar_skips_after_an_error", "reference", "the launch after one that failed does nothing",
     "reports_its_errors", make_liar<SkipsAfterAnError>},
};

}  // namespace

Liars memory_liars() { return kMemoryLiars; }

}  // namespace weft::conformance

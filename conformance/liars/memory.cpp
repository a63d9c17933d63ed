#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "conformance/liars/liar.h"
#include "weft/backend/base.hpp"

// Memory and queues: what is written where, when it is done, and who has it afterwards.
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

// Uses an operand as scratch space.
class SpoilsInput : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    const weft_code code = Wrapped::launch(l, e);
    if (l->plan->call->n_inputs && l->inputs[0] && !bytes_of(l->inputs[0]).empty())
      bytes_of(l->inputs[0])[0] ^= 1;
    return code;
  }
};

// A vector store of sixteen bytes at the end, whatever is left there.
class WritesPastTheEnd : public SpoilsOutput {
 public:
  using SpoilsOutput::SpoilsOutput;

 private:
  void spoil(const weft_launch*, uint32_t, std::span<char> bytes) override {
    volatile char* const behind = bytes.data() + bytes.size();
    *behind = 0;
  }
};

// A vector load that reaches behind an operand; what it finds there is not used.
class ReadsPastTheEnd : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (l->plan->call->n_inputs && l->inputs[0] && !bytes_of(l->inputs[0]).empty())
      seen_ =
          *(const_cast<const volatile char*>(bytes_of(l->inputs[0]).data()) + bytes_of(l->inputs[0]).size());
    return Wrapped::launch(l, e);
  }

 private:
  char seen_ = 0;
};

// Memory is never given back. It is known where it is, so that LeakSanitizer has nothing to say of it.
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

// Copies leave out what is left after the last whole eight bytes.
class CopiesWholeWords : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy whole = *c;
    if (whole.bytes > 8) whole.bytes -= whole.bytes % 8;
    return Wrapped::copy(q, &whole, e);
  }
};

// Copies within the device always from the beginning of the source.
class CopiesFromTheBeginning : public Wrapped {
 public:
  using Wrapped::Wrapped;
  weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) override {
    weft_copy other = *c;
    if (other.source && other.target) other.source_offset = 0;
    return Wrapped::copy(q, &other, e);
  }
};

constexpr Liar kLiars[] = {
    {"liar_reads_handle", "far", "reads an opaque handle on the host", "reads_no_handle",
     make_liar<ReadsHandle>},
    {"liar_passes_early", "far", "synchronize answers before the queue has passed", "waits_when_asked",
     make_liar<PassesEarly>},
    {"liar_calls_itself_inline", "far", "an ordered queue that says it is inline",
     "keeps_buffers_until_passed", make_liar<CallsItselfInline>},
    {"liar_swallows_errors", "far", "a failed launch is never reported", "reports_its_errors",
     make_liar<SwallowsErrors>},
    {"liar_spoils_input", "reference", "writes into an operand", "leaves_inputs_alone",
     make_liar<SpoilsInput>},
    {"liar_writes_past_the_end", "reference", "stores a byte behind its output", "stays_within_bounds",
     make_liar<WritesPastTheEnd>},
    {"liar_reads_past_the_end", "reference", "loads a byte behind an operand", "stays_within_bounds",
     make_liar<ReadsPastTheEnd>},
    {"liar_leaks", "reference", "keeps memory that was freed", "gives_memory_back", make_liar<Leaks>},
    {"liar_copies_whole_words", "reference", "a copy loses its last bytes", "copies_every_byte",
     make_liar<CopiesWholeWords>},
    {"liar_copies_from_the_beginning", "reference", "a copy forgets where its source begins",
     "copies_every_byte", make_liar<CopiesFromTheBeginning>},
};

}  // namespace

Liars memory_liars() { return kLiars; }

}  // namespace weft::conformance

#pragma once
#include <array>
#include <atomic>
#include <deque>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/backend/base.hpp"
#include "weft/backend/views.hpp"

// The comfort of C++20 over backend.h: records that fill themselves into the C table, views, and one place
// where exceptions end. Header-only; needs the standard library and DLPack.
namespace weft::backend {

/// A kernel: what it takes and how it runs. Operands that are strided, misaligned or in another layout,
/// outputs to be added to or written over an input, and a determinism above `determinism`, are refused unless
/// the record says that it takes them; `accepts` decides on the rest.
struct KernelRecord {
  const char* op = "";
  const char* variant = "";
  std::array<const char*, 8>
      reads{};  ///< the attributes it looks at; with another off its default it is not asked
  Support (*accepts)(const OpCall&) = nullptr;              ///< null: takes every call
  Outcome (*prepare)(const OpCall&, weft_plan&) = nullptr;  ///< optional
  void (*release)(weft_plan*) = nullptr;                    ///< ends what prepare put into plan.data
  Outcome (*launch)(const Launch&) = nullptr;
  uint32_t determinism = WEFT_DETERMINISM_THREADS;
  bool accumulates = false;        ///< takes `+=` outputs
  bool joins = false;              ///< may run as a part of a launch behind it (WEFT_KERNEL_JOINS)
  bool in_place = false;           ///< takes an output that is written over the input of its type
  bool any_layout = false;         ///< takes strided, misaligned and packed operands
  bool reads_all = false;          ///< takes every attribute into account
  int rank = 0;                    ///< of the records of one list for one op, the higher is asked first
  const char* contents = nullptr;  ///< the version of a library that it runs, where it runs one
  /// Packs a constant as a plan of prepare's says: see weft_kernel.pack. Of queues that run at once.
  Outcome (*pack)(const weft_plan&, int64_t input, TensorView from, TensorView to, const Host&) = nullptr;
};

namespace detail {
inline Support plain_operand(TypeView t, const char* what, int64_t i) {
  if (!t.has()) return Support::yes();
  if (!t.known_dtype()) return Support::no("{} {} has a dtype that is not one of Weft's", what, i);
  if (t.layout() != 0) return Support::no("{} {} must be row-major, got layout {}", what, i, t.layout());
  if (!t.contiguous()) return Support::no("{} {} must be contiguous, got strided {}", what, i, t.max());
  const uint64_t size = byte_size(t.dtype()), given = t.alignment();
  if (given % size != 0) return Support::no("{} {} must be aligned to {}, got {}", what, i, size, given);
  return Support::yes();
}

/// What the record's flags rule out, before its own accepts is asked.
inline Support allowed(const KernelRecord& r, const OpCall& c) {
  if (c.determinism() > r.determinism)
    return Support::no("determinism level {} is wanted, this kernel gives {}", c.determinism(),
                       r.determinism);
  if (c.accumulate() != 0 && !r.accumulates) return Support::no("cannot add to its output");
  if (c.updates() != 0 && !r.in_place) return Support::no("cannot write over its input");
  if (r.any_layout) return Support::yes();
  for (int64_t i = 0; i < c.n_inputs(); ++i)
    if (auto s = plain_operand(c.input(i), "input", i); !s) return s;
  for (int64_t i = 0; i < c.n_outputs(); ++i)
    if (auto s = plain_operand(c.output(i), "output", i); !s) return s;
  return Support::yes();
}
}  // namespace detail

/// The records of one backend as the table that the C functions hand out. For one op, records of an earlier
/// list are asked before those of a later one, and within a list those of a higher rank first. Lives until
/// the plug-in is unloaded.
class KernelTable {
 public:
  using LaunchFn = weft_code (*)(const weft_launch*, weft_error*);

  /// `launch` replaces running the record at once, for queues that run later; `flags` are those of every
  /// kernel, beside what its record says.
  KernelTable(std::string_view backend, std::initializer_list<std::span<const KernelRecord>> lists,
              LaunchFn launch = &KernelTable::launch_now, uint32_t flags = 0) {
    auto left = static_cast<int>(lists.size());
    for (const auto list : lists) {
      --left;
      for (const KernelRecord& r : list) add(backend, r, launch, flags, left * kRanks);
    }
    for (const Entry& e : entries_) pointers_.push_back(&e.kernel);
  }
  KernelTable(const KernelTable&) = delete;
  KernelTable& operator=(const KernelTable&) = delete;

  void set_host(const weft_host* host) { host_ = host; }
  Host host() const { return Host(host_.load()); }
  const weft_kernel* const* data() const { return pointers_.data(); }
  uint32_t size() const { return static_cast<uint32_t>(pointers_.size()); }

  /// Runs the record behind a launch whose tensors lie in host memory, for queues that run later: the error
  /// comes out far from the launch, so the kernel's id begins its text.
  static Outcome run(const weft_launch* launch) {
    Outcome outcome = run_record(launch);
    if (!outcome.good()) outcome.text = entry(launch->plan->kernel).id + ": " + outcome.text;
    return outcome;
  }
  /// At once; the host puts the kernel's id before what a launch returns.
  static weft_code launch_now(const weft_launch* launch, weft_error* error) {
    return guarded(error, [&] { return run_record(launch); });
  }

 private:
  struct Entry {
    KernelRecord record;
    std::string id;
    const KernelTable* table;
    weft_kernel kernel;
  };

  static const Entry& entry(const weft_kernel* k) { return *static_cast<const Entry*>(k->self); }
  static Outcome run_record(const weft_launch* launch) {
    const Entry& e = entry(launch->plan->kernel);
    return e.record.launch(Launch(launch, e.table->host()));
  }

  static constexpr int kRanks = 1000;  // of one list: more than any record's own

  void add(std::string_view backend, const KernelRecord& r, LaunchFn launch, uint32_t flags, int list_rank) {
    Entry& e = entries_.emplace_back(Entry{r, format("{}.{}.{}", backend, r.op, r.variant), this, {}});
    for (const Entry& other : entries_)
      if (&other != &e && other.id == e.id) throw std::logic_error("two kernels are called " + e.id);
    weft_kernel& k = e.kernel;
    k.size = sizeof(weft_kernel);
    k.determinism = r.determinism;
    k.id = e.id.c_str();
    k.op = e.record.op;
    k.reads = e.record.reads.data();
    while (k.n_reads < e.record.reads.size() && e.record.reads[k.n_reads] != nullptr) ++k.n_reads;
    k.flags = flags | (r.reads_all ? uint32_t{WEFT_KERNEL_READS_ALL} : 0) |
              (r.joins ? uint32_t{WEFT_KERNEL_JOINS} : 0);
    k.self = &e;
    k.accepts = [](const weft_kernel* self, weft_device, const weft_call* call, weft_error* error) {
      return guarded(error, [&] {
        const KernelRecord& record = entry(self).record;
        const OpCall c(call);
        Support s = detail::allowed(record, c);
        if (s && record.accepts != nullptr) s = record.accepts(c);
        return s ? Outcome::ok() : Outcome{WEFT_UNSUPPORTED, std::move(s.reason)};
      });
    };
    if (r.prepare != nullptr)
      k.prepare = [](const weft_kernel* self, weft_device, const weft_call* call, weft_plan* plan,
                     weft_error* error) {
        return guarded(error, [&] { return entry(self).record.prepare(OpCall(call), *plan); });
      };
    k.release = r.release;
    k.launch = launch;
    k.rank = list_rank + r.rank;
    k.contents = e.record.contents;
    if (r.pack != nullptr && launch == &KernelTable::launch_now)
      k.pack = [](const weft_plan* plan, uint32_t input, const weft_tensor* from, const weft_tensor* to,
                  weft_queue, weft_error* error) {
        const Entry& own = entry(plan->kernel);
        return guarded(error, [&] {
          return own.record.pack(*plan, input, TensorView(from), TensorView(to), own.table->host());
        });
      };
  }

  std::atomic<const weft_host*> host_ = nullptr;
  std::deque<Entry> entries_;  // a deque: addresses stay
  std::vector<const weft_kernel*> pointers_;
};

}  // namespace weft::backend

#include "seam/tables.h"

#include <algorithm>
#include <bit>
#include <cctype>

#include "seam/c_error.h"

namespace weft::seam {
namespace {

// The host reads no further than a table says it reaches, and needs at least the required entries.
constexpr uint32_t kLeastTable = offsetof(weft_backend, kernels) + sizeof(weft_backend::kernels);

constexpr uint32_t kLeastKernel = offsetof(weft_kernel, launch) + sizeof(weft_kernel::launch);
constexpr uint32_t kMostOfStruct = 64 * 1024;  // of any struct that makes sense
constexpr uint32_t kMostKernels = 64 * 1024;

// Users type it, and ids of kernels begin with it.
Status check_name(const char* name) {
  if (!name || !*name) return fail(Code::version, "it has no name");
  const size_t n = strnlen(name, 65);
  const bool word =
      std::all_of(name, name + n, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
  if (n > 64 || !word)
    return fail(Code::version, "its name must be at most 64 letters, digits, '_' and '-', got '{}'",
                std::string_view(name, n));
  return {};
}

// Of the required entries, a provider has those that do not make a device.
Status check_entries(const weft_backend& t) {
  const bool device = !serves(t);
  const struct {
    const char* name;
    bool there;
  } required[] = {{"probe", t.probe != nullptr},
                  {"open_device", !device || t.open_device},
                  {"close_device", !device || t.close_device},
                  {"allocate", !device || t.allocate},
                  {"free", !device || t.free},
                  {"open_queue", !device || t.open_queue},
                  {"close_queue", !device || t.close_queue},
                  {"copy", !device || t.copy},
                  {"synchronize", !device || t.synchronize},
                  {"kernels", t.kernels != nullptr}};
  for (const auto& r : required)
    if (!r.there) return fail(Code::version, "the required entry {} is missing", r.name);
  return {};
}

// Entries that only make sense together.
Status check_groups(const weft_backend& t) {
  const int points = (t.mark != nullptr) + (t.wait != nullptr) + (t.await != nullptr);
  if (points != 0 && points != 3)
    return fail(Code::version, "it has {} of the three entries mark, wait and await; wanted all or none",
                points);
  if ((t.stamp == nullptr) != (t.read_stamps == nullptr))
    return fail(Code::version, "it has one of stamp and read_stamps; wanted both or none");
  const int sequences =
      (t.make_sequence != nullptr) + (t.run_sequence != nullptr) + (t.free_sequence != nullptr);
  if (sequences != 0 && sequences != 3)
    return fail(Code::version,
                "it has {} of the three entries make_sequence, run_sequence and free_sequence; wanted all or "
                "none",
                sequences);
  if (!serves(t) && (t.attach || t.detach))
    return fail(Code::version,
                "it has attach or detach, which are a provider's, and serves no kind of device");
  if ((t.attach == nullptr) != (t.detach == nullptr))
    return fail(Code::version, "it has one of attach and detach; wanted both or none");
  if (serves(t) && std::string_view(t.serves).size() >= sizeof weft_capability::kind)
    return fail(Code::version, "it serves a kind of device of {} letters; a kind has at most {}",
                std::string_view(t.serves).size(), sizeof weft_capability::kind - 1);
  if (serves(t) && t.rank)
    return fail(Code::version, "it is a provider of rank {}; only a backend with devices can be the default",
                t.rank);
  return {};
}

}  // namespace

Status check_table(const weft_backend& t) {
  if (t.size < kLeastTable || t.size > kMostOfStruct)
    return fail(Code::version, "its table says it has {} bytes; {} to {} make sense", t.size, kLeastTable,
                kMostOfStruct);
  if (t.abi < WEFT_ABI_MIN || t.abi > WEFT_ABI)
    return fail(Code::version, "it was built for seam version {}, this host speaks {} to {}", t.abi,
                WEFT_ABI_MIN, WEFT_ABI);
  return check_name(t.name);
}

Status padded(const weft_backend& table, weft_backend& to) {
  std::memset(&to, 0, sizeof to);
  std::memcpy(&to, &table, std::min<size_t>(table.size, sizeof to));
  WEFT_CHECK(check_entries(to));
  return check_groups(to);
}

std::string terminated(const char* text, size_t capacity) {
  return std::string(text, strnlen(text, capacity));
}

namespace {
// "<provider>.<op>.<variant>": the ledger, refusals and options that exclude a kernel rely on its parts.
bool is_id(std::string_view id) {
  const size_t op = id.find('.') + 1, variant = op ? id.find('.', op) + 1 : 0;
  return op > 1 && variant > op + 1 && variant < id.size();
}
}  // namespace

int32_t rank_of(const weft_kernel& k) {
  constexpr size_t kReach = offsetof(weft_kernel, rank) + sizeof k.rank;
  return k.size >= kReach ? k.rank : 0;
}
void sort_by_rank(std::vector<const weft_kernel*>& kernels) {
  std::ranges::stable_sort(kernels, [](auto* a, auto* b) { return rank_of(*a) > rank_of(*b); });
}
std::string contents_of(const weft_kernel& k) {
  constexpr size_t kReach = offsetof(weft_kernel, contents) + sizeof k.contents;
  return k.size >= kReach && k.contents ? std::string(k.contents, strnlen(k.contents, 256)) : "";
}

Result<std::vector<const weft_kernel*>> checked_kernels(const weft_kernel* const* list, uint32_t n) {
  if (n > kMostKernels || (n > 0 && !list))
    return fail(Code::version, "it lists {} of them{}; at most {} make sense", n, list ? "" : ", and no list",
                kMostKernels);
  for (uint32_t i = 0; i < n; ++i) {
    const weft_kernel* k = list[i];
    if (!k) return fail(Code::version, "number {} is null", i);
    if (k->size < kLeastKernel || k->size > kMostOfStruct)
      return fail(Code::version, "number {} says it has {} bytes; {} to {} make sense", i, k->size,
                  kLeastKernel, kMostOfStruct);
    const struct {
      const char* name;
      bool there;
    } required[] = {{"id", k->id && *k->id},
                    {"op", k->op && *k->op},
                    {"reads", k->reads || k->n_reads == 0},
                    {"accepts", k->accepts != nullptr},
                    {"launch", k->launch != nullptr}};
    for (const auto& r : required)
      if (!r.there) return fail(Code::version, "number {} has no {}", i, r.name);
    if (!is_id(k->id))
      return fail(Code::version, "number {}, for {}, has the id '{}'; wanted <provider>.<op>.<variant>", i,
                  k->op, k->id);
  }
  std::vector<const weft_kernel*> all(list, list + n);
  sort_by_rank(all);
  return all;
}

Status settle(weft_capability& c, uint32_t ordinal) {
  if (c.available == 0)
    return fail(Code::unavailable, "{}",
                *c.reason ? terminated(c.reason, sizeof c.reason) : "it gave no reason");
  c.size = sizeof c, c.ordinal = ordinal;
  c.kind[sizeof c.kind - 1] = c.label[sizeof c.label - 1] = c.reason[sizeof c.reason - 1] = 0;
  c.dialect[sizeof c.dialect - 1] = c.numerics[sizeof c.numerics - 1] = 0;
  c.offset_alignment = std::max(c.offset_alignment, 1u);
  if (!std::has_single_bit(c.offset_alignment))
    return fail(Code::version, "its buffers begin at multiples of {}, which is no power of two",
                c.offset_alignment);
  if (c.queue_kind != WEFT_QUEUE_INLINE && c.queue_kind != WEFT_QUEUE_ORDERED)
    return fail(Code::version, "its queues are of kind {}, which this host does not know", c.queue_kind);
  return {};
}

}  // namespace weft::seam

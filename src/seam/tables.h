#pragma once
#include <string>
#include <vector>

#include "weft/backend.h"
#include "weft/status.h"

// What a backend says of itself, looked at before the host goes by it.
namespace weft::seam {

/// Does the table supply kernels for the devices of others? Of a table that was padded.
inline bool serves(const weft_backend& t) { return t.serves != nullptr; }

/// Size, version and name.
Status check_table(const weft_backend& table);
/// A table that passed check_table as one of this header's size: a shorter table is an older one, what it
/// lacks is absent. An error where a required entry is missing, or half of a group.
Status padded(const weft_backend& table, weft_backend& to);

/// What a backend says of a device: texts end, and what is counted with makes sense.
Status settle(weft_capability& c, uint32_t ordinal);

/// The records that a backend lists, those of a higher rank first: each is read only after this has looked at
/// it.
Result<std::vector<const weft_kernel*>> checked_kernels(const weft_kernel* const* list, uint32_t n);
/// weft_kernel::rank; 0 of a record that is older than it.
int32_t rank_of(const weft_kernel& kernel);
/// Those of a higher rank first; those of one rank stay in order.
void sort_by_rank(std::vector<const weft_kernel*>& kernels);
/// weft_kernel::contents, or nothing.
std::string contents_of(const weft_kernel& kernel);

/// A text of a struct, whether it ends or not.
std::string terminated(const char* text, size_t capacity);

}  // namespace weft::seam

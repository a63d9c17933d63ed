#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/file.h"
#include "weft/dtype.h"
#include "weft/shape.h"

// The safetensors format: u64 little-endian header length, a JSON header, raw little-endian elements.
// Source: https://huggingface.co/docs/safetensors, "Format".
namespace weft::formats {

/// A tensor of a file; `bytes` point into the file's data.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// A file that passed every check. A copy shares its bytes.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<TensorEntry> tensors;  ///< in the order in which their bytes lie
  SharedBytes file;

  const TensorEntry* find(std::string_view name) const;
};

/// Longest header that is read.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Parses a file's bytes; messages name `where`.
///
/// Errors   corrupt, with the field, when a length runs past the file, the header is no such JSON, a dtype is
/// unknown, a
///          size does not match dtype and shape, or bytes overlap, lie outside or belong to no tensor.
Result<Safetensors> parse_safetensors(std::vector<std::byte> file, const std::string& where);
Result<Safetensors> parse_safetensors(SharedBytes file, const std::string& where);
Result<Safetensors> read_safetensors(const std::string& path);
/// Elements are read on demand: see map_file().
Result<Safetensors> map_safetensors(const std::string& path);

/// The bytes of a file; the same input gives the same bytes. Errors: invalid_argument when a name appears
/// twice or a size does not match.
Result<std::vector<std::byte>> encode_safetensors(std::span<const TensorEntry> tensors,
                                                  const std::map<std::string, std::string>& metadata);
/// Orders tensors so that elements are aligned, as the format requires: wide dtypes first, stable otherwise.
void order_by_width(std::vector<TensorEntry>& tensors);

/// Writes the same to a file, tensor by tensor; the old file is treated as by write_file().
Status write_safetensors(const std::string& path, std::span<const TensorEntry> tensors,
                         const std::map<std::string, std::string>& metadata);
/// The same with elements fetched one tensor at a time: only one is in memory.
Status write_safetensors(const std::string& path, std::span<const TensorEntry> tensors,
                         const std::map<std::string, std::string>& metadata,
                         const std::function<std::vector<std::byte>(const TensorEntry&)>& elements);

}  // namespace weft::formats

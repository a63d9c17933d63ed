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

/// A tensor of a file: `bytes` lie in the file's data.
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

/// Reads a file's bytes; `where` is named in messages.
///
/// Errors   corrupt, with the field, when a length runs past the file, the header is no such JSON, a dtype is
/// unknown, a
///          size does not match dtype and shape, or bytes overlap, lie outside or belong to no tensor.
Result<Safetensors> parse_safetensors(std::vector<std::byte> file, const std::string& where);
Result<Safetensors> parse_safetensors(SharedBytes file, const std::string& where);
Result<Safetensors> read_safetensors(const std::string& path);
/// The elements stay in the file until they are wanted: see map_file().
Result<Safetensors> map_safetensors(const std::string& path);

/// The bytes of a file; the same input gives the same bytes. Errors: invalid_argument when a name appears
/// twice or a size does not match.
Result<std::vector<std::byte>> encode_safetensors(std::span<const TensorEntry> tensors,
                                                  const std::map<std::string, std::string>& metadata);
/// The order in which elements lie aligned, as the format asks: wide ones first. Else it stays as it is.
void order_by_width(std::vector<TensorEntry>& tensors);

/// The same as a file, written tensor by tensor; see write_file() for what happens to the old one.
Status write_safetensors(const std::string& path, std::span<const TensorEntry> tensors,
                         const std::map<std::string, std::string>& metadata);
/// The same with elements that are fetched one tensor at a time: no more than one is in memory.
Status write_safetensors(const std::string& path, std::span<const TensorEntry> tensors,
                         const std::map<std::string, std::string>& metadata,
                         const std::function<std::vector<std::byte>(const TensorEntry&)>& elements);

}  // namespace weft::formats

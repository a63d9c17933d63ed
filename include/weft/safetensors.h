#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor.h"

// Tensors in files of the safetensors format, which Hugging Face's and PyTorch's tools read too.
namespace weft::io {

/// What a file says of one tensor.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
};

/// A file of tensors, mapped: elements stay on the disk until they are read. A copy shares the mapping, and
/// any thread may read it. The file may be replaced or deleted meanwhile, but not cut short.
///
/// Source   https://huggingface.co/docs/safetensors, "Format".
class Safetensors {
 public:
  /// Errors   unavailable when the file can't be read; corrupt, with the field, when it is damaged or no file
  ///          of this format.
  static Safetensors map(const std::string& path);

  /// In the order in which they lie in the file.
  std::vector<StoredTensor> tensors() const;
  bool contains(std::string_view name) const;
  /// What the writer added in words.
  const std::map<std::string, std::string>& metadata() const;
  /// One tensor, copied to `backend` (empty: the default backend), alone.
  ///
  /// Errors   invalid_argument when the file has no tensor of this name, or it has more axes than a tensor
  /// can.
  Tensor read(std::string_view name, const std::string& backend = "") const;
  /// The elements as they lie in the file, row-major, while this object lives.
  ///
  /// Errors   as read().
  std::span<const std::byte> bytes(std::string_view name) const;

 private:
  struct File;
  explicit Safetensors(std::shared_ptr<const File> file);
  std::shared_ptr<const File> file_;
};

/// Writes tensors under their names, whole or not at all: an old file stays until the new one is complete.
/// One tensor at a time is copied out of its device. The same tensors make the same bytes.
///
/// Errors   io when the disk refuses; invalid_argument for an empty tensor, for names or metadata that are
/// not
///          UTF-8, for the name `__metadata__`, and for a header beyond the format's 100 MB.
void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace weft::io

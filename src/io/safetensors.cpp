#include "weft/safetensors.h"

#include "formats/safetensors.h"

namespace weft::io {

struct Safetensors::File {
  std::string path;
  formats::Safetensors content;

  const formats::TensorEntry& entry(std::string_view name) const {
    const auto* e = content.find(name);
    if (!e)
      throw Error(invalid("{} has no tensor named '{}', but {} others", path, name, content.tensors.size()));
    return *e;
  }
};

Safetensors::Safetensors(std::shared_ptr<const File> file) : file_(std::move(file)) {}

Safetensors Safetensors::map(const std::string& path) {
  return Safetensors(
      std::make_shared<const File>(File{path, value_or_raise(formats::map_safetensors(path))}));
}

std::vector<StoredTensor> Safetensors::tensors() const {
  std::vector<StoredTensor> out;
  for (const auto& t : file_->content.tensors) out.push_back({t.name, t.dtype, t.shape});
  return out;
}

bool Safetensors::contains(std::string_view name) const { return file_->content.find(name) != nullptr; }

const std::map<std::string, std::string>& Safetensors::metadata() const { return file_->content.metadata; }

Tensor Safetensors::read(std::string_view name, const std::string& backend) const {
  const auto& e = file_->entry(name);
  try {
    return Tensor::from_bytes(e.bytes, e.shape, e.dtype, backend);
  } catch (const Error& error) {  // too many axes, or the backend is out of memory
    throw Error(Status(error.status()).at(fmt::format("{}: tensor '{}'", file_->path, name)));
  }
}

std::span<const std::byte> Safetensors::bytes(std::string_view name) const {
  return file_->entry(name).bytes;
}

void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<formats::TensorEntry> entries;
  for (const auto& [name, t] : tensors) {
    if (!t) throw Error(invalid("write_safetensors: '{}' is an empty tensor", name));
    const auto shape = t.sizes();
    entries.push_back({name, t.dtype(), {shape.begin(), shape.end()}, {}});
  }
  formats::order_by_width(entries);
  raise_if(formats::write_safetensors(
      path, entries, metadata, [&](const formats::TensorEntry& e) { return tensors.at(e.name).to_bytes(); }));
}

}  // namespace weft::io

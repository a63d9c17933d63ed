#include "python/src/made.h"

#include "eager/tensor_impl.h"

namespace weft::python {

nb::list list_of(std::span<const Tensor> tensors) {
  nb::list all;
  for (const Tensor& t : tensors) all.append(nb::steal(to_object(t)));
  return all;
}

nb::object text_of(std::string_view bytes) {
  return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

formats::Safetensors in_memory(const std::map<std::string, Tensor>& weights) {
  formats::Safetensors file;
  auto kept = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  for (const auto& [name, given] : weights) {
    const Tensor t = given.impl()->irregular ? eager::regular_copy(given) : given;
    const IntList sizes = t.sizes();
    formats::TensorEntry entry{
        .name = name, .dtype = t.dtype(), .shape = {sizes.begin(), sizes.end()}, .bytes = {}};
    seam::Device& device = eager::device_of(*t.impl());
    if (device.host_memory()) {
      const std::lock_guard lock(device.eager_mutex());
      raise_if(device.eager_queue().synchronize());
      const auto* at = static_cast<const std::byte*>(t.impl()->c.dl.data) + t.impl()->c.dl.byte_offset;
      entry.bytes = {at, t.impl()->bytes()};
      kept->push_back(std::make_shared<Tensor>(t));
    } else {
      const auto bytes = std::make_shared<std::vector<std::byte>>(t.to_bytes());
      entry.bytes = *bytes;
      kept->push_back(bytes);
    }
    file.tensors.push_back(std::move(entry));
  }
  file.file.owner = kept;
  return file;
}

}  // namespace weft::python

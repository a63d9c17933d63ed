#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "python/src/module.h"
#include "python/src/object.h"
#include "weft/safetensors.h"

// Tensors in files.
namespace weft::python {

void bind_files(nb::module_& m) {
  using namespace nb::literals;
  const auto unlocked = nb::call_guard<Unlocked>();
  m.def(
      "save_safetensors",
      [](const std::filesystem::path& path, const std::map<std::string, Tensor>& tensors,
         const std::map<std::string, std::string>& metadata) {
        io::write_safetensors(path.string(), tensors, metadata);
      },
      "path"_a, "tensors"_a, "metadata"_a = std::map<std::string, std::string>(), unlocked,
      "Writes tensors under their names, whole or not at all: an old file stays until the new one is "
      "complete.");
  m.def(
      "load_safetensors",
      [](const std::filesystem::path& path, const std::string& backend) {
        const io::Safetensors file = io::Safetensors::map(path.string());
        std::map<std::string, Tensor> all;
        for (const auto& t : file.tensors()) all.emplace(t.name, file.read(t.name, backend));
        return all;
      },
      "path"_a, "backend"_a = "", unlocked, "All tensors of a safetensors file by name.");
}

}  // namespace weft::python

#pragma once
#include <map>

#include "formats/safetensors.h"
#include "python/src/object.h"

// What several files here make of tensors and texts.
namespace weft::python {

/// A Python list of tensors.
nb::list list_of(std::span<const Tensor> tensors);
/// A str; where a text was cut inside of a character, as Python's decode(errors="replace") shows it.
nb::object text_of(std::string_view bytes);
/// The memory of named tensors as the importer reads it: a safetensors file without a file.
formats::Safetensors in_memory(const std::map<std::string, Tensor>& weights);

}  // namespace weft::python

#pragma once
#include <map>
#include <string>
#include <vector>

#include "weft/module.h"

// What a module knows, by name, in memory and in files.
namespace weft::nn {

/// Parameters and states (running statistics, random states) by the names of their fields. They are the
/// module's own tensors, not copies. A tied tensor is there once, under the name of its first field.
///
/// Errors   invalid_argument when the module was not built yet.
std::map<std::string, Tensor> state_dict(const Module& m);

struct LoadOptions {
  /// Every field must be there, and nothing else. If not, fields are loaded where a name matches and the
  /// others stay; the module must have been built.
  bool strict = true;
  /// Of the parameters of a module that was not built yet.
  DType dtype = DType::f32;
};

/// What had no counterpart.
struct LoadReport {
  std::vector<std::string> missing;     ///< fields that stay as they were
  std::vector<std::string> unexpected;  ///< names that no field has
};

/// Gives a module the elements of tensors, by name; a tied one under any of its names. All is checked before
/// anything changes. Tensors of a built module are written over in place, so that an optimiser and tied
/// fields see the new elements; a module that was not built gets new ones, on the default backend. Create
/// an optimiser that keeps f32 masters of halves after loading: it does not see later changes. The tensors
/// may be the module's own.
///
/// DType    floats are converted to the field's dtype and rounded once; all else must be what the field is.
/// Errors   invalid_argument, with all names, where a shape or dtype does not fit, with `strict` where a name
///          is missing or unexpected, without where a field that was not built gets nothing; and where a
///          finite number would become infinite.
LoadReport load_state_dict(Module& m, const std::map<std::string, Tensor>& tensors,
                           const LoadOptions& options = {});

/// Writes state_dict(m) as a safetensors file, whole or not at all.
///
/// Errors   io when the disk refuses, and as write_safetensors(); the file that was there stays.
void save(const Module& m, const std::string& path, const std::map<std::string, std::string>& metadata = {});

/// load_state_dict() from a safetensors file, one tensor at a time.
///
/// Errors   as load_state_dict(), and unavailable or corrupt for a file that can't be read or is damaged.
LoadReport load(Module& m, const std::string& path, const LoadOptions& options = {});

}  // namespace weft::nn

#pragma once
#include "lab/kernels/contender.h"
#include "lab/kernels/provider.h"

// The Python whose processes run kernels that are written in Python.
namespace weft::lab {

struct Python {
  std::string program = "python3";  ///< where WEFT_PYTHON names none
  std::string path;                 ///< a folder from which it imports weft before all others; empty: none
  /// Opens a kernel in a process that is Python: the extension weft._weft says how. Null in other processes.
  Result<std::unique_ptr<Kernel>> (*open)(const std::string& name, const seam::CallPtr& call) = nullptr;
};
/// Of this process.
Python& this_python();

/// The command that starts weft.lab.worker, to which options are added.
std::vector<std::string> python_command();

/// What weft.lab.worker says of contenders: the reason why each can't be had; empty: it can. It takes the
/// names that `names` are, in order. Errors: unavailable where there is no Python or it has no weft, with
/// what to do.
Result<std::vector<std::string>> reasons_of(const std::vector<std::string>& names);

}  // namespace weft::lab

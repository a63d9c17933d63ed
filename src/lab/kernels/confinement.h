#pragma once
#include "weft/status.h"

// What the process of a kernel may not do. What this machine can't prevent is left: docs/lab.md says what
// that may be.
namespace weft::lab {

/// For each kernel: no core files, a few thousand open files, and memory of its own up to half of the
/// machine's. Errors: internal, with the system's reason.
Status limit_resources();

/// For kernels of files: the calling process may no longer start processes or programs, look into others,
/// open connections, reach the system's shared memory, or set its priority or its processors; it ends by
/// SIGSYS where it tries. It may write files only below its working directory, where the machine has
/// Landlock. Errors: internal, with the system's reason.
Status confine();

/// The version of Landlock here; 0: there is none.
int landlock_version();

}  // namespace weft::lab

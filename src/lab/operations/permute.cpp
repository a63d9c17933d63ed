#include "lab/kernels/operation_file.h"

namespace weft::lab {

// A transposition: op transpose is written as this one before a kernel sees it.
OperationFile permute_operation() {
  return {.shapes = {"x [m, n]"},
          .make = [](const Shapes& s) { return Sized{{normal(s[0])}, {{"axes", Shape{1, 0}}}, {{{1}, 0}}}; },
          .sizes = {{"the transposition of a matrix of 1,024", {{1024, 1024}}}}};
}

}  // namespace weft::lab

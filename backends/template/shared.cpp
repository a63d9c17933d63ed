#include "weft/shared/primitives.hpp"

// The shared kernels, in a file of their own: they take longer to compile than all the rest, and never
// change.
namespace weft::kernels {

std::vector<backend::KernelRecord> shared() { return weft::shared::primitives(); }

}  // namespace weft::kernels

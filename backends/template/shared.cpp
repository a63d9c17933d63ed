#include "weft/shared/primitives.hpp"

// The shared kernels have their own file: they take longer to compile than everything else, and never change.
namespace weft::kernels {

std::vector<backend::KernelRecord> shared() { return weft::shared::primitives(); }

}  // namespace weft::kernels

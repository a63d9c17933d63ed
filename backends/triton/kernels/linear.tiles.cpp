#include "../products.h"

namespace weft::kernels {

extern const backend::KernelRecord linear_tiles = {.op = "linear",
                                                   .variant = "tiles",
                                                   .reads = {},
                                                   .accepts = cubins::takes_product,
                                                   .launch = cubins::launch_product};

}  // namespace weft::kernels

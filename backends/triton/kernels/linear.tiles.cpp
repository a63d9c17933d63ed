#include "../products.h"

namespace weft::kernels {

extern const backend::KernelRecord linear_tiles = {.op = "linear",
                                                   .variant = "tiles",
                                                   .reads = {},
                                                   .accepts = triton::takes_product,
                                                   .launch = triton::launch_product};

}  // namespace weft::kernels

#include "../products.h"

namespace weft::kernels {

extern const backend::KernelRecord matmul_tiles = {.op = "matmul",
                                                   .variant = "tiles",
                                                   .reads = {"transpose_a", "transpose_b"},
                                                   .accepts = cubins::takes_product,
                                                   .launch = cubins::launch_product};

}  // namespace weft::kernels

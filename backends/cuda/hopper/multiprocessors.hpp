#pragma once

namespace weft::cuda::hopper {

/// The multiprocessors of each GPU, if all are alike and of architecture 9.0; 0 if not.
int multiprocessors();

}  // namespace weft::cuda::hopper

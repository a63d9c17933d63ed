#pragma once
#include "weft/backend.hpp"

// matmul and linear by one kernel, a program a tile of the result.
namespace weft::cubins {

backend::Support takes_product(const backend::OpCall&);
backend::Outcome launch_product(const backend::Launch&);

}  // namespace weft::cubins

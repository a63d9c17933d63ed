#include <stdexcept>

#include "table.hpp"

// Nothing may throw across the seam; it does.
weft_code weft_negotiate(const weft_host*, const weft_backend**, weft_error*) {
  throw std::runtime_error("out of paper");
}

#include "cli/program/backend.h"

#include "seam/registry.h"

namespace weft::cli {

void check_computes(const std::string& backend) {
  const auto* device = value_or_raise(seam::registry().open(backend));
  if (device->capability().dtypes == 0)
    throw Error(
        invalid("backend {} computes nothing, what came of it would mean nothing; choose another", backend));
}

}  // namespace weft::cli

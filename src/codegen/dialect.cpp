#include "codegen/dialect.h"

namespace weft::codegen {
namespace {

constexpr const Dialect* kDialects[] = {&opencl_c, &cuda_cpp};

}  // namespace

const Dialect* find_dialect(std::string_view name) {
  for (const Dialect* d : kDialects)
    if (name == d->name) return d;
  return nullptr;
}

std::string dialect_names() {
  std::string names;
  for (const Dialect* d : kDialects) names += (names.empty() ? "" : ", ") + std::string(d->name);
  return names;
}

}  // namespace weft::codegen

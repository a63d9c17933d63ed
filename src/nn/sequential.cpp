#include "weft/sequential.h"

#include <optional>

namespace weft::nn {

void Sequential::fields(Fields& f) {
  for (size_t i = 0; i < parts_.size(); ++i)
    if (Module* m = parts_[i].module(parts_[i].held)) f.child(std::to_string(i), *m);
}
Tensor Sequential::operator()(const Tensor& x) const {
  const Scope here = scope();
  Tensor y = x;
  for (size_t i = 0; i < parts_.size(); ++i) {
    // Functions that are no modules have no name.
    const std::optional<Scope> place =
        parts_[i].is_module ? std::nullopt : std::optional<Scope>(std::in_place, std::to_string(i));
    y = parts_[i].run(parts_[i].held, y);
  }
  return y;
}

}  // namespace weft::nn

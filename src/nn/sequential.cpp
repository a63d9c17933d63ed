#include "weft/sequential.h"

namespace weft::nn {

void Sequential::fields(Fields& f) {
  for (size_t i = 0; i < parts_.size(); ++i)
    if (Module* m = parts_[i].module(parts_[i].held)) f.child(std::to_string(i), *m);
}
Tensor Sequential::operator()(const Tensor& x) const {
  const Scope here = scope();
  Tensor y = x;
  for (const Part& part : parts_) y = part.run(part.held, y);
  return y;
}

}  // namespace weft::nn

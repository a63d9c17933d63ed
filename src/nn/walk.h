#pragma once
#include <utility>

#include "weft/module.h"

namespace weft::nn {

/// A walk that does one thing with each field.
template <class Visit>
class Walk final : public Fields {
 public:
  Walk(Module& m, DType dtype, Visit visit) : visit_(std::move(visit)) {
    dtype_ = dtype;
    m.fields(*this);
  }

 private:
  void field(Field& f) override { visit_(f); }
  Visit visit_;
};

template <class Visit>
void each_field(Module& m, DType dtype, Visit visit) {
  Walk<Visit> walk(m, dtype, std::move(visit));
}
// fields() hands out its tensors to be changed; who only looks at them changes nothing.
template <class Visit>
void each_field(const Module& m, Visit visit) {
  each_field(const_cast<Module&>(m), DType::f32, std::move(visit));
}

/// Puts `t`, which must have the field's type, in its place under its name; what is frozen stays so.
void put_field(Field& f, Tensor t);

}  // namespace weft::nn

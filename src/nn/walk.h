#pragma once
#include <utility>

#include "weft/module.h"

namespace weft::nn {

/// A walk that applies a function to each field.
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
// fields() is not const, but this walk changes nothing.
template <class Visit>
void each_field(const Module& m, Visit visit) {
  each_field(const_cast<Module&>(m), DType::f32, std::move(visit));
}

/// Replaces a field by `t`, which must have its type; keeps it frozen if it was.
void put_field(Field& f, Tensor t);

}  // namespace weft::nn

#pragma once
#include <deque>

#include "eager/apply.h"
#include "ir/builder.h"

namespace weft::eager {

/// The Builder that runs: a Value is a Tensor. Gradients and decompositions written for a graph so work on
/// tensors, in eager mode and inside a trace alike.
class TensorBuilder final : public ir::Builder {
 public:
  ir::Value wrap(const Tensor& t) {
    if (!t) return {};
    tensors_.push_back(t);
    types_.push_back(t.type());
    return {this, static_cast<int32_t>(tensors_.size()) - 1};
  }
  Tensor tensor(ir::Value v) const { return v ? tensors_[static_cast<size_t>(v.id())] : Tensor(); }
  const TensorType& type(ir::Value v) const override { return types_[static_cast<size_t>(v.id())]; }
  /// Where new tensors of ops without operands go.
  seam::Device* device = nullptr;

 protected:
  ir::ValueList emit(const ir::OpDef& op, ir::Values inputs, std::vector<AttrValue> attrs,
                     std::vector<TensorType> types) override;
  ir::Value placeholder(const TensorType& type) override;

 private:
  std::vector<Tensor> tensors_;
  std::deque<TensorType> types_;  // references stay true while it grows
};

}  // namespace weft::eager

#pragma once
#include <span>
#include <vector>

#include "weft/attr.h"

namespace weft::ir {

class Builder;

/// A value that a Builder made: a node's result in a graph, or a tensor that already holds numbers. Cheap to
/// copy. A default-made Value stands for an absent operand.
class Value {
 public:
  Value() = default;
  Value(Builder* builder, int32_t id) : builder_(builder), id_(id) {}

  explicit operator bool() const { return builder_ != nullptr; }
  Builder& builder() const { return *builder_; }
  int32_t id() const { return id_; }
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  int64_t rank() const { return type().rank(); }
  friend bool operator==(Value a, Value b) { return a.builder_ == b.builder_ && a.id_ == b.id_; }

 private:
  Builder* builder_ = nullptr;
  int32_t id_ = -1;
};

using Values = std::span<const Value>;
using ValueList = std::vector<Value>;

/// Types of operands as a shape rule sees them; an absent operand is null.
class Types {
 public:
  explicit Types(std::span<const TensorType* const> types) : types_(types) {}
  size_t size() const { return types_.size(); }
  bool has(size_t i) const { return i < types_.size() && types_[i]; }
  const TensorType& operator[](size_t i) const { return *types_[i]; }

 private:
  std::span<const TensorType* const> types_;
};

}  // namespace weft::ir

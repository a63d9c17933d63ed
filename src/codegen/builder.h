#pragma once
#include <bit>
#include <span>

#include "codegen/loop_kernel.h"
#include "weft/small_vector.h"

namespace weft::codegen {

using Ids = SmallVector<Id, 8>;

/// Writes a LoopKernel node by node. It checks nothing: `verify` does.
class LoopBuilder {
 public:
  LoopKernel take() { return std::move(kernel_); }

  uint32_t read(DType t) { return buffer({t, false}); }
  uint32_t write(DType t) { return buffer({t, true}); }

  /// A constant of a type; structural numbers only (0, 1, -inf), since a size would tie the text to one
  /// shape.
  Id number(Type t, double value) {
    return node({Op::constant, t, 0, {kNone, kNone, kNone}, bits_of(t, value)});
  }
  Id index(int64_t value) { return bits(Type::index, static_cast<uint64_t>(value)); }
  Id bits(Type t, uint64_t value) { return node({Op::constant, t, 0, {kNone, kNone, kNone}, value}); }
  /// The next scalar argument.
  Id argument(Type t = Type::index) {
    const uint32_t slot = kernel_.scalars;
    kernel_.scalars += scalar_words(t);
    return node({Op::argument, t, slot});
  }
  Ids arguments(size_t n) {
    Ids ids;
    for (size_t i = 0; i < n; ++i) ids.push_back(argument());
    return ids;
  }
  Id item() {
    if (item_ == kNone) item_ = node({Op::item, Type::index});
    return item_;
  }
  /// Makes it a kernel with groups of this many items.
  void groups_of(uint32_t items) { kernel_.group = items; }
  Id local() { return node({Op::local, Type::index}); }
  Id group() { return node({Op::group, Type::index}); }
  Id shared(Type t, uint64_t elements) { return node({Op::shared, t, 0, {kNone, kNone, kNone}, elements}); }
  Id load_shared(Id array, Id at) { return binary(Op::load_shared, array, at); }
  void store_shared(Id array, Id at, Id value) {
    node({Op::store_shared, type(value), 0, {array, at, value}});
  }
  void barrier() { node({Op::barrier, Type::index}); }
  /// An existing scalar argument again.
  Id argument_at(uint32_t slot, Type t = Type::index) { return node({Op::argument, t, slot}); }
  uint32_t scalars() const { return kernel_.scalars; }

  Id parameter(Type t, uint32_t slot) {
    kernel_.fragment = true;
    return node({Op::parameter, t, slot});
  }
  void result(uint32_t slot, Id value) {
    kernel_.fragment = true;
    node({Op::result, type(value), slot, {value, kNone, kNone}});
  }

  Id load(uint32_t buffer, Id at, Id guard = kNone) {
    return node({Op::load, type_of(kernel_.buffers[buffer].dtype), buffer, {at, guard, kNone}});
  }
  void store(uint32_t buffer, Id at, Id value, Id guard = kNone) {
    node({Op::store, type(value), buffer, {at, value, guard}});
  }

  Id accumulator(Id init) { return unary(Op::accumulator, init); }
  void assign(Id accumulator, Id value) { binary(Op::assign, accumulator, value); }
  Id loop(Id extent) { return unary(Op::loop, extent); }
  void end(Id loop) { unary(Op::end, loop); }

  Id unary(Op op, Id a) { return node({op, type(a), 0, {a, kNone, kNone}}); }
  Id binary(Op op, Id a, Id b) { return node({op, type(a), 0, {a, b, kNone}}); }
  Id compare(Op op, Id a, Id b) { return node({op, Type::boolean, 0, {a, b, kNone}}); }
  Id select(Id condition, Id a, Id b) { return node({Op::select, type(a), 0, {condition, a, b}}); }
  Id fma(Id a, Id b, Id c) { return node({Op::fma, type(a), 0, {a, b, c}}); }
  Id cast(Id a, Type to) { return type(a) == to ? a : node({Op::cast, to, 0, {a, kNone, kNone}}); }
  Id philox(Id key, Id counter, Id word) { return node({Op::philox, Type::u32, 0, {key, counter, word}}); }
  Id add(Id a, Id b) { return binary(Op::add, a, b); }
  Id mul(Id a, Id b) { return binary(Op::mul, a, b); }

  /// The coordinates of `flat` in a row-major tensor with these extents.
  Ids coordinates(Id flat, std::span<const Id> extents) {
    Ids at(extents.size(), kNone);
    for (size_t d = extents.size(); d-- > 0;) {
      at[d] = d == 0 ? flat : binary(Op::mod, flat, extents[d]);
      if (d > 0) flat = binary(Op::div, flat, extents[d]);
    }
    return at;
  }
  /// Σ coordinate · stride; index 0 for rank 0.
  Id affine(std::span<const Id> at, std::span<const Id> strides) {
    Id sum = kNone;
    for (size_t d = 0; d < at.size(); ++d) {
      const Id term = mul(at[d], strides[d]);
      sum = sum == kNone ? term : add(sum, term);
    }
    return sum == kNone ? index(0) : sum;
  }
  /// (outer · extent + middle): one step of row-major addressing.
  Id nest(Id outer, Id extent, Id middle) { return add(mul(outer, extent), middle); }

  Type type(Id id) const { return kernel_.nodes[id].type; }

 private:
  uint32_t buffer(Buffer b) {
    kernel_.buffers.push_back(b);
    return static_cast<uint32_t>(kernel_.buffers.size() - 1);
  }
  Id node(Node n) {
    kernel_.nodes.push_back(n);
    return static_cast<Id>(kernel_.nodes.size() - 1);
  }
  static uint64_t bits_of(Type t, double value) {
    if (t == Type::f64) return std::bit_cast<uint64_t>(value);
    if (is_float(t)) return std::bit_cast<uint32_t>(static_cast<float>(value));
    return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
  }

  LoopKernel kernel_;
  Id item_ = kNone;
};

}  // namespace weft::codegen

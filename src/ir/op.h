#pragma once
#include <array>
#include <tuple>

#include "ir/value.h"

// An op's whole meaning: attributes, shape rule, decomposition, gradient, documentation. One file under
// src/ops each.
namespace weft::ir {

using AttrView = std::span<const AttrValue>;  // in the order of the op's fields

enum class AttrKind : uint8_t { integer, real, boolean, dtype, dims, dim, string };

struct AttrSpec {
  const char* name;
  AttrKind kind;
};

/// What holds for an op whatever its operands.
enum class Trait : uint32_t {
  none = 0,
  elementwise = 1,  ///< out[i] depends on in[i] only; operands have equal shapes
  row_wise = 2,     ///< rows of the last axis do not meet
  reduction = 4,    ///< folds axes
  movement = 8,     ///< moves elements, computes nothing
  random = 16,      ///< advances a random state
};
constexpr Trait operator|(Trait a, Trait b) { return Trait(uint32_t(a) | uint32_t(b)); }
constexpr bool has(Trait set, Trait one) { return (uint32_t(set) & uint32_t(one)) != 0; }

/// Which of its operands and results an op's gradient may read: what the tape keeps alive.
namespace saves {
inline constexpr uint32_t nothing = 0;
inline constexpr uint32_t inputs = 0x0000ffff;
inline constexpr uint32_t outputs = 0xffff0000;
constexpr uint32_t input(int i) { return 1u << i; }
constexpr uint32_t output(int i) { return 1u << (16 + i); }
}  // namespace saves

/// Gradients for each input, in order; a default Value where there is none.
using Grads = ValueList;

/// What a gradient rule may ask for. `in` and `out` only as far as the op's `saves` names them. A rule never
/// sees f16 or bf16: `differentiate` gives it f32 in their place, types included.
class GradContext {
 public:
  virtual ~GradContext() = default;
  virtual Value in(int i) const = 0;
  virtual Value out(int i) const = 0;
  virtual Value dout(int i) const = 0;  ///< gradient of output i; zeros when nothing flows back into it
  virtual bool flows(int i) const = 0;  ///< does any gradient flow back into output i?
  virtual bool wants(int i) const = 0;  ///< is the gradient of input i needed at all?
  virtual bool has(int i) const = 0;    ///< is input i there?
  virtual const TensorType& in_type(int i) const = 0;
  virtual const TensorType& out_type(int i) const = 0;
};

inline constexpr size_t kMostOperands = 32;   // of an op: masks of 32 bits say which are there
inline constexpr size_t kMostParameters = 8;  // of the function that the build makes for an op

/// Output `output` is written over input `input`.
struct UpdateRule {
  int8_t output = -1, input = -1;
};

/// An op with its attribute type erased. Made by `define`; never copied.
struct OpDef {
  const char* name = "";
  const char* doc = "";  ///< First line what, then Shape, DType, Numerics, Grad, Errors, Source.
  std::array<const char*, kMostOperands> inputs{};
  std::array<const char*, 8> outputs{};
  uint8_t n_inputs = 0, n_outputs = 0;
  uint8_t n_optional = 0;  ///< how many of the last inputs may be absent
  uint8_t n_public =
      0;  ///< outputs that the public function returns; those after serve gradients and updates
  uint32_t version = 1;
  Trait traits = Trait::none;
  uint32_t saves = 0;
  std::array<UpdateRule, 8> updates{};
  std::span<const AttrSpec> attrs;
  bool differentiable = true;  ///< false: integers, comparisons, updates; a gradient asked of it is an error

  /// How many operands a call lists that is given `given`: absent ones too, up to kMostParameters.
  constexpr size_t listed(size_t given) const {
    return std::clamp(given, std::min<size_t>(n_inputs, kMostParameters), size_t{n_inputs});
  }

  std::vector<AttrValue> (*defaults)() = nullptr;
  Result<std::vector<TensorType>> (*infer)(Types, AttrView) = nullptr;
  void (*settle)(Types, std::vector<AttrValue>&) = nullptr;         ///< null: nothing but axes to settle
  ValueList (*decompose)(Builder&, Values, AttrView) = nullptr;     ///< null: a primitive
  Grads (*grad)(Builder&, const GradContext&, AttrView) = nullptr;  ///< null: none, or by the decomposition

  bool primitive() const { return decompose == nullptr; }
  int update_input(int output) const {
    for (const auto& u : updates)
      if (u.output == output && u.input >= 0) return u.input;
    return -1;
  }
};

/// All ops, in order of their names: the files of src/ops.
std::span<const OpDef* const> all_ops();
/// Null when there is no op of this name.
const OpDef* find_op(std::string_view name);

/// Puts attributes into the one form that kernels see and program files hold. Those named `axis` or `axes`
/// count axes of the first operand, and negative ones become positive; then the op's own `settle` runs. The
/// shape rule must have accepted the call.
void settle_attrs(const OpDef& op, Types inputs, std::vector<AttrValue>& attrs);

/// `axis` made non-negative; an error names the op and the allowed range.
Result<int64_t> resolve_axis(const char* op, int64_t axis, int64_t rank);

// ---- attributes: a struct with its fields named once
// ------------------------------------------------------------

template <class... M>
constexpr auto fields(M... m) {
  return std::tuple(m...);
}

namespace detail {

template <class T>
struct AttrCodec;
template <>
struct AttrCodec<int64_t> {
  static constexpr AttrKind kind = AttrKind::integer;
  static AttrValue store(int64_t v) { return v; }
  static int64_t load(const AttrValue& v) { return std::get<int64_t>(v); }
};
template <>
struct AttrCodec<bool> {
  static constexpr AttrKind kind = AttrKind::boolean;
  static AttrValue store(bool v) { return int64_t{v}; }
  static bool load(const AttrValue& v) { return std::get<int64_t>(v) != 0; }
};
template <>
struct AttrCodec<double> {
  static constexpr AttrKind kind = AttrKind::real;
  static AttrValue store(double v) { return v; }
  static double load(const AttrValue& v) { return std::get<double>(v); }
};
template <>
struct AttrCodec<DType> {
  static constexpr AttrKind kind = AttrKind::dtype;
  static AttrValue store(DType v) { return std::string(weft::name(v)); }
  static DType load(const AttrValue& v) { return *dtype_from_name(std::get<std::string>(v)); }
};
template <>
struct AttrCodec<Shape> {
  static constexpr AttrKind kind = AttrKind::dims;
  static AttrValue store(const Shape& v) { return v; }
  static Shape load(const AttrValue& v) { return std::get<Shape>(v); }
};
template <>
struct AttrCodec<Dim> {
  static constexpr AttrKind kind = AttrKind::dim;
  static AttrValue store(Dim v) { return Shape{v}; }
  static Dim load(const AttrValue& v) { return std::get<Shape>(v)[0]; }
};
template <>
struct AttrCodec<std::string> {
  static constexpr AttrKind kind = AttrKind::string;
  static AttrValue store(const std::string& v) { return v; }
  static std::string load(const AttrValue& v) { return std::get<std::string>(v); }
};

template <class A>
inline constexpr size_t field_count = std::tuple_size_v<decltype(A::fields)> / 2;

template <class A, size_t I>
using FieldType = std::remove_cvref_t<decltype(std::declval<A&>().*std::get<2 * I + 1>(A::fields))>;

template <class A>
inline constexpr auto attr_specs = []<size_t... I>(std::index_sequence<I...>) {
  return std::array<AttrSpec, sizeof...(I)>{
      AttrSpec{std::get<2 * I>(A::fields), AttrCodec<FieldType<A, I>>::kind}...};
}(std::make_index_sequence<field_count<A>>{});

}  // namespace detail

template <class A>
std::vector<AttrValue> to_values(const A& a) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::vector<AttrValue>{
        detail::AttrCodec<detail::FieldType<A, I>>::store(a.*std::get<2 * I + 1>(A::fields))...};
  }(std::make_index_sequence<detail::field_count<A>>{});
}
template <class A>
A from_values(AttrView v) {
  A a;
  [&]<size_t... I>(std::index_sequence<I...>) {
    ((a.*std::get<2 * I + 1>(A::fields) = detail::AttrCodec<detail::FieldType<A, I>>::load(v[I])), ...);
  }(std::make_index_sequence<detail::field_count<A>>{});
  return a;
}

struct NoAttrs {
  static constexpr auto fields = ir::fields();
};

/// What an op file fills in. `infer` gives one type per output; an op with one output may give just that
/// type.
template <class A = NoAttrs>
struct Op {
  const char* name = "";
  const char* doc = "";
  std::array<const char*, kMostOperands> inputs{};
  std::array<const char*, 8> outputs{"y"};
  uint8_t n_optional = 0;
  uint8_t n_public = 1;
  uint32_t version = 1;
  Trait traits = Trait::none;
  uint32_t saves = saves::nothing;
  std::array<UpdateRule, 8> updates{};
  bool differentiable = true;
  Result<TensorType> (*infer)(Types, const A&) = nullptr;
  Result<std::vector<TensorType>> (*infer_many)(Types, const A&) = nullptr;
  A (*settle)(Types, const A&) = nullptr;  ///< short forms spelled out, as reshape's -1; the axes are settled
  Value (*decompose)(Builder&, Values, const A&) = nullptr;
  ValueList (*decompose_many)(Builder&, Values, const A&) = nullptr;
  Grads (*grad)(Builder&, const GradContext&, const A&) = nullptr;
};

namespace detail {

template <const auto& S, class A>
struct Erased {
  static std::vector<AttrValue> defaults() { return to_values(A{}); }
  static Result<std::vector<TensorType>> infer(Types in, AttrView v) {
    if constexpr (S.infer_many != nullptr) {
      return S.infer_many(in, from_values<A>(v));
    } else {
      auto one = S.infer(in, from_values<A>(v));
      if (!one.ok()) return one.take_status();
      return std::vector<TensorType>{std::move(one).value()};
    }
  }
  static void settle(Types in, std::vector<AttrValue>& v) { v = to_values(S.settle(in, from_values<A>(v))); }
  static ValueList decompose(Builder& b, Values in, AttrView v) {
    if constexpr (S.decompose_many != nullptr) {
      return S.decompose_many(b, in, from_values<A>(v));
    } else {
      return {S.decompose(b, in, from_values<A>(v))};
    }
  }
  static Grads grad(Builder& b, const GradContext& ctx, AttrView v) {
    return S.grad(b, ctx, from_values<A>(v));
  }
};

template <class A>
A attrs_of(const Op<A>&);

constexpr uint8_t count_names(std::span<const char* const> names) {
  uint8_t n = 0;
  for (const char* s : names)
    if (s) ++n;
  return n;
}

}  // namespace detail

/// The op that a file defines: `extern constinit const ir::OpDef softmax = ir::define<spec>();`
template <const auto& S>
constexpr OpDef define() {
  using A = decltype(detail::attrs_of(S));
  using E = detail::Erased<S, A>;
  OpDef d;
  d.name = S.name, d.doc = S.doc, d.inputs = S.inputs, d.outputs = S.outputs;
  d.n_inputs = detail::count_names(S.inputs), d.n_outputs = detail::count_names(S.outputs);
  d.n_optional = S.n_optional, d.n_public = S.n_public, d.version = S.version;
  d.traits = S.traits, d.saves = S.saves, d.updates = S.updates, d.differentiable = S.differentiable;
  d.attrs = detail::attr_specs<A>;
  d.defaults = E::defaults;
  d.infer = E::infer;
  if constexpr (S.settle != nullptr) d.settle = E::settle;
  if constexpr (S.decompose != nullptr || S.decompose_many != nullptr) d.decompose = E::decompose;
  if constexpr (S.grad != nullptr) d.grad = E::grad;
  return d;
}

}  // namespace weft::ir

#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "weft/dtype.h"

// A loop kernel: what one work item does. It is a list of typed values, each defined before it is used, with
// loops opened and closed in the list. Sizes never stand in it: they are int scalar arguments, so one kernel
// serves every shape of its rank.
//
// Without groups, items know nothing of each other. With them, the items of a group share arrays, and meet at
// barriers: what one item stored into a shared array before a barrier, the others may load after it.
namespace weft::codegen {

/// The type of a value: an element type, or an index (a signed 32-bit integer that addresses elements).
/// Values of floats of 16 and 8 bits live in f32 registers and are rounded to their type after every
/// operation.
enum class Type : uint8_t { f64, f32, f16, bf16, i32, i64, u32, u64, boolean, f8e4m3, f8e5m2, i8, u8, index };
inline constexpr int kTypeCount = 14;

constexpr Type type_of(DType t) { return static_cast<Type>(t); }
/// The element type. Call only for types other than index.
constexpr DType dtype_of(Type t) { return static_cast<DType>(t); }
constexpr const char* name(Type t) { return t == Type::index ? "index" : name(dtype_of(t)); }
constexpr bool is_float(Type t) { return t != Type::index && is_float(dtype_of(t)); }
/// The accumulator type for sums of such values.
constexpr Type accumulator_of(Type t) { return t == Type::f16 || t == Type::bf16 ? Type::f32 : t; }
/// The number of int scalars that hold an argument of this type.
constexpr uint32_t scalar_words(Type t) { return t == Type::f64 || t == Type::i64 || t == Type::u64 ? 2 : 1; }

enum class Op : uint8_t {
  constant,      ///< `bits`: the IEEE bits (narrower floats: those of an f32) or the integer.
  argument,      ///< Scalars from `slot` on; 64-bit types take two, low word first. Narrower floats come as
                 ///< f32 bits.
  item,          ///< The number of this work item, in a kernel without groups.
  local,         ///< The number of this work item in its group.
  group,         ///< The number of this group.
  parameter,     ///< A value handed in by a surrounding text, `in<slot>`. Only in fragments.
  load,          ///< buffer `slot` at in[0]; zero, and no access, where the optional guard in[1] is false.
  store,         ///< buffer `slot` at in[0] = in[1]; nothing where the optional guard in[2] is false.
  shared,        ///< An array of `bits` elements that the items of a group share. Outside of loops.
  load_shared,   ///< shared array in[0] at in[1].
  store_shared,  ///< shared array in[0] at in[1] = in[2].
  barrier,       ///< All items of the group get here before one goes on.
  result,        ///< in[0] handed to a surrounding text as `out<slot>`. Only in fragments.
  accumulator,   ///< A variable that begins as in[0]; reading it gives what was assigned last.
  assign,        ///< accumulator in[0] = in[1].
  loop,          ///< Opens a loop; its value runs over [0, in[0]).
  end,           ///< Closes loop in[0], the innermost open one.
  add,
  sub,
  mul,
  div,  // integers wrap; x / 0 = 0 for integers
  mod,  ///< Remainder with the sign of the divisor; x mod 0 = 0 for integers. Indices are never negative.
  max,
  min,  // NaN if either side is
  power,
  bit_and,
  bit_or,
  bit_xor,      // integers and boolean
  shift_left,   ///< Integers. An amount outside [0, bits) shifts everything out.
  shift_right,  ///< Copies of the sign come in from the left.
  less,
  equal,  // boolean
  both,   ///< Boolean and.
  exp,
  log,
  log1p,
  sqrt,
  sin,
  cos,
  tanh,
  erf,
  floor,
  round,   ///< To nearest, ties to even.
  select,  ///< in[0] ? in[1] : in[2].
  fma,     ///< in[0] * in[1] + in[2], rounded once. f32 and f64.
  cast,    ///< Float to integer truncates and saturates, NaN gives 0; to boolean: x != 0; integers wrap.
  philox,  ///< Word in[2] of Philox4x32-10 with u64 key in[0] and u64 counter in[1]; u32.
};
inline constexpr int kOpCount = static_cast<int>(Op::philox) + 1;
const char* name(Op op);

using Id = uint32_t;
inline constexpr Id kNone = UINT32_MAX;

struct Node {
  Op op;
  Type type;  ///< Of the value; of what is stored by stores, `result` and `assign`; index for `end`,
              ///< `barrier`.
  uint32_t slot = 0;
  std::array<Id, 3> in{kNone, kNone, kNone};
  uint64_t bits = 0;
};

struct Buffer {
  DType dtype;
  bool written;
};

/// Scalar 0 is always the number of work items, and items beyond it do nothing; with groups, the number of
/// groups.
struct LoopKernel {
  std::vector<Buffer> buffers;
  std::vector<Node> nodes;  ///< The id of a value is its place here.
  uint32_t scalars = 1;
  uint32_t group = 0;  ///< Items in a group; 0: a kernel without groups.
  bool fragment =
      false;  ///< Statements for another text's hole: parameters and results, no buffers, no item.
};

}  // namespace weft::codegen

#pragma once
#include <span>
#include <string>
#include <string_view>

#include "codegen/loop_kernel.h"

// A dialect is a table of how each operation is spelled in one kernel language. The renderer knows no
// language.
namespace weft::codegen {

using TypeSet = uint32_t;  ///< Bit k: the type with number k.
constexpr TypeSet set_of(Type t) { return TypeSet{1} << static_cast<int>(t); }
template <class... T>
constexpr TypeSet set_of(Type t, T... more) {
  return set_of(t) | set_of(more...);
}
inline constexpr TypeSet kAnyType = (TypeSet{1} << kTypeCount) - 1;

/// The spelling of an operation; the first rule that matches is taken. In `text`:
///   $0 $1 $2  the operands              $t  the register type of the value
///   $b        the buffer                $s $S  the scalar, and the one after it
///   $x        the bits of a constant, as 0x…   $d  the same as a signed decimal
///   $[ $]     around a float expression: rounded to the type of the value, where its register is wider
struct Rule {
  Op op;
  TypeSet result;
  TypeSet operand;  ///< Of the type of $0; kAnyType where there is none.
  const char* text;
  const char* helpers = "";  ///< Names of helpers that it calls, divided by spaces.
};

/// A function or directive that goes before the kernel if something needs it; emitted in table order.
struct Helper {
  const char* name;
  const char* text;
};

struct Dialect {
  const char* name;                      ///< As weft_capability.dialect says it.
  const char* registers[kTypeCount];     ///< Type of a value; null: the dialect has none.
  const char* storage[kDTypeCount];      ///< Element of a buffer; null: cannot be stored.
  const char* type_helpers[kTypeCount];  ///< Helpers that a mere use of the type needs, or null.
  const char* rounding[kTypeCount];      ///< The helper that $[ calls for the type; null: nothing to do.
  const char* prelude;
  const char* helper;       ///< Goes before each helper.
  const char* open;         ///< $n: the entry's name. Parameters follow.
  const char* open_groups;  ///< The same for a kernel of groups of $g items.
  const char* read_buffer;  ///< $t: element type, $b: name
  const char* write_buffer;
  const char* offset;  ///< $s: name; 64 bits
  const char* scalar;  ///< $s: name
  const char*
      close;  ///< Ends the parameters; $a: all `advance`; skips items beyond $s. $u: `unroll`, or nothing.
  const char* close_groups;    ///< Ends the parameters, $a.
  const char* unroll;          ///< Goes before a loop over items whose body is short.
  const char* end;             ///< Ends what `close` began.
  const char* advance;         ///< $b begins at element $o from here on.
  const char* constant_value;  ///< $t $v $e: a value that never changes
  const char* variable;        ///< $t $v $e: a value that is assigned to
  const char* loop;            ///< $v runs over [0, $0)
  const char* shared;          ///< $t $v $e: an array of $e elements that a group shares
  const char* guarded;         ///< $0 $e: the statement $e where $0 holds
  uint32_t group_items;        ///< A group may have so many items; 0: there are no groups.
  uint32_t shared_bytes;       ///< and share so many bytes.
  std::span<const Rule> rules;
  std::span<const Helper> helpers;
};

/// The dialect with this name, or null.
const Dialect* find_dialect(std::string_view name);
/// The names of all dialects, for error texts.
std::string dialect_names();

extern const Dialect opencl_c;
extern const Dialect cuda_cpp;
extern const Dialect cuda_cpp;

}  // namespace weft::codegen

#include "codegen/verify.h"

#include <algorithm>

namespace weft::codegen {
namespace {

constexpr const char* kNames[kOpCount] = {
    "constant", "argument",    "item",         "local",   "group",      "parameter",   "load",   "store",
    "shared",   "load_shared", "store_shared", "barrier", "result",     "accumulator", "assign", "loop",
    "end",      "add",         "sub",          "mul",     "div",        "mod",         "max",    "min",
    "power",    "bit_and",     "bit_or",       "bit_xor", "shift_left", "shift_right", "less",   "equal",
    "both",     "exp",         "log",          "log1p",   "sqrt",       "sin",         "cos",    "tanh",
    "erf",      "floor",       "round",        "select",  "fma",        "cast",        "philox",
};

/// From a float to a float of the same type.
constexpr bool is_function(Op op) { return op >= Op::exp && op <= Op::round; }

/// Operands that an operation must have, in order.
constexpr int operand_count(Op op) {
  switch (op) {
    case Op::constant:
    case Op::argument:
    case Op::item:
    case Op::local:
    case Op::group:
    case Op::shared:
    case Op::barrier:
    case Op::parameter: return 0;
    case Op::load:  // and a guard, which is optional
    case Op::result:
    case Op::accumulator:
    case Op::loop:
    case Op::end:
    case Op::cast: return 1;
    case Op::store_shared:
    case Op::select:
    case Op::fma:
    case Op::philox: return 3;
    default: return is_function(op) ? 1 : 2;
  }
}

constexpr bool has_value(Op op) {
  return op != Op::store && op != Op::result && op != Op::assign && op != Op::end && op != Op::barrier &&
         op != Op::store_shared;
}
constexpr bool is_number(Type t) { return t == Type::index || (t < Type::boolean); }
constexpr bool is_integer(Type t) { return t < Type::boolean && !is_float(t); }

class Verifier {
 public:
  explicit Verifier(const LoopKernel& k)
      : k_(k), depth_(k.nodes.size(), 0), uniform_(k.nodes.size(), false) {}

  Status run() {
    for (Id id = 0; id < k_.nodes.size(); ++id) {
      const Node& n = k_.nodes[id];
      WEFT_CHECK(operands(id, n));
      WEFT_CHECK(types(id, n));
      WEFT_CHECK(places(id, n));
      WEFT_CHECK(scopes(id, n));
      WEFT_CHECK(groups(id, n));
    }
    if (!open_.empty()) return bad(open_.back(), "the loop is never closed");
    if (!effect_) return invalid("loop kernel: nothing is stored");
    return {};
  }

 private:
  template <class... A>
  Status bad(Id id, fmt::format_string<A...> text, A&&... args) const {
    return invalid("loop kernel: %{} {}: {}", id, name(k_.nodes[id].op),
                   fmt::format(text, std::forward<A>(args)...));
  }
  Type in(const Node& n, int i) const { return k_.nodes[n.in[i]].type; }

  /// Every operand exists, comes earlier, is a value, and its loop is still open.
  Status operands(Id id, const Node& n) const {
    const int count = operand_count(n.op);
    for (int i = 0; i < 3; ++i) {
      const Id a = n.in[i];
      const bool optional = (n.op == Op::load && i == 1) || (n.op == Op::store && i == 2);
      if (a == kNone && (i >= count || optional)) continue;
      if (a == kNone) return bad(id, "operand {} is missing, wanted {}", i, count);
      if (i >= count && !optional) return bad(id, "got operand {}, wanted {}", i, count);
      if (a >= id) return bad(id, "operand {} is %{}, which is not defined before it", i, a);
      if (!has_value(k_.nodes[a].op))
        return bad(id, "operand {} is %{}, a {} without a value", i, a, name(k_.nodes[a].op));
      if (depth_[a] == kClosed)
        return bad(id, "operand {} is %{}, used outside the loop that defines it", i, a);
      const bool takes_array = i == 0 && (n.op == Op::load_shared || n.op == Op::store_shared);
      if (takes_array != (k_.nodes[a].op == Op::shared))
        return bad(id, "operand {} is %{}, {} shared array", i, a, takes_array ? "which is no" : "a");
    }
    return {};
  }

  Status types(Id id, const Node& n) const {
    switch (n.op) {
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::div:
      case Op::mod:
      case Op::max:
      case Op::min:
        if (!is_number(n.type)) return bad(id, "no arithmetic on {}", name(n.type));
        return same(id, n, 0, 2);
      case Op::power:
        if (!is_float(n.type)) return bad(id, "wanted a float, got {}", name(n.type));
        return same(id, n, 0, 2);
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor:
        if (!is_integer(n.type) && n.type != Type::boolean) return bad(id, "no bits of {}", name(n.type));
        return same(id, n, 0, 2);
      case Op::shift_left:
      case Op::shift_right:
        if (!is_integer(n.type)) return bad(id, "wanted an integer, got {}", name(n.type));
        return same(id, n, 0, 2);
      case Op::less:
      case Op::equal:
        if (in(n, 0) != in(n, 1)) return bad(id, "compares {} with {}", name(in(n, 0)), name(in(n, 1)));
        return wants(id, n.type, Type::boolean);
      case Op::both: WEFT_CHECK(wants(id, n.type, Type::boolean)); return same(id, n, 0, 2);
      case Op::select: WEFT_CHECK(wants(id, in(n, 0), Type::boolean)); return same(id, n, 1, 3);
      case Op::philox:
        WEFT_CHECK(wants(id, in(n, 0), Type::u64));
        WEFT_CHECK(wants(id, in(n, 1), Type::u64));
        WEFT_CHECK(wants(id, in(n, 2), Type::index));
        return wants(id, n.type, Type::u32);
      case Op::fma:
        if (n.type != Type::f32 && n.type != Type::f64)
          return bad(id, "wanted f32 or f64, got {}", name(n.type));
        return same(id, n, 0, 3);
      case Op::item:
      case Op::local:
      case Op::group:
      case Op::barrier: return wants(id, n.type, Type::index);
      case Op::load_shared: WEFT_CHECK(wants(id, in(n, 1), Type::index)); return same(id, n, 0, 1);
      case Op::store_shared:
        WEFT_CHECK(wants(id, in(n, 1), Type::index));
        WEFT_CHECK(same(id, n, 0, 1));
        return same(id, n, 2, 3);
      case Op::loop:
      case Op::end: WEFT_CHECK(wants(id, n.type, Type::index)); return same(id, n, 0, 1);
      case Op::accumulator:
      case Op::result: return same(id, n, 0, 1);
      case Op::assign: return same(id, n, 0, 2);
      default: break;
    }
    if (!is_function(n.op)) return {};
    if (!is_float(n.type)) return bad(id, "wanted a float, got {}", name(n.type));
    return same(id, n, 0, 1);
  }

  /// Buffers and scalars are there, and of the type that the node gives them.
  Status places(Id id, const Node& n) const {
    if (n.op == Op::argument && n.slot + scalar_words(n.type) > k_.scalars)
      return bad(id, "reads scalar {}, got {} scalars", n.slot + scalar_words(n.type) - 1, k_.scalars);
    if (k_.fragment && (n.op == Op::item || n.op == Op::load || n.op == Op::store || n.op == Op::argument))
      return bad(id, "not allowed in a fragment");
    if (!k_.fragment && (n.op == Op::parameter || n.op == Op::result))
      return bad(id, "only allowed in a fragment");
    if (n.op != Op::load && n.op != Op::store) return {};
    if (n.slot >= k_.buffers.size()) return bad(id, "buffer {} of {}", n.slot, k_.buffers.size());
    const Buffer& b = k_.buffers[n.slot];
    WEFT_CHECK(wants(id, in(n, 0), Type::index));
    WEFT_CHECK(wants(id, n.type, type_of(b.dtype)));
    if (n.op == Op::store) {
      if (!b.written) return bad(id, "buffer {} is read only", n.slot);
      if (n.in[2] != kNone) WEFT_CHECK(wants(id, in(n, 2), Type::boolean));
      return wants(id, in(n, 1), n.type);
    }
    return n.in[1] == kNone ? Status() : wants(id, in(n, 1), Type::boolean);
  }

  /// Opens and closes loops; values defined inside end with it.
  Status scopes(Id id, const Node& n) {
    if (n.op == Op::store || n.op == Op::result) effect_ = true;
    if (n.op == Op::assign) {
      if (k_.nodes[n.in[0]].op != Op::accumulator) return bad(id, "%{} is no accumulator", n.in[0]);
    }
    if (n.op == Op::loop) open_.push_back(id);
    if (n.op == Op::end) {
      if (open_.empty() || open_.back() != n.in[0])
        return bad(id, "%{} is not the innermost open loop", n.in[0]);
      for (Id inner = open_.back(); inner < id; ++inner) depth_[inner] = kClosed;
      open_.pop_back();
    }
    depth_[id] = static_cast<int>(open_.size());
    return {};
  }

  /// All items of a group must reach a barrier: a loop around one runs equally often for each item.
  Status groups(Id id, const Node& n) {
    const bool of_groups =
        n.op == Op::local || n.op == Op::group || n.op == Op::shared || n.op == Op::barrier;
    if (of_groups && k_.group == 0) return bad(id, "only allowed in a kernel of groups");
    if (n.op == Op::item && k_.group > 0) return bad(id, "not allowed in a kernel of groups");
    if (n.op == Op::shared && !open_.empty()) return bad(id, "not allowed in a loop");
    if (n.op == Op::shared && n.bits == 0) return bad(id, "has no elements");
    if (n.op == Op::barrier)
      for (const Id loop : open_)
        if (!uniform_[k_.nodes[loop].in[0]])
          return bad(id, "stands in loop %{}, which items may run differently often", loop);
    const bool varies = n.op == Op::local || n.op == Op::item || n.op == Op::load ||
                        n.op == Op::load_shared || n.op == Op::accumulator;
    uniform_[id] =
        !varies && std::all_of(n.in.begin(), n.in.end(), [&](Id a) { return a == kNone || uniform_[a]; });
    return {};
  }

  Status wants(Id id, Type got, Type wanted) const {
    return got == wanted ? Status() : bad(id, "got {}, wanted {}", name(got), name(wanted));
  }
  Status same(Id id, const Node& n, int first, int last) const {
    for (int i = first; i < last; ++i)
      if (in(n, i) != n.type) return bad(id, "operand {} is {}, wanted {}", i, name(in(n, i)), name(n.type));
    return {};
  }

  static constexpr int kClosed = -1;
  const LoopKernel& k_;
  std::vector<int> depth_;
  std::vector<bool> uniform_;  // known to be the same for every item of a group
  std::vector<Id> open_;
  bool effect_ = false;
};

}  // namespace

const char* name(Op op) { return kNames[static_cast<int>(op)]; }

Status verify(const LoopKernel& kernel) { return Verifier(kernel).run(); }

}  // namespace weft::codegen

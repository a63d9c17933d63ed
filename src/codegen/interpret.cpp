#include "codegen/interpret.h"

#include <cstring>
#include <map>

#include "codegen/numbers.h"

namespace weft::codegen {
namespace {

/// A float type uses `f`, every other one `i` (u64 by its bits).
struct Value {
  double f = 0;
  int64_t i = 0;
};

/// `i` as a value of integer type `t`: wrapped to its width.
int64_t wrap(Type t, int64_t i) {
  switch (t) {
    case Type::index:
    case Type::i32: return static_cast<int32_t>(i);
    case Type::u32: return static_cast<uint32_t>(i);
    case Type::i8: return static_cast<int8_t>(i);
    case Type::u8: return static_cast<uint8_t>(i);
    case Type::boolean: return i != 0;
    default: return i;
  }
}
double round_as(Type t, double x) {
  switch (t) {
    case Type::f16: return round_f16(x);
    case Type::bf16: return round_bf16(x);
    case Type::f8e4m3: return round_e4m3(x);
    case Type::f8e5m2: return round_e5m2(x);
    default: return x;
  }
}

Value cast(Type to, Type from, Value v) {
  if (is_float(to)) {
    if (is_float(from)) return {round_as(to, v.f)};
    return {round_as(
        to, from == Type::u64 ? static_cast<double>(static_cast<uint64_t>(v.i)) : static_cast<double>(v.i))};
  }
  if (!is_float(from)) return {0, wrap(to, v.i)};
  switch (to) {
    case Type::boolean: return {0, v.f != 0};
    case Type::i32:
    case Type::index: return {0, saturate<int32_t>(v.f)};
    case Type::u32: return {0, saturate<uint32_t>(v.f)};
    case Type::i8: return {0, saturate<int8_t>(v.f)};
    case Type::u8: return {0, saturate<uint8_t>(v.f)};
    case Type::u64: return {0, static_cast<int64_t>(saturate<uint64_t>(v.f))};
    default: return {0, saturate<int64_t>(v.f)};
  }
}

int64_t divide(Type t, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (t == Type::u64) return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  return b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
}
bool less(Type t, Value a, Value b) {
  if (is_float(t)) return a.f < b.f;
  return t == Type::u64 ? static_cast<uint64_t>(a.i) < static_cast<uint64_t>(b.i) : a.i < b.i;
}

int64_t modulo(Type t, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (t == Type::u64) return static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
  const int64_t r = b == -1 ? 0 : a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
double modulo(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double arithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::mod: return modulo(a, b);
    case Op::power: return std::pow(a, b);
    default: return a / b;
  }
}
int64_t arithmetic(Op op, Type t, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const bool is_signed = t == Type::i32 || t == Type::i64;
  switch (op) {
    case Op::add: return static_cast<int64_t>(x + y);
    case Op::sub: return static_cast<int64_t>(x - y);
    case Op::mul: return static_cast<int64_t>(x * y);
    case Op::mod: return modulo(t, a, b);
    case Op::bit_and: return a & b;
    case Op::bit_or: return a | b;
    case Op::bit_xor: return a ^ b;
    // Narrow integers are held in wide ones, so overflow of 64 bits is overflow of theirs.
    case Op::shift_left: return y < 64 ? static_cast<int64_t>(x << y) : 0;
    case Op::shift_right:
      return is_signed ? a >> std::min<uint64_t>(y, 63) : y < 64 ? static_cast<int64_t>(x >> y) : 0;
    default: return divide(t, a, b);
  }
}
Value arithmetic(Op op, Type t, Value a, Value b) {
  const bool keeps = is_float(t) && std::isnan(a.f);
  if (op == Op::max) return less(t, b, a) || keeps ? a : b;
  if (op == Op::min) return less(t, a, b) || keeps ? a : b;
  if (is_float(t)) return {round_as(t, arithmetic(op, a.f, b.f))};
  return {0, wrap(t, arithmetic(op, t, a.i, b.i))};
}

double function(Op op, double x) {
  switch (op) {
    case Op::exp: return std::exp(x);
    case Op::log: return std::log(x);
    case Op::log1p: return std::log1p(x);
    case Op::sqrt: return std::sqrt(x);
    case Op::sin: return std::sin(x);
    case Op::cos: return std::cos(x);
    case Op::tanh: return std::tanh(x);
    case Op::erf: return std::erf(x);
    case Op::floor: return std::floor(x);
    default: return std::nearbyint(x);
  }
}

Value from_bits(Type t, uint64_t bits) {
  if (t == Type::f64) return {std::bit_cast<double>(bits)};
  if (is_float(t)) return {std::bit_cast<float>(static_cast<uint32_t>(bits))};
  return {0, wrap(t, static_cast<int64_t>(bits))};
}

Value read(DType t, const void* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, byte_size(t));
  if (t == DType::f16) return {from_f16(static_cast<uint16_t>(bits))};
  if (t == DType::bf16) return {from_bf16(static_cast<uint16_t>(bits))};
  if (t == DType::f8e4m3) return {from_e4m3(static_cast<uint8_t>(bits))};
  if (t == DType::f8e5m2) return {from_e5m2(static_cast<uint8_t>(bits))};
  return from_bits(type_of(t), bits);
}
void write(DType t, void* at, Value v) {
  uint64_t bits = static_cast<uint64_t>(v.i);
  if (t == DType::f64) bits = std::bit_cast<uint64_t>(v.f);
  if (t == DType::f32) bits = std::bit_cast<uint32_t>(static_cast<float>(v.f));
  if (t == DType::f16) bits = to_f16(v.f);
  if (t == DType::bf16) bits = to_bf16(v.f);
  if (t == DType::f8e4m3) bits = to_e4m3(v.f);
  if (t == DType::f8e5m2) bits = to_e5m2(v.f);
  std::memcpy(at, &bits, byte_size(t));
}

class Interpreter {
 public:
  Interpreter(const LoopKernel& k, std::span<const HostBuffer> buffers, std::span<const int32_t> scalars)
      : k_(k),
        buffers_(buffers),
        scalars_(scalars),
        all_(k.nodes.size() * std::max(k.group, 1u)),
        values_(all_.data()) {
    ends_.resize(k.nodes.size());
    meets_.resize(k.nodes.size());
    for (Id id = 0; id < k.nodes.size(); ++id) {
      const Node& n = k.nodes[id];
      if (n.op == Op::end) ends_[n.in[0]] = id;
      if (n.op == Op::barrier) meets_[id] = true;
      if (n.op == Op::shared) shared_[id].resize(n.bits);
    }
    for (Id id = 0; id < k.nodes.size(); ++id)
      for (Id inner = id; k.nodes[id].op == Op::loop && inner < ends_[id]; ++inner)
        if (meets_[inner]) meets_[id] = true;
  }

  Status run() {
    const Id end = static_cast<Id>(k_.nodes.size());
    if (k_.group == 0) {
      for (item_ = 0; item_ < scalars_[0]; ++item_) WEFT_CHECK(range(0, end));
      return {};
    }
    for (group_ = 0; group_ < scalars_[0]; ++group_) {
      for (auto& array : shared_) array.second.assign(array.second.size(), {});
      WEFT_CHECK(together(0, end));
    }
    return {};
  }

 private:
  /// An element of a shared array and its last users; barriers separate phases.
  struct Shared {
    Value value;
    int64_t written = -1, read = -1;         ///< the phase
    int64_t writer = kMany, reader = kMany;  ///< the item
  };
  static constexpr int64_t kMany = -1;

  void become(int64_t item) {
    item_ = item;
    values_ = all_.data() + static_cast<size_t>(item) * k_.nodes.size();
  }
  /// Runs the items of a group, each up to the next barrier.
  Status together(Id begin, Id end) {
    for (Id id = begin; id < end; ++id) {
      Id stop = id;
      while (stop < end && !meets_[stop]) stop = k_.nodes[stop].op == Op::loop ? ends_[stop] + 1 : stop + 1;
      for (int64_t i = 0; i < k_.group; ++i) {
        become(i);
        WEFT_CHECK(range(id, stop));
      }
      id = stop;
      ++phase_;
      if (stop == end || k_.nodes[stop].op == Op::barrier) continue;
      const int64_t extent = value(k_.nodes[stop], 0).i;
      for (int64_t n = 0; n < extent; ++n) {
        for (int64_t i = 0; i < k_.group; ++i) become(i), values_[stop].i = n;
        WEFT_CHECK(together(stop + 1, ends_[stop]));
      }
      id = ends_[stop];
    }
    return {};
  }

  Status use_shared(Id id, const Node& n) {
    auto& array = shared_.at(n.in[0]);
    const int64_t at = value(n, 1).i;
    if (at < 0 || at >= static_cast<int64_t>(array.size()))
      return fault(id, fmt::format("element {} of a shared array of {}", at, array.size()));
    Shared& e = array[static_cast<size_t>(at)];
    const bool written = e.written == phase_ && e.writer != item_;
    if (n.op == Op::load_shared) {
      if (e.written < 0) return fault(id, fmt::format("element {}, which nobody has written", at));
      if (written) return fault(id, fmt::format("element {}, which item {} has just written", at, e.writer));
      e.reader = e.read == phase_ && e.reader != item_ ? kMany : item_;
      e.read = phase_;
      values_[id] = e.value;
      return {};
    }
    if (written || (e.read == phase_ && e.reader != item_))
      return fault(id, fmt::format("element {}, which another item uses before the next barrier", at));
    e = {value(n, 2), phase_, e.read, item_, e.reader};
    return {};
  }

  Status range(Id begin, Id end) {
    for (Id id = begin; id < end; ++id) {
      const Node& n = k_.nodes[id];
      if (n.op == Op::loop) {
        const int64_t extent = value(n, 0).i;
        for (int64_t i = 0; i < extent; ++i) {
          values_[id].i = i;
          WEFT_CHECK(range(id + 1, ends_[id]));
        }
        id = ends_[id];
      } else {
        WEFT_CHECK(step(id, n));
      }
    }
    return {};
  }

  Status step(Id id, const Node& n) {
    Value& v = values_[id];
    switch (n.op) {
      case Op::constant: v = from_bits(n.type, n.bits); return {};
      case Op::argument: v = from_bits(n.type, words(n)); return {};
      case Op::item:
      case Op::local: v.i = item_; return {};
      case Op::group: v.i = group_; return {};
      case Op::shared: return {};
      case Op::load_shared:
      case Op::store_shared: return use_shared(id, n);
      case Op::fma: v.f = round_as(n.type, std::fma(value(n, 0).f, value(n, 1).f, value(n, 2).f)); return {};
      case Op::load:
      case Op::store: return access(id, n);
      case Op::accumulator: v = value(n, 0); return {};
      case Op::assign: values_[n.in[0]] = value(n, 1); return {};
      case Op::less: v.i = less(type(n), value(n, 0), value(n, 1)); return {};
      case Op::equal:
        v.i = is_float(type(n)) ? value(n, 0).f == value(n, 1).f : value(n, 0).i == value(n, 1).i;
        return {};
      case Op::both: v.i = value(n, 0).i && value(n, 1).i; return {};
      case Op::exp:
      case Op::log:
      case Op::log1p:
      case Op::sqrt:
      case Op::sin:
      case Op::cos:
      case Op::tanh:
      case Op::erf:
      case Op::floor:
      case Op::round: v.f = round_as(n.type, function(n.op, value(n, 0).f)); return {};
      case Op::select: v = value(n, value(n, 0).i ? 1 : 2); return {};
      case Op::cast: v = cast(n.type, type(n), value(n, 0)); return {};
      case Op::philox: v.i = philox(value(n, 0).i, value(n, 1).i)[value(n, 2).i & 3]; return {};
      default: break;
    }
    if ((n.op == Op::div || n.op == Op::mod) && n.type == Type::index && value(n, 1).i == 0)
      return fault(id, "an index divided by zero");
    v = arithmetic(n.op, n.type, value(n, 0), value(n, 1));
    return {};
  }

  Status access(Id id, const Node& n) {
    if (n.op == Op::load && n.in[1] != kNone && !value(n, 1).i) return values_[id] = {}, Status();
    if (n.op == Op::store && n.in[2] != kNone && !value(n, 2).i) return {};
    const int64_t at = value(n, 0).i;
    const HostBuffer& b = buffers_[n.slot];
    if (at < 0 || at >= b.elements)
      return fault(id, fmt::format("element {} of buffer {}, which has {}", at, n.slot, b.elements));
    const DType t = k_.buffers[n.slot].dtype;
    char* place = static_cast<char*>(b.data) + at * static_cast<int64_t>(byte_size(t));
    if (n.op == Op::load)
      values_[id] = read(t, place);
    else
      write(t, place, value(n, 1));
    return {};
  }

  uint64_t words(const Node& n) const {
    const uint64_t low = static_cast<uint32_t>(scalars_[n.slot]);
    return scalar_words(n.type) == 1
               ? low
               : low | static_cast<uint64_t>(static_cast<uint32_t>(scalars_[n.slot + 1])) << 32;
  }
  Status fault(Id id, std::string_view what) const {
    return invalid("loop kernel: {}item {}: %{} {}: {}", k_.group ? fmt::format("group {}, ", group_) : "",
                   item_, id, name(k_.nodes[id].op), what);
  }
  Value value(const Node& n, int i) const { return values_[n.in[i]]; }
  Type type(const Node& n) const { return k_.nodes[n.in[0]].type; }

  const LoopKernel& k_;
  std::span<const HostBuffer> buffers_;
  std::span<const int32_t> scalars_;
  std::vector<Value> all_;  // of all items, one after the other
  Value* values_;           // of this item
  std::vector<Id> ends_;
  std::vector<bool> meets_;  // a barrier, or a loop around one
  std::map<Id, std::vector<Shared>> shared_;
  int64_t item_ = 0, group_ = 0, phase_ = 0;
};

}  // namespace

Status interpret(const LoopKernel& kernel, std::span<const HostBuffer> buffers,
                 std::span<const int32_t> scalars) {
  if (kernel.fragment) return invalid("loop kernel: a fragment cannot run by itself");
  if (buffers.size() != kernel.buffers.size())
    return invalid("loop kernel: got {} buffers, wanted {}", buffers.size(), kernel.buffers.size());
  if (scalars.size() != kernel.scalars)
    return invalid("loop kernel: got {} scalars, wanted {}", scalars.size(), kernel.scalars);
  return Interpreter(kernel, buffers, scalars).run();
}

}  // namespace weft::codegen

#include "conformance/graphs/generate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "conformance/inputs.h"
#include "ir/lower.h"

namespace weft::conformance {

std::vector<std::pair<size_t, size_t>> updates_of(const ir::OpDef& op) {
  std::vector<std::pair<size_t, size_t>> all;
  for (const auto& u : op.updates)
    if (u.output >= 0) all.emplace_back(static_cast<size_t>(u.output), static_cast<size_t>(u.input));
  return all;
}

Result<std::array<std::vector<Bounded>, kDataSets>> bound_call(const ir::OpDef& op,
                                                               const std::vector<AttrValue>& attrs,
                                                               const OperandSets& operands) {
  std::vector<TensorType> held;
  for (const auto* x : operands[0]) held.push_back(x ? type_of(x->value) : TensorType());
  std::vector<const TensorType*> types;
  for (size_t i = 0; i < held.size(); ++i) types.push_back(operands[0][i] ? &held[i] : nullptr);
  WEFT_TRY([[maybe_unused]] const auto checked, op.infer(ir::Types(types), attrs));
  std::array<std::vector<Bounded>, kDataSets> out;
  if (op.primitive()) {
    for (size_t set = 0; set < kDataSets; ++set) {
      std::vector<const Bounded*> in;
      std::ranges::copy_if(operands[set], std::back_inserter(in), [](const Bounded* x) { return x; });
      out[set] = bound_primitive(op, attrs, in);
    }
    return out;
  }
  WEFT_TRY(const auto body, ir::lower_to_primitives(op, types, attrs));
  for (size_t set = 0; set < kDataSets; ++set) {
    std::vector<Bounded> in;
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const auto* x = i < operands[set].size() ? operands[set][i] : nullptr;
      in.push_back(x ? *x : Bounded());
    }
    const auto all = bound_graph(body, std::move(in));
    for (const auto& o : body.outputs) out[set].push_back(all[static_cast<size_t>(o.value)]);
  }
  return out;
}

namespace {

constexpr int64_t kMostElements = 400;  // of a value: the oracle is slow, and small sizes can be odd, too
constexpr Real kLargest = 1000;         // squares of it are finite in f16's neighbourhood of one op

/// The ops with cases, and the elementwise ones among them.
struct Folder {
  struct Op {
    const ir::OpDef* op;
    OpCases cases;
  };
  std::vector<Op> all, elementwise;
};
const Folder& folder() {
  static const Folder made = [] {
    Folder f;
    for (const auto& file : case_files())
      if (const auto* op = ir::find_op(file.op)) {
        f.all.push_back({op, file.cases()});
        if (ir::has(op->traits, ir::Trait::elementwise)) f.elementwise.push_back(f.all.back());
      }
    return f;
  }();
  return made;
}

}  // namespace

bool is_sure(const Bounded& b) {
  Real size = 0, worst = 0;
  for (size_t i = 0; i < b.error.size(); ++i) {
    if (!std::isfinite(b.value.v[i]) || !std::isfinite(b.error[i])) return false;
    size = std::max(size, std::fabs(b.value.v[i])), worst = std::max(worst, b.error[i]);
  }
  if (!is_float(b.value.dtype)) return worst == 0;
  return size <= kLargest && worst <= size / (is_half(b.value.dtype) ? 8 : 64);
}

namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) { made_.seed = seed; }

  GraphCase run() {
    made_.fuse = !chance(0.25);
    static constexpr DType kMain[] = {DType::f32, DType::f32, DType::f32,  DType::f32, DType::f32,
                                      DType::f32, DType::f16, DType::bf16, DType::i32, DType::f64};
    main_ = kMain[below(std::size(kMain))];
    const size_t wanted = 3 + below(22);
    for (int tries = 0; g().nodes.size() < wanted && tries < 400; ++tries) {
      const Mark before = mark();
      if (!(chance(0.4) ? elementwise_node() : node_of_a_case())) go_back(before);
    }
    choose_outputs();
    return std::move(made_);
  }

 private:
  using Ids = std::vector<int32_t>;
  // The graph before a node that was rejected.
  struct Mark {
    size_t types, nodes, inputs, weights;
    std::vector<ir::Graph::State> states;
    Ids usable, state_of;
  };

  ir::Graph& g() { return made_.graph; }
  size_t below(size_t n) { return static_cast<size_t>(random_.bits() % n); }
  bool chance(double p) { return random_.uniform() < p; }
  template <class T>
  const T& any(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  const TensorType& type(int32_t id) { return g().types[static_cast<size_t>(id)]; }
  Dims shape(int32_t id) { return made_.values[0][static_cast<size_t>(id)].value.shape; }

  Mark mark() {
    return {g().types.size(), g().nodes.size(), g().inputs.size(), g().weights.size(),
            g().states,       usable_,          state_of_};
  }
  void go_back(const Mark& to) {
    g().types.resize(to.types), g().nodes.resize(to.nodes), g().inputs.resize(to.inputs);
    g().weights.resize(to.weights), g().states = to.states;
    for (auto& set : made_.values) set.resize(to.types);
    usable_ = to.usable, state_of_ = to.state_of;
  }

  // ---- operands

  // Recent values more often than old ones, which live long.
  int32_t any_usable() {
    const size_t last = std::min<size_t>(4, usable_.size());
    return chance(0.5) ? usable_[usable_.size() - 1 - below(last)] : any(usable_);
  }

  void enter(ir::Value v, const std::array<Array, kDataSets>& data, int32_t state) {
    for (size_t set = 0; set < kDataSets; ++set) made_.values[set].push_back(exactly(data[set]));
    usable_.push_back(v.id()), state_of_.push_back(state);
  }
  std::array<Array, kDataSets> numbers(Input input, DType t) {
    std::array<Array, kDataSets> data;
    for (auto& a : data) a = make_inputs({.inputs = {input}}, t, random_.bits())[0];
    return data;
  }
  int32_t fresh(const Input& input, DType t) {
    auto data = numbers(input, t);
    const bool weight = chance(0.2);
    if (weight) data[1] = data[0];
    const auto name = fmt::format("{}{}", weight ? "w" : "x", (weight ? g().weights : g().inputs).size());
    const auto v = weight ? g().weight(name, type_of(data[0])) : g().input(name, type_of(data[0]));
    enter(v, data, -1);
    return v.id();
  }
  int32_t fresh_state(const Input& input, DType t) {
    const auto data = numbers(input, t);
    const auto v = g().state(fmt::format("s{}", g().states.size()), type_of(data[0]));
    enter(v, data, static_cast<int32_t>(g().states.size()) - 1);
    return v.id();
  }

  // The targets of an update: a state, or a result that is not read again.
  int32_t overwritable(const Input& input, DType t, const Ids& taken) {
    const TensorType wanted = {t, to_shape(input.shape)};
    Ids fitting;
    for (const int32_t id : usable_)
      if (type(id) == wanted && !is_port(id) && std::find(taken.begin(), taken.end(), id) == taken.end())
        fitting.push_back(id);
    return is_float(t) && !fitting.empty() && chance(0.7) ? any(fitting) : fresh_state(input, t);
  }
  bool is_port(int32_t id) {
    const auto names = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(), [&](const auto& p) { return p.value == id; });
    };
    return names(g().inputs) || names(g().weights);
  }

  std::optional<int32_t> moved(const char* op, int32_t x, std::initializer_list<Attr> named) {
    const auto* def = ir::find_op(op);
    const auto attrs = ir::order_attrs(*def, std::span(named.begin(), named.size()));
    if (!attrs.ok() || !append(*def, {x}, attrs.value())) return std::nullopt;
    return g().nodes.back().outputs[0];
  }
  // A value of this type made of an existing one: itself, or with its elements moved, cut or repeated.
  std::optional<int32_t> fitted(DType t, const Dims& wanted, const Ids& taken) {
    const TensorType type_wanted = {t, to_shape(wanted)};
    const auto is_free = [&](int32_t id) { return std::find(taken.begin(), taken.end(), id) == taken.end(); };
    Ids exact;
    for (const int32_t id : usable_)
      if (type(id) == type_wanted && is_free(id)) exact.push_back(id);
    if (!exact.empty() && chance(0.75)) return any(exact);
    for (int tries = 0; tries < 4 && !usable_.empty(); ++tries) {
      const int32_t id = any_usable();
      if (is_free(id))
        if (const auto made = reshaped(id, t, wanted)) return made;
    }
    return exact.empty() ? std::nullopt : std::optional(any(exact));
  }
  std::optional<int32_t> reshaped(int32_t id, DType t, const Dims& wanted) {
    const int64_t n = count(wanted), have = count(shape(id));
    if (n == 0 || have == 0 || (have < n && have != 1)) return std::nullopt;
    const auto named = std::string(name(t));
    std::optional<int32_t> at = id;
    if (type(id).dtype != t) {
      if (!is_float(t) || !is_float(type(id).dtype)) return std::nullopt;
      at = moved("cast", id, {{"dtype", named}});
    }
    Dims reversed = shape(id);
    std::reverse(reversed.begin(), reversed.end());
    if (at && reversed == wanted && wanted.size() > 1) return moved("permute", *at, {});
    if (at && have == 1 && n != 1) {
      at = moved("reshape", *at, {{"shape", Shape{}}});
      return at ? moved("broadcast", *at, {{"shape", to_shape(wanted)}}) : std::nullopt;
    }
    if (at && have > n) {
      const auto start = static_cast<int64_t>(below(static_cast<size_t>(have - n + 1)));
      at = moved("reshape", *at, {{"shape", Shape{have}}});
      if (at) at = moved("slice", *at, {{"start", Shape{start}}, {"stop", Shape{start + n}}});
    }
    return at && shape(*at) != wanted ? moved("reshape", *at, {{"shape", to_shape(wanted)}}) : at;
  }

  // ---- nodes

  DType dtype_of(const Case& c) {
    if (holds(c.dtypes, main_) && chance(0.85)) return main_;
    static constexpr DType kOthers[] = {DType::f32, DType::f32, DType::f16, DType::bf16,
                                        DType::f64, DType::i32, DType::i64, DType::boolean};
    return kOthers[below(std::size(kOthers))];
  }
  static bool small(const std::vector<TensorType>& types) {
    return std::all_of(types.begin(), types.end(), [](const TensorType& t) {
      return element_count(t.shape).value() <= kMostElements && t.rank() <= 8;
    });
  }
  static Result<std::vector<TensorType>> inferred(const ir::OpDef& op, const std::vector<TensorType>& types,
                                                  const std::vector<AttrValue>& attrs) {
    std::vector<const TensorType*> pointers;
    for (const auto& t : types) pointers.push_back(&t);
    return op.infer(ir::Types(pointers), attrs);
  }

  // An op on operands with the shapes of one of its cases. Floats come from existing values; indices must be
  // valid, so special integers are fresh inputs.
  bool node_of_a_case() {
    const auto& [op, cases] = any(folder().all);
    if (cases.empty()) return false;
    const Case& c = any(cases);
    const DType t = dtype_of(c);
    if (!holds(c.dtypes, t)) return false;
    auto attrs = ir::order_attrs(*op, c.attrs);
    std::vector<TensorType> types;
    for (const auto& input : c.inputs) types.push_back({input.dtype.value_or(t), to_shape(input.shape)});
    if (!attrs.ok() || !small(types)) return false;
    if (const auto out = inferred(*op, types, attrs.value()); !out.ok() || !small(out.value())) return false;
    const auto updates = updates_of(*op);
    Ids in;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      const Input& input = c.inputs[i];
      const DType own = input.dtype.value_or(t);
      const bool updated =
          std::any_of(updates.begin(), updates.end(), [&](auto& u) { return u.second == i; });
      const bool feeds = is_float(own) || (input.kind == Input::Kind::normal && !input.dtype);
      const auto found = feeds && !updated && chance(0.85) ? fitted(own, input.shape, over_) : std::nullopt;
      in.push_back(updated ? overwritable(input, own, in) : found ? *found : fresh(input, own));
      if (updated) over_.push_back(in.back());
    }
    over_.clear();
    return append(*op, in, attrs.value());
  }

  // An elementwise op on existing values, broadcast if they fit.
  bool elementwise_node() {
    if (usable_.empty()) return false;
    const auto& [op, cases] = any(folder().elementwise);
    if (!updates_of(*op).empty()) return false;
    auto attrs = ir::order_attrs(*op, cases.empty() ? std::vector<Attr>() : any(cases).attrs);
    if (!attrs.ok()) return false;
    for (int tries = 0; tries < 6; ++tries) {
      Ids in;
      std::vector<TensorType> types;
      for (int i = 0; i < op->n_inputs - op->n_optional; ++i) in.push_back(any_usable());
      for (const int32_t id : in) types.push_back(type(id));
      const auto out = inferred(*op, types, attrs.value());
      if (out.ok() && small(out.value())) return append(*op, in, attrs.value());
    }
    return false;
  }

  // Adds the node if its results are well known.
  bool append(const ir::OpDef& op, const Ids& in, std::vector<AttrValue> attrs) {
    std::vector<TensorType> types;
    std::vector<const TensorType*> pointers;
    for (const int32_t id : in) types.push_back(type(id));
    for (const auto& t : types) pointers.push_back(&t);
    if (const auto out = op.infer(ir::Types(pointers), attrs); !out.ok() || !small(out.value())) return false;
    ir::settle_attrs(op, ir::Types(pointers), attrs);
    OperandSets operands;
    for (size_t set = 0; set < kDataSets; ++set)
      for (const int32_t id : in) operands[set].push_back(&made_.values[set][static_cast<size_t>(id)]);
    auto bounded = bound_call(op, attrs, operands);
    if (!bounded.ok()) return false;
    for (const auto& set : bounded.value())
      if (!std::all_of(set.begin(), set.end(), is_sure)) return false;
    ir::ValueList values;
    for (const int32_t id : in) values.push_back(g().value(id));
    const auto out = g().call(op, values, std::move(attrs));
    for (size_t k = 0; k < out.size(); ++k) {
      for (size_t set = 0; set < kDataSets; ++set)
        made_.values[set].push_back(std::move(bounded.value()[set][k]));
      usable_.push_back(out[k].id()), state_of_.push_back(-1);
    }
    for (const auto& [output, input] : updates_of(op)) overwrite(in[input], out[output].id());
    return true;
  }
  void overwrite(int32_t from, int32_t to) {
    std::erase(usable_, from);
    const int32_t state = state_of_[static_cast<size_t>(from)];
    state_of_[static_cast<size_t>(to)] = state;
    if (state >= 0) g().states[static_cast<size_t>(state)].after = to;
  }

  // Unread values become outputs, except for some dead ones; so do a few others, which then live long.
  void choose_outputs() {
    std::vector<bool> read(g().types.size(), false);
    for (const auto& n : g().nodes)
      for (const int32_t id : n.inputs)
        if (id >= 0) read[static_cast<size_t>(id)] = true;
    Ids made;
    for (const auto& n : g().nodes)
      for (const int32_t id : n.outputs)
        if (std::find(usable_.begin(), usable_.end(), id) != usable_.end()) made.push_back(id);
    Ids out;
    for (const int32_t id : made)
      if (chance(read[static_cast<size_t>(id)] ? 0.1 : 0.85)) out.push_back(id);
    if (out.empty() && !made.empty()) out.push_back(made.back());
    for (const int32_t id : out) g().output(fmt::format("y{}", g().outputs.size()), g().value(id));
  }

  Random random_;
  GraphCase made_;
  DType main_ = DType::f32;
  Ids usable_;    // values that may be read: all that were not overwritten
  Ids over_;      // the values that the new node overwrites; no other operand may be one of them
  Ids state_of_;  // by value: the state whose buffer it has, or -1
};

}  // namespace

GraphCase random_graph(uint64_t seed) { return Generator(seed).run(); }

}  // namespace weft::conformance

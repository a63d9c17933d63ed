#include "conformance/sizes/draw.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/builder.h"

namespace weft::conformance {
namespace {

// Any sizes: their product may overflow 64 bits.
double elements_of(std::span<const int64_t> shape) {
  double n = 1;
  for (const int64_t d : shape) n *= static_cast<double>(d);
  return n;
}

/// A call in the making: a written case whose shapes and attributes are replaced.
class Draft {
 public:
  Draft(const ir::OpDef& op, const OpCases& written, Random& random, int64_t most)
      : op_(op), written_(written), random_(random), most_(most) {}

  bool made() {
    const Case& c = any(written_);
    inputs = c.inputs, allowed = c.dtypes;
    attrs = value_or_raise(ir::order_attrs(op_, c.attrs));
    // Kinds of ops with own shapes; for other ops, written cases are enlarged.
    if (random_.bits() % 4 == 0 || !made_by_kind()) grow();
    // Several attributes off their defaults at once, as far as the shape rule allows.
    for (size_t i = 0; i < attrs.size(); ++i)
      if (random_.bits() % 4 == 0 && !is_shape(i))
        attrs[i] = value_or_raise(ir::order_attrs(op_, any(written_).attrs))[i];
    return fits();
  }

  std::vector<Input> inputs;
  std::vector<AttrValue> attrs;
  DTypes allowed = kAnyDType;

 private:
  template <class T>
  const T& any(const std::vector<T>& list) {
    return list[random_.bits() % list.size()];
  }
  int64_t below(int64_t n) {
    return n > 0 ? static_cast<int64_t>(random_.bits() % static_cast<uint64_t>(n)) : 0;
  }
  // One of `ranks` ranks from `least`, low ones more often.
  Dims shape(int least, int ranks) {
    return draw_shape(random_, least + static_cast<int>(std::min(below(ranks), below(ranks))), most_);
  }
  bool is(const char* name) const { return op_.name == std::string_view(name); }

  AttrValue* attr(std::string_view name) {
    for (size_t i = 0; i < attrs.size(); ++i)
      if (name == op_.attrs[i].name) return &attrs[i];
    return nullptr;
  }
  // Attributes that a kind of op draws together with its shapes.
  bool is_shape(size_t i) const {
    static constexpr std::string_view kDrawn[] = {"shape", "axes", "axis",   "start", "stop",
                                                  "size",  "k",    "kernel", "batch", "equation"};
    return std::ranges::count(kDrawn, std::string_view(op_.attrs[i].name)) > 0;
  }
  bool fits() const {
    double all = 0;
    for (const Input& i : inputs) all += elements_of(i.shape);
    return all <= 4 * static_cast<double>(most_);
  }

  // ---- by kind

  bool made_by_kind() {
    if (is("matmul")) return product(), true;
    if (is("gather") || is("scatter") || is("scatter_add")) return picks(), true;
    if (is("reshape")) return regrouped(), true;
    if (is("permute")) return permuted(), true;
    if (is("broadcast")) return repeated(), true;
    if (is("concat")) return joined(), true;
    if (ir::has(op_.traits, ir::Trait::elementwise)) return elementwise(), true;
    if (inputs.size() == 1 && attr("axes")) return folded(), true;
    if (inputs.size() == 1 && attr("axis")) return along_an_axis(), true;
    return without_operands();
  }

  void elementwise() {
    const Dims all = shape(0, 6);
    const bool same = inputs.size() < 2 || random_.bits() % 3 > 0;
    for (Input& i : inputs) {
      i.shape = all;
      if (same) continue;
      for (auto& d : i.shape)
        if (below(3) == 0) d = 1;
      if (below(3) == 0) i.shape.erase(i.shape.begin(), i.shape.begin() + below(std::ssize(i.shape) + 1));
    }
    if (!same) any_of(inputs).shape = all;
  }
  Input& any_of(std::vector<Input>& list) { return list[random_.bits() % list.size()]; }

  void folded() {
    const Dims all = inputs[0].shape = shape(1, 5);
    Shape axes;
    const bool one = below(2);  // the usual case, and often the longest
    const int64_t alone = below(2) ? below(std::ssize(all)) : std::ranges::max_element(all) - all.begin();
    for (int64_t d = 0; d < std::ssize(all); ++d)
      if (one ? d == alone : below(2)) axes.push_back(below(2) ? d : d - std::ssize(all));
    *attr("axes") = axes;
  }
  void along_an_axis() {
    const Dims all = inputs[0].shape = shape(1, 4);
    const int64_t rank = std::ssize(all), at = below(rank), size = all[static_cast<size_t>(at)];
    *attr("axis") = below(2) ? at : at - rank;
    if (auto* k = attr("k")) *k = below(size + 1);
    if (auto* start = attr("start")) {
      const int64_t from = below(size + 1);
      *start = Shape{from}, *attr("stop") = Shape{from + below(size - from + 1)};
      if (std::get_if<int64_t>(start)) *start = from;
    }
  }
  void product() {
    constexpr int64_t kReuse = 16;  // products per element
    const Dims mkn = draw_shape(random_, 3, most_ * kReuse);
    const Dims batch = below(2)
                           ? Dims{}
                           : draw_shape(random_, 1 + static_cast<int>(below(2)),
                                        std::max<int64_t>(1, most_ * kReuse / (mkn[0] * mkn[1] * mkn[2])));
    const auto matrix = [&](int64_t rows, int64_t columns, bool transposed) {
      Dims s = batch;
      for (auto& d : s)
        if (below(6) == 0) d = 1;
      if (below(6) == 0) s.clear();
      s.push_back(transposed ? columns : rows), s.push_back(transposed ? rows : columns);
      return s;
    };
    const bool ta = below(2), tb = below(2);
    inputs[0].shape = matrix(mkn[0], mkn[1], ta), inputs[1].shape = matrix(mkn[1], mkn[2], tb);
    *attr("transpose_a") = int64_t{ta}, *attr("transpose_b") = int64_t{tb};
  }
  void picks() {
    Dims x = shape(1, 4);
    const int64_t rank = std::ssize(x), axis = below(rank), batch = below(3) ? 0 : below(axis + 1);
    const int64_t around =
        std::max<int64_t>(1, count(x) / std::max<int64_t>(1, x[static_cast<size_t>(axis)]));
    const Dims own = draw_shape(random_, static_cast<int>(below(3)), std::max<int64_t>(1, most_ / around));
    Dims index(x.begin(), x.begin() + batch), updates(x.begin(), x.begin() + axis);
    index.insert(index.end(), own.begin(), own.end());
    updates.insert(updates.end(), own.begin(), own.end());
    updates.insert(updates.end(), x.begin() + axis + 1, x.end());
    inputs[0].shape = x, inputs[1].shape = index;
    if (inputs.size() > 2) inputs[2].shape = updates;
    *attr("axis") = below(2) ? axis : axis - rank, *attr("batch") = batch;
  }
  void regrouped() {
    Dims one = shape(0, 6), other;
    inputs[0].shape = one;
    for (const int64_t d : one)  // adjacent, or with ones between
      if (below(3) == 0 && !other.empty())
        other.back() *= d;
      else
        other.push_back(d);
    if (below(2)) other.insert(other.begin() + below(std::ssize(other) + 1), 1);
    if (below(2)) std::swap(inputs[0].shape, other);
    *attr("shape") = to_shape(other);
  }
  void permuted() {
    const Dims all = inputs[0].shape = shape(2, 5);
    std::vector<int64_t> order(all.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.bits() % i]);
    *attr("axes") = to_shape(order);
  }
  void repeated() {
    const Dims all = shape(1, 5);
    Dims from = all;
    for (auto& d : from)
      if (below(2)) d = 1;
    if (below(3) == 0) from.erase(from.begin(), from.begin() + below(std::ssize(from) + 1));
    inputs[0].shape = from, *attr("shape") = to_shape(all);
  }
  void joined() {
    const Dims all = shape(1, 4);
    const int64_t rank = std::ssize(all), axis = below(rank);
    inputs.resize(1 + static_cast<size_t>(below(op_.n_inputs)), inputs[0]);
    for (Input& i : inputs) {
      i.shape = all;
      i.shape[static_cast<size_t>(axis)] = below(all[static_cast<size_t>(axis)] / std::ssize(inputs) + 2);
    }
    *attr("axis") = axis;
  }
  bool without_operands() {
    if (auto* size = attr("size"); size && inputs.empty())
      return *size = Shape{draw_shape(random_, 1, most_)[0]}, true;
    const bool random = ir::has(op_.traits, ir::Trait::random) && inputs.size() == 1;
    if (auto* to = attr("shape"); to && (inputs.empty() || random)) return *to = to_shape(shape(0, 4)), true;
    return false;
  }

  // ---- by growing: equal sizes stay equal, and lists of sizes follow

  void grow() {
    std::map<int64_t, int64_t> sizes;
    for (const Input& i : inputs)
      for (const int64_t d : i.shape)
        if (d > 0) sizes[d] = d;
    if (sizes.empty()) return;
    // One factor for all keeps sizes divisible: heads, groups, pairs.
    const bool by_factor = below(3) == 0;
    const int64_t factor = 1 + draw_shape(random_, 1, 64)[0];
    const size_t chosen = random_.bits() % sizes.size();
    const Dims drawn = draw_shape(random_, static_cast<int>(sizes.size()), most_);
    size_t n = 0;
    for (auto& [from, to] : sizes) {
      const bool only_this = !by_factor && below(2) == 0;
      if (by_factor ? from > 1 && below(2) : only_this || n == chosen)
        to = by_factor ? from * factor : drawn[n];
      ++n;
    }
    const auto moved = [&](int64_t d) { return sizes.contains(d) ? sizes[d] : d; };
    for (Input& i : inputs)
      for (auto& d : i.shape) d = moved(d);
    for (size_t i = 0; i < attrs.size(); ++i)
      if (auto* list = std::get_if<Shape>(&attrs[i]); list && is_shape(i) && op_.attrs[i].name[0] != 'a')
        for (Dim& d : *list)
          if (d.is_const()) d = moved(d.value());
  }

  const ir::OpDef& op_;
  const OpCases& written_;
  Random& random_;
  int64_t most_;
};

std::vector<TensorType> types_of(const std::vector<Input>& inputs, DType t) {
  std::vector<TensorType> types;
  for (const Input& i : inputs) types.push_back({i.dtype.value_or(t), to_shape(i.shape)});
  return types;
}

// f32 more often than any other.
DType draw_dtype(Random& random, DTypes allowed) {
  if (random.bits() % 3 == 0 && holds(allowed, DType::f32)) return DType::f32;
  for (;;)
    if (const auto t = static_cast<DType>(random.bits() % kDTypeCount); holds(allowed, t)) return t;
}

/// The call of a draft in some dtype, if it is one.
std::optional<DrawnCall> call_of(const ir::OpDef& op, const Draft& draft, uint64_t claimed, Random& random,
                                 int64_t most) {
  const DTypes allowed = draft.allowed & static_cast<DTypes>(claimed);
  if (!allowed) return std::nullopt;
  DrawnCall call{&op, draw_dtype(random, allowed), draft.inputs, draft.attrs, {}, 0};
  const auto types = types_of(call.like, call.dtype);
  std::vector<const TensorType*> in;
  for (const auto& t : types) in.push_back(&t);
  const auto claims = [&](const TensorType& t) { return claimed >> static_cast<int>(t.dtype) & 1; };
  auto out = op.infer(ir::Types(in), call.attrs);
  if (!out.ok() || !std::ranges::all_of(types, claims) || !std::ranges::all_of(out.value(), claims))
    return std::nullopt;
  Dims shape;
  const auto add = [&](const TensorType& t) {
    shape.clear();
    for (const Dim d : t.shape) shape.push_back(d.value());
    const double n = elements_of(shape);
    if (n > 4 * static_cast<double>(most) || t.rank() > 8) return false;
    call.elements += static_cast<int64_t>(n);
    return true;
  };
  if (!std::ranges::all_of(types, add) || !std::ranges::all_of(out.value(), add)) return std::nullopt;
  call.results = std::move(out).value();
  ir::settle_attrs(op, ir::Types(in), call.attrs);
  return call;
}

}  // namespace

std::optional<DrawnCall> draw_call(const ir::OpDef& op, const OpCases& written, uint64_t claimed,
                                   Random& random, int64_t most) {
  constexpr int kTries = 200;
  for (int i = 0; i < kTries && !written.empty(); ++i) {
    Draft draft(op, written, random, most);
    if (!draft.made()) continue;
    if (auto call = call_of(op, draft, claimed, random, most)) return call;
  }
  return std::nullopt;
}

std::string DrawnCall::text() const {
  std::string s = name(dtype);
  for (const Input& i : like) s += " " + weft::text(std::span<const int64_t>(i.shape));
  const auto defaults = op->defaults();
  for (size_t i = 0; i < attrs.size(); ++i)
    if (attrs[i] != defaults[i]) s += fmt::format(" {}={}", op->attrs[i].name, weft::text(attrs[i]));
  return s;
}

bool takes_positions(const ir::OpDef& op) {
  static constexpr std::string_view kOps[] = {
      "gather",    "scatter",       "assign_rows",        "scatter_add",
      "embedding", "cross_entropy", "cross_entropy_grad", "cross_entropy_with_grad"};
  return std::ranges::count(kOps, std::string_view(op.name)) > 0;
}

std::optional<Positions> positions_of(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                                      const std::vector<Input>& inputs) {
  if (!takes_positions(op) || !inputs[1].dtype) return std::nullopt;  // targets may be probabilities
  const std::string_view name = op.name;
  const auto size = [&](int64_t axis) {
    const Dims& x = inputs[0].shape;
    return x[static_cast<size_t>(axis < 0 ? axis + std::ssize(x) : axis)];
  };
  if (name == "embedding") return Positions{1, size(0)};
  if (name.starts_with("cross_entropy")) return Positions{1, size(-1)};
  for (size_t i = 0; i < attrs.size(); ++i)
    if (op.attrs[i].name == std::string_view("axis")) return Positions{1, size(std::get<int64_t>(attrs[i]))};
  return std::nullopt;
}

}  // namespace weft::conformance

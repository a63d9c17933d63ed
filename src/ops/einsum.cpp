#include "ir/einsum.h"

#include <algorithm>

#include "ir/rules.h"

namespace weft::ops {

struct EinsumAttrs {
  std::string equation;
  static constexpr auto fields = ir::fields("equation", &EinsumAttrs::equation);
};

static Result<ir::Einsum> parsed(const std::string& equation, ir::Types in) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < in.size() && in.has(i); ++i) shapes.push_back(in[i].shape);
  return ir::parse_einsum(equation, shapes);
}

static Result<TensorType> infer(ir::Types in, const EinsumAttrs& a) {
  const DType t = in[0].dtype;
  for (size_t i = 0; i < in.size(); ++i)
    if (in.has(i) && (in[i].dtype != t || (i > 0 && !in.has(i - 1))))
      return invalid("einsum: operands must have one dtype and no gap, got {} and {}", text(in[0]),
                     text(in[i]));
  if (!is_compute(t) || t == DType::boolean)
    return invalid("einsum: wants a number type, got {}", text(in[0]));
  WEFT_TRY(const ir::Einsum e, parsed(a.equation, in));
  TensorType y{t, {}};
  for (const int label : e.result) y.shape.push_back(e.sizes[static_cast<size_t>(label)]);
  return y;
}

// ---- one operand

/// A value whose axes have labels.
struct Labelled {
  ir::Value x;
  ir::Labels labels;
};

static bool holds(const ir::Labels& all, int label) {
  return std::find(all.begin(), all.end(), label) != all.end();
}
static ir::Labels without(const ir::Labels& all, const ir::Labels& some) {
  ir::Labels rest;
  for (const int label : all)
    if (!holds(some, label)) rest.push_back(label);
  return rest;
}
static ir::Labels within(const ir::Labels& all, const ir::Labels& some) {
  return without(all, without(all, some));
}
static ir::Labels joined(ir::Labels a, const ir::Labels& b) {
  for (const int label : b) a.push_back(label);
  return a;
}

static Labelled arranged(ir::Builder& b, const Labelled& t, const ir::Labels& order) {
  if (t.labels == order) return t;
  Shape axes;
  for (const int label : order)
    axes.push_back(std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin());
  return {b.one("permute", {t.x}, {{"axes", axes}}), order};
}

/// Axes of size 1 that meet longer ones are left out.
static Labelled unbroadcast(ir::Builder& b, Labelled t) {
  Shape shape;
  ir::Labels labels;
  for (size_t d = 0; d < t.labels.size(); ++d)
    if (t.labels[d] != ir::Einsum::kBroadcast) shape.push_back(t.x.shape()[d]), labels.push_back(t.labels[d]);
  return {b.reshape(t.x, shape), labels};
}

/// Of two axes with one label the diagonal: all else becomes zero, and one of them is summed.
static Labelled diagonal(ir::Builder& b, Labelled t) {
  for (size_t j = t.labels.size(); j-- > 1;) {
    const size_t i =
        static_cast<size_t>(std::find(t.labels.begin(), t.labels.end(), t.labels[j]) - t.labels.begin());
    if (i == j) continue;
    const auto places = [&](size_t axis) {
      Shape along(t.labels.size() - axis, Dim(1));
      along[0] = t.x.shape()[axis];
      return b.reshape(b.one("iota", {}, {{"size", Shape{along[0]}}}), along);
    };
    const auto kept = b.where(b.equal(places(i), places(j)), t.x, 0);
    t.x = b.one("sum", {kept}, {{"axes", Shape{Dim(j)}}});
    t.labels.erase(j);
  }
  return t;
}

static Labelled summed(ir::Builder& b, const Labelled& t, const ir::Labels& keep) {
  Shape axes;
  for (size_t d = 0; d < t.labels.size(); ++d)
    if (!holds(keep, t.labels[d])) axes.push_back(d);
  if (axes.empty()) return t;
  return {b.one("sum", {t.x}, {{"axes", axes}}), within(t.labels, keep)};
}

// ---- two operands

static Shape sizes_of(const Labelled& t, const ir::Labels& labels) {
  Shape s;
  for (const int label : labels) {
    const auto at = std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin();
    s.push_back(at < static_cast<ptrdiff_t>(t.labels.size()) ? t.x.shape()[static_cast<size_t>(at)] : Dim(1));
  }
  return s;
}

/// Broadcast, multiplied and summed: outer products, and integers.
static Labelled by_product(ir::Builder& b, const Labelled& x, const Labelled& y, const ir::Labels& result) {
  const ir::Labels all = joined(x.labels, without(y.labels, x.labels));
  const auto spread = [&](const Labelled& t) {
    const Labelled own = arranged(b, t, within(all, t.labels));
    return b.reshape(own.x, sizes_of(own, all));
  };
  return summed(b, {b.mul(spread(x), spread(y)), all}, result);
}

/// As matrices [shared, rows, inner] and [shared, inner, columns]; an operand that lies the other way round
/// is read so.
static Labelled by_matmul(ir::Builder& b, const Labelled& x, const Labelled& y, const ir::Labels& result) {
  const ir::Labels both = within(x.labels, y.labels), shared = within(both, result),
                   inner = without(both, shared);
  const ir::Labels rows = without(x.labels, both), columns = without(y.labels, both);
  struct Matrix {
    ir::Value x;
    bool transposed;
  };
  const auto matrix = [&](const Labelled& t, const ir::Labels& first, const ir::Labels& second) -> Matrix {
    const bool transposed = t.labels == joined(joined(shared, second), first);
    const Labelled own = transposed ? t : arranged(b, t, joined(joined(shared, first), second));
    const Shape sizes[] = {sizes_of(t, shared), sizes_of(t, first), sizes_of(t, second)};
    Shape s = {element_count(sizes[0]), element_count(sizes[1]), element_count(sizes[2])};
    if (transposed) std::swap(s[1], s[2]);
    return {b.reshape(own.x, s), transposed};
  };
  const Matrix p = matrix(x, rows, inner), q = matrix(y, inner, columns);
  const auto product = b.matmul(p.x, q.x, p.transposed, q.transposed);
  Shape shape = sizes_of(x, joined(shared, rows));
  for (const Dim d : sizes_of(y, columns)) shape.push_back(d);
  return {b.reshape(product, shape), joined(joined(shared, rows), columns)};
}

static Labelled pair(ir::Builder& b, Labelled x, Labelled y, const ir::Labels& result) {
  x = summed(b, x, joined(y.labels, result)), y = summed(b, y, joined(x.labels, result));
  const bool outer = without(within(x.labels, y.labels), result).empty();
  return outer || !is_float(x.x.dtype()) ? by_product(b, x, y, result) : by_matmul(b, x, y, result);
}

static ir::Value decompose(ir::Builder& b, ir::Values in, const EinsumAttrs& a) {
  std::vector<const TensorType*> types;
  for (const auto v : in)
    if (v) types.push_back(&v.type());
  const auto e = parsed(a.equation, ir::Types(types)).value();  // infer has checked it
  if (types.size() > 2) {  // each step is an einsum of its own, so that a backend may have one
    ir::ValueList values(in.begin(), in.begin() + static_cast<ptrdiff_t>(types.size()));
    for (const auto& step : ir::pairwise(e))
      values.push_back(b.one("einsum", {values[step.a], values[step.b]}, {{"equation", step.equation}}));
    return values.back();
  }
  std::vector<Labelled> t;
  for (size_t i = 0; i < types.size(); ++i) t.push_back(diagonal(b, unbroadcast(b, {in[i], e.operands[i]})));
  return arranged(b, t.size() == 1 ? summed(b, t[0], e.result) : pair(b, t[0], t[1], e.result), e.result).x;
}

static constexpr ir::Op<EinsumAttrs> spec = {
    .name = "einsum",
    .doc =
        "The product of all operands, summed over the letters that the result does not name: "
        "\"bij,bjk->bik\".\n\n"
        "Shape    a letter names an axis of one size everywhere (or 1, which broadcasts); the same letter "
        "twice in a\n"
        "         term is the diagonal; \"...\" stands for all other axes, from the right. Without \"->\", "
        "the "
        "result has\n"
        "         those of \"...\" and then the letters that stand once, in alphabetical order.\n"
        "DType    one number type; f16 and bf16 accumulate in f32.\n"
        "Numerics two operands at a time, in the order of least cost: the best one for up to 6 operands.\n"
        "         weft/einsum.h takes any number of them.\n"
        "Grad     by the decomposition.\n"
        "Errors   invalid_argument when the equation and the shapes do not fit.\n"
        "Source   NumPy and PyTorch, einsum.",
    .inputs = {"a", "b", "c", "d", "e", "f", "g", "h"},
    .n_optional = 7,
    .infer = infer,
    .decompose = decompose,
};
extern constinit const ir::OpDef einsum = ir::define<spec>();

}  // namespace weft::ops

#include <cmath>

#include "compiler/recompose.h"

namespace weft::compiler {

using namespace terms;

// softmax(q kᵀ * scale + mask) v. The factor may stand at q, at k, at the product or at several of them; the
// product and what follows it may have other leading axes than the scores (batched products of three axes). A
// query whose scores are all -inf, of which softmax makes NaN, gets zeros.
static Term factored(const Term& x, std::string_view by, std::string_view through) {
  return x | mul(x, number(by)) | div(x, number(through));
}
static Term widened(const Term& x) { return x | op("cast", {x}); }

static std::vector<Term> terms_of_attention() {
  const Term q = factored(any("q"), "at q", "under q"), k = factored(any("k"), "at k", "under k");
  const auto swapped = [](const Term& x) {
    return op("transpose", {x}).as("swapped") | op("permute", {x}).as("swapped");
  };
  const Term keys = swapped(k) | factored(swapped(any("k")), "at kt", "under kt") |
                    op("reshape", {swapped(k)}).as("viewed keys");
  const Term product = op("matmul", {q, keys}) | op("matmul", {q, k});
  const Term scores =
      factored(widened(viewed(product.as("product"))), "at scores", "under scores").as("scores");
  const Term masked = add(scores, any("bias")) | op("where", {any("seen"), scores, number("hidden")}) |
                      op("where", {any("unseen"), number("hidden"), scores});
  std::vector<Term> all;
  for (const Term& s : {scores, masked}) {
    const Term weights = op("softmax", {s}).as("softmax");
    all.push_back(op("matmul", {viewed(op("cast", {weights}) | weights), any("v")}).as("y"));
  }
  return all;
}

namespace {

Shape leading(const Shape& s) { return Shape(s.begin(), s.end() - 2); }
bool same_matrices(const Shape& a, const Shape& b) {
  return a.size() >= 2 && b.size() >= 2 && std::equal(a.end() - 2, a.end(), b.end() - 2) &&
         element_count(a) == element_count(b);
}

class AttentionMaker {
 public:
  explicit AttentionMaker(const Place& p) : p_(p) {}

  ir::Value make() {
    const auto scale = factor();
    const Shape scores = p_.value("softmax").shape();
    if (!scale || scores.size() < 3 || !is_plain() || !keeps_matrices(scores)) return {};
    const ir::Value q = with_leading("q", scores), k = with_leading("k", scores),
                    v = with_leading("v", scores);
    if (!q || !k || !v) return {};
    const auto mask = mask_for(q.dtype());
    if (!mask) return {};
    const std::array in = {q, k, v, *mask, ir::Value()};
    TensorType y = q.type();
    y.shape.back() = v.shape().back();
    if (q.dtype() != p_.root_value().dtype() || byte_size(p_.value("scores").dtype()) < byte_size(q.dtype()))
      return {};
    if (!gives("attention", in, {{"scale", *scale}}, y)) return {};
    const auto out = p_.graph.call("attention", in, {{"scale", *scale}})[0];
    return reshaped(p_.graph, out, p_.root_value().shape());
  }

 private:
  bool is(std::string_view name, std::string_view attribute) const {
    return std::get<int64_t>(attr(*p_.matcher.maker(p_.match.value(name)), attribute)) != 0;
  }
  // Products without flags, apart from the one that says that k is not turned yet; the softmax over keys.
  bool is_plain() const {
    const int64_t axis = std::get<int64_t>(attr(*p_.matcher.maker(p_.match.value("softmax")), "axis"));
    if (axis != p_.value("softmax").type().rank() - 1) return false;
    if (is("y", "transpose_a") || is("y", "transpose_b") || is("product", "transpose_a")) return false;
    if (is("product", "transpose_b") == p_.match.has("swapped")) return false;
    if (!p_.match.has("swapped")) return true;
    const int64_t rank = p_.value("swapped").type().rank();
    return swaps_axes(*p_.matcher.maker(p_.match.value("swapped")), rank, rank - 2, rank - 1);
  }
  // Views between the products only split and join leading axes, and no mask has more of them.
  bool keeps_matrices(const Shape& scores) const {
    const Shape weights = p_.matcher.type(p_.matcher.maker(p_.match.value("y"))->inputs[0]).shape;
    if (!(p_.value("scores").shape() == scores) || !same_matrices(p_.value("product").shape(), scores) ||
        !same_matrices(weights, scores))
      return false;
    return !p_.match.has("viewed keys") ||
           same_matrices(p_.value("viewed keys").shape(), p_.value("swapped").shape());
  }
  // All factors of the scores; none for one that is not a positive number.
  std::optional<double> factor() const {
    double scale = 1;
    for (const char* name : {"at q", "at k", "at kt", "at scores"})
      if (p_.match.has_number(name)) scale *= p_.match.number(name);
    for (const char* name : {"under q", "under k", "under kt", "under scores"})
      if (p_.match.has_number(name)) scale /= p_.match.number(name);
    return scale > 0 && std::isfinite(scale) ? std::optional(scale) : std::nullopt;
  }

  // With the leading axes of the scores, if these are the same matrices.
  ir::Value with_leading(const char* name, const Shape& scores) const {
    const ir::Value x = p_.value(name);
    Shape shape = leading(scores);
    if (x.type().rank() < 2 || !(element_count(leading(x.shape())) == element_count(shape))) return {};
    for (const Dim d : std::span<const Dim>(x.shape()).last(2)) shape.push_back(d);
    return reshaped(p_.graph, x, shape);
  }

  // The mask of the op: what is added, or where a query may look. None: it is no mask of attention.
  std::optional<ir::Value> mask_for(DType dtype) const {
    if (p_.match.has("bias")) {
      const ir::Value bias = p_.value("bias");
      if (bias.dtype() == dtype) return bias;
      const ir::Node* made = p_.matcher.maker(bias.id());
      const bool was = made && std::string_view(made->op->name) == "cast" &&
                       p_.matcher.type(made->inputs[0]).dtype == dtype;
      return was ? std::optional(p_.graph.value(made->inputs[0])) : std::nullopt;
    }
    if (!p_.match.has_number("hidden")) return ir::Value();
    if (p_.match.number("hidden") != -INFINITY) return {};  // a large number leaves hidden keys some weight
    return p_.match.has("seen") ? p_.value("seen") : p_.graph.one("logical_not", {p_.value("unseen")});
  }

  const Place& p_;
};

}  // namespace

static ir::Value make_attention(const Place& p) { return AttentionMaker(p).make(); }

extern const Recomposition attention_recomposition = {"attention", terms_of_attention, make_attention};

}  // namespace weft::compiler

#include "conformance/rules.h"

namespace weft::conformance {
namespace {

struct Sizes {
  Dims x, w, y;  // [n, c, i...], [o, c / groups, k...], [n, o, p...]
};

/// f(x, w, y) for all indices that meet, by the definition: i = p * stride + k * dilation - before. Nothing
/// is allocated for a term: models have a hundred million.
template <class F>
void each_term(const CallAttrs& a, const Sizes& s, F f) {
  const size_t rank = s.y.size();
  Dims stride = a.dims("stride"), dilation = a.dims("dilation"), padding = a.dims("padding");
  if (stride.empty()) stride.assign(rank - 2, 1);
  if (dilation.empty()) dilation.assign(rank - 2, 1);
  if (padding.empty()) padding.assign(2 * (rank - 2), 0);
  const int64_t in_group = s.w[0] / a.integer("groups");
  const int64_t n_y = count(s.y), n_w = count(s.w) / std::max<int64_t>(1, s.w[0]);
  std::vector<Dims> filter;  // [0, c, k...]
  for (int64_t from = 0; from < n_w; ++from) filter.push_back(coordinates(from, s.w));
  Dims x(rank);
  for (int64_t to = 0; to < n_y; ++to) {
    const Dims y = coordinates(to, s.y);
    x[0] = y[0];
    for (int64_t from = 0; from < n_w; ++from) {
      const Dims& k = filter[static_cast<size_t>(from)];
      x[1] = y[1] / in_group * s.w[1] + k[1];
      bool inside = true;
      for (size_t d = 2; d < rank && inside; ++d) {
        x[d] = y[d] * stride[d - 2] + k[d] * dilation[d - 2] - padding[2 * (d - 2)];
        inside = x[d] >= 0 && x[d] < s.x[d];
      }
      if (inside) f(position(x, s.x), static_cast<size_t>(y[1] * n_w + from), static_cast<size_t>(to));
    }
  }
}
template <class S>
ArrayOf<S> zeros(DType t, const Dims& shape) {
  return {t, shape, std::vector<S>(static_cast<size_t>(count(shape)), S(0))};
}

template <class S>
Results<S> conv(const CallAttrs& a, Inputs<S> in) {
  const auto &x = *in[0], &w = *in[1];
  const Dims stride = a.dims("stride"), dilation = a.dims("dilation"), padding = a.dims("padding");
  Dims shape = {x.shape[0], w.shape[0]};
  for (size_t i = 0; i + 2 < x.shape.size(); ++i) {
    int64_t n = 0;  // windows that lie in the padded axis
    const int64_t span = (w.shape[i + 2] - 1) * (dilation.empty() ? 1 : dilation[i]) + 1;
    const int64_t size = x.shape[i + 2] + (padding.empty() ? 0 : padding[2 * i] + padding[2 * i + 1]);
    for (int64_t begin = 0; begin + span <= size; begin += stride.empty() ? 1 : stride[i]) ++n;
    shape.push_back(n);
  }
  auto y = zeros<S>(x.dtype, shape);
  each_term(a, {x.shape, w.shape, y.shape},
            [&](size_t i, size_t k, size_t p) { y.v[p] = y.v[p] + x.v[i] * w.v[k]; });
  return {y};
}
template <class S>
Results<S> conv_transpose(const CallAttrs& a, Inputs<S> in) {
  const auto &y = *in[0], &w = *in[1];
  const Dims stride = a.dims("stride"), dilation = a.dims("dilation"), padding = a.dims("padding"),
             more = a.dims("output_padding");
  Dims shape = {y.shape[0], w.shape[1] * a.integer("groups")};
  for (size_t i = 0; i + 2 < y.shape.size(); ++i)
    shape.push_back((y.shape[i + 2] - 1) * (stride.empty() ? 1 : stride[i]) +
                    (w.shape[i + 2] - 1) * (dilation.empty() ? 1 : dilation[i]) + 1 -
                    (padding.empty() ? 0 : padding[2 * i] + padding[2 * i + 1]) +
                    (more.empty() ? 0 : more[i]));
  auto x = zeros<S>(y.dtype, shape);
  each_term(a, {x.shape, w.shape, y.shape},
            [&](size_t i, size_t k, size_t p) { x.v[i] = x.v[i] + y.v[p] * w.v[k]; });
  return {x};
}
template <class S>
Results<S> conv_weight_grad(const CallAttrs& a, Inputs<S> in) {
  const auto &x = *in[0], &y = *in[1];
  Dims shape = {y.shape[1], x.shape[1] / a.integer("groups")};
  for (const int64_t k : a.dims("kernel")) shape.push_back(k);
  auto w = zeros<S>(x.dtype, shape);
  each_term(a, {x.shape, w.shape, y.shape},
            [&](size_t i, size_t k, size_t p) { w.v[k] = w.v[k] + x.v[i] * y.v[p]; });
  return {w};
}

constexpr const char* kDerivation =
    "n products and n - 1 additions in any order, of those that lie inside: gamma(n) sum|a||b|; halves round "
    "once more";
constexpr Rule kConvRules[] = {
    {"conv", conv<Real>, conv<Rational>, kDerivation, 0.5L, sum_of_products},
    {"conv_transpose", conv_transpose<Real>, conv_transpose<Rational>, kDerivation, 0.5L, sum_of_products},
    {"conv_weight_grad", conv_weight_grad<Real>, conv_weight_grad<Rational>, kDerivation, 0.5L,
     sum_of_products},
};

}  // namespace

Rules conv_rules() { return kConvRules; }

}  // namespace weft::conformance

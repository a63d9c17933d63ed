#include "backends/native/labelled.h"

// einsum of any number of operands: the order is found once, and each pair is a matrix product that reads its
// operands in place.
namespace weft::native {

using namespace weft::backend;

namespace {

struct Equation {
  std::vector<Labels> terms;
  Labels result;
  shared::ContractionPath path;
};

int label_of(char c) {
  if (c >= 'a' && c <= 'z') return c - 'a';
  return c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

// Only letters, commas and "->"; the op has checked them against the operands.
std::optional<Equation> parsed(std::string_view text) {
  Equation e;
  const size_t arrow = text.find("->");
  if (arrow == text.npos) return std::nullopt;
  e.terms.emplace_back();
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == arrow) {
      ++i;
    } else if (i < arrow && text[i] == ',') {
      e.terms.emplace_back();
    } else if (const int label = label_of(text[i]); label >= 0) {
      (i < arrow ? e.terms.back() : e.result).push_back(label);
    } else {
      return std::nullopt;
    }
  }
  return e;
}

int64_t operands_of(const OpCall& c) {
  int64_t n = 0;
  while (n < c.n_inputs() && c.input(n).has()) ++n;
  return n;
}

Support accepts(const OpCall& c) {
  if (!parsed(c.attr("equation").text()))
    return Support::no("\"{}\" has more than letters and one \"->\"", c.attr("equation").text());
  const DType t = c.input(0).dtype();
  return t == DType::f32 || t == DType::f64 ? Support::yes()
                                            : Support::no("computes in f32 and f64, got {}", t);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  auto e = std::make_unique<Equation>(*parsed(c.attr("equation").text()));
  const int64_t n = operands_of(c);
  if (static_cast<int64_t>(e->terms.size()) != n)
    return Outcome::fail(WEFT_INVALID_ARGUMENT, "{} terms for {} operands", e->terms.size(), n);
  shared::Contraction order;
  order.sizes.assign(52, 1);
  for (int64_t i = 0; i < n; ++i) {
    const Labels& term = e->terms[static_cast<size_t>(i)];
    order.operands.push_back(0);
    for (size_t d = 0; d < term.size(); ++d) {
      double& size = order.sizes[static_cast<size_t>(term[d])];
      size = std::max(size, static_cast<double>(c.input(i).max()[d]));
      order.operands.back() |= shared::LabelSet{1} << term[d];
    }
  }
  for (const int label : e->result) order.result |= shared::LabelSet{1} << label;
  e->path = shared::find_path(order);
  plan.data = e.release();
  return Outcome::ok();
}
void release(weft_plan* plan) {
  delete static_cast<Equation*>(plan->data);
  plan->data = nullptr;
}

// A diagonal is an axis with both strides; an axis of size 1 that meets a longer one is left out.
template <class T>
Labelled<T> value_of(TensorView x, const Labels& term, std::span<const int64_t> sizes) {
  Labelled<T> v{x.data<T>(), {}};
  int64_t stride = 1;
  for (size_t d = term.size(); d-- > 0; stride *= x.dims()[d]) {
    if (x.dims()[d] != sizes[static_cast<size_t>(term[d])]) continue;
    const auto same = std::find_if(v.axes.begin(), v.axes.end(), [&](Axis a) { return a.label == term[d]; });
    if (same != v.axes.end())
      same->stride += stride;
    else
      v.axes.insert(v.axes.begin(), {term[d], x.dims()[d], stride});
  }
  return v;
}

template <class T>
void run(const Equation& e, const Launch& l) {
  std::array<int64_t, 52> sizes;
  sizes.fill(1);
  for (size_t i = 0; i < e.terms.size(); ++i)
    for (size_t d = 0; d < e.terms[i].size(); ++d) {
      int64_t& size = sizes[static_cast<size_t>(e.terms[i][d])];
      if (const int64_t own = l.input(static_cast<int64_t>(i)).dim(static_cast<int64_t>(d)); own != 1)
        size = own;
    }
  T* const y = l.output(0).template data<T>();
  std::vector<Labelled<T>> values;
  for (size_t i = 0; i < e.terms.size(); ++i)
    values.push_back(value_of<T>(l.input(static_cast<int64_t>(i)), e.terms[i], sizes));
  Temporaries<T> memory;
  std::vector<bool> left(values.size(), true);
  for (const auto& [a, b] : e.path) {
    left[a] = left[b] = false;
    const bool last = values.size() + 1 == e.terms.size() + e.path.size();
    shared::LabelSet keep = 0;
    for (size_t i = 0; i < values.size(); ++i)
      if (left[i]) keep |= set_of(values[i].axes);
    for (const int label : e.result) keep |= shared::LabelSet{1} << label;
    values.push_back(contracted<T>(l.host(), memory, values[a], values[b], keep, last ? &e.result : nullptr,
                                   last ? y : nullptr));
    left.push_back(true);
  }
  if (values.back().data != y) arranged(values.back(), e.result, y);
}

Outcome launch(const Launch& l) {
  if (l.output(0).size() == 0) return Outcome::ok();
  const auto& e = *static_cast<const Equation*>(l.raw()->plan->data);
  if (l.output(0).dtype() == DType::f64)
    run<double>(e, l);
  else
    run<float>(e, l);
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord einsum_pairs = {
    .op = "einsum",
    .variant = "pairs",
    .reads = {"equation"},
    .accepts = accepts,
    .prepare = prepare,
    .release = release,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_RUN,  // the blocks of a product depend on the sizes
};

}  // namespace weft::native

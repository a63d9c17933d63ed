#include "backends/native/convolution_call.h"

#include <algorithm>

#include "backends/native/scratch.h"
#include "weft/shared/ops/conv.hpp"

namespace weft::native {

using namespace weft::backend;
using shared::ConvBody;

namespace {

struct Kept {
  ConvBody body;
  std::optional<WantsPacked> packed;
};
const Kept& kept(const weft_plan& plan) { return *static_cast<const Kept*>(plan.data); }

// The call as a body of itself.
ConvBody bare(const OpCall& c) {
  const auto y = c.output(0).max();
  return {.conv = c.raw(), .y = {y.begin(), y.end()}};
}

// Has the body what a Tail says, in its order: a bias, then a tensor with or without one?
bool has_tail(const ConvBody& body) {
  const auto& a = body.addends;
  return a.size() <= 2 && (a.size() < 2 || (a[0].whole < 0 && a[1].whole >= 0));
}
Tail tail_of(const Launch& l, const ConvBody& body) {
  const auto at = [&](int64_t i) { return i < 0 ? nullptr : l.input(i).data<float>(); };
  Tail tail{.relu = body.relu};
  for (const shared::Addend& a : body.addends)
    if (a.whole < 0)
      tail.bias = at(a.row);
    else
      tail.more = at(a.whole), tail.more_bias = at(a.row);
  return tail;
}

// Whether results are larger than the caches, and each filter's places are whole cache lines.
bool bypasses(TensorView y) {
  constexpr int64_t kLarge = int64_t{16} << 20, kLine = 64;
  const int64_t places = shared::product(y.dims().subspan(2)) * int64_t{sizeof(float)};
  return y.bytes() >= kLarge && places % kLine == 0 && reinterpret_cast<uintptr_t>(y.data()) % kLine == 0;
}

}  // namespace

std::optional<ConvBody> convolution_body(const OpCall& c, std::string& why) {
  const bool alone = c.op() == "conv" && !c.region();
  auto body = alone ? std::nullopt : shared::conv_body(c, why);
  if (!alone && !body) return body;
  const OpCall conv = alone ? c : OpCall(body->conv);
  if (const auto s = shared::detail::accepts_conv(conv); !s) return why = s.reason, std::nullopt;
  if (alone) body = bare(c);
  if (c.input(body->x).dtype() != DType::f32)
    return why = format("dtype must be f32, got {}", c.input(body->x).dtype()), std::nullopt;
  const auto rank = static_cast<int64_t>(body->y.size());
  if (rank != 3 && rank != 4) return why = format("one or two spatial axes, got {}", rank - 2), std::nullopt;
  if (body->channels_last) return why = "channels must not be the last axis", std::nullopt;
  if (!has_tail(*body)) return why = "adds more than a bias and then a tensor", std::nullopt;
  if (body->filters >= static_cast<int64_t>(WantsPacked::kInputs))
    return why = format("filters must be one of the first {} inputs, got input {}", WantsPacked::kInputs,
                        body->filters),
           std::nullopt;
  return body;
}

Geometry filters(const OpCall& c, const ConvBody& body) {
  return filters(c.input(body.filters).max(), OpCall(body.conv).attr("groups").integer(1));
}

void keep(weft_plan& plan, ConvBody body, std::optional<Packing> packing) {
  auto all = std::make_unique<Kept>();
  if (packing) {
    all->packed.emplace(static_cast<size_t>(body.filters), std::move(*packing));
    write(&plan, &weft_plan::packings, all->packed->list.data());
  }
  all->body = std::move(body);
  plan.data = all.release();
}
void release_convolution(weft_plan* plan) { delete static_cast<Kept*>(plan->data); }

Geometry filters_to_pack(const weft_plan& plan, TensorView w) {
  return filters(w.dims(), OpCall(kept(plan).body.conv).attr("groups").integer(1));
}

Outcome launch_convolution(const Launch& l, void (*run)(const Host&, const Convolution&)) {
  const ConvBody& body = kept(*l.raw()->plan).body;
  const TensorView y = l.output(0), w = l.input(body.filters);
  if (y.size() == 0) return Outcome::ok();
  Tail tail = tail_of(l, body);
  tail.past = bypasses(y);
  const Convolution c{.g = geometry(OpCall(body.conv), l.input(body.x), w, y),
                      .x = l.input(body.x).data<float>(),
                      .filters = w,
                      .y = y.data<float>(),
                      .tail = tail};
  if (c.g.depth() > 0) return run(l.host(), c), Outcome::ok();
  std::fill_n(c.y, y.size(), 0.0f);
  for (int64_t n = 0; n < c.g.images; ++n) {
    const int64_t at = n * c.g.filters * c.g.places();
    finish(tail.at(0, at), c.g.filters, c.g.places(), c.y + at, c.g.places());
  }
  return Outcome::ok();
}

void finish(const Tail& tail, int64_t rows, int64_t columns, float* c, int64_t c_row) {
  constexpr float kZero = 0;
  float* sum = tail.more_bias ? scratch<float>(Scratch::tail, columns) : nullptr;
  for (int64_t r = 0; r < rows; ++r) {
    Link links[3];
    int n = 0;
    float* row = c + r * c_row;
    const float* more = tail.more ? tail.more + r * c_row : nullptr;
    if (tail.more_bias) {
      const Link bias{Link::Op::add, false, true, tail.more_bias + r};
      run_links(more, false, &bias, 1, sum, columns, false), more = sum;
    }
    if (tail.bias) links[n++] = {Link::Op::add, false, true, tail.bias + r};
    if (more) links[n++] = {Link::Op::add, false, false, more};
    if (tail.relu) links[n++] = {Link::Op::maximum, false, true, &kZero};
    if (n > 0) run_links(row, false, links, n, row, columns, false);
  }
}

}  // namespace weft::native

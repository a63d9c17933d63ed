#include "backends/onednn/convolution_call.h"

#include <array>

#include "backends/onednn/convolution.h"
#include "backends/onednn/product.h"
#include "weft/shared/conv_body.hpp"

namespace weft::onednn {

using namespace weft::backend;
using shared::ConvBody;

namespace {

constexpr uint32_t kFilterLayout = 1;

struct Whole {
  ConvBody body;
  RowsConvolution conv;
  std::string id;
  weft_packing packing{};
  std::array<const weft_packing*, 32> list{};  // by input
};

std::span<const int64_t> dims(const std::vector<int64_t>& v) { return v; }

std::unique_ptr<Whole> made(const OpCall& c, const ConvBody& body) {
  const OpCall conv(body.conv);
  return std::make_unique<Whole>(
      body, RowsConvolution(
                convolution_of(conv, c.input(body.x).max(), c.input(body.filters).max(), dims(body.y))));
}

// The call as a body of itself.
std::optional<ConvBody> body_of(const OpCall& c, std::string& why) {
  if (c.op() == "conv_channels_last") {
    const auto y = c.output(0).max();
    return ConvBody{.conv = c.raw(), .channels_last = true, .y = {y.begin(), y.end()}};
  }
  auto body = shared::conv_body(c, why);
  if (body && !body->channels_last) return why = "the body's channels are not last", std::nullopt;
  return body;
}

// What follows the convolution, at `count` places of y from `first` on, each of `channels` numbers: place by
// place, so that a place is read once however many parts are added.
void finish(const ConvBody& body, const Launch& l, int64_t first, int64_t count, int64_t channels) {
  float* y = l.output(0).data<float>() + first * channels;
  for (int64_t p = 0; p < count; ++p, y += channels) {
    for (const shared::Addend& a : body.addends) {
      const float* row = a.row < 0 ? nullptr : l.input(a.row).data<float>();
      const float* more = a.whole < 0 ? nullptr : l.input(a.whole).data<float>() + (first + p) * channels;
      for (int64_t c = 0; c < channels; ++c) y[c] += row && more ? more[c] + row[c] : row ? row[c] : more[c];
    }
    if (body.relu)
      for (int64_t c = 0; c < channels; ++c) y[c] = y[c] <= 0 ? 0 : y[c];  // a NaN stays
  }
}

}  // namespace

Support accepts_convolution(const OpCall& c) {
  std::string why;
  if (c.n_inputs() > 32) return Support::no("has {} inputs, 32 at most are taken", c.n_inputs());
  const auto body = body_of(c, why);
  if (!body) return {false, why};
  if (auto s = accepts_types(c); !s) return s;
  return tried([&] { (void)made(c, *body); });
}

Outcome prepare_convolution(const OpCall& c, weft_plan& plan) {
  std::string why;
  auto whole = made(c, body_of(c, why).value());
  if (c.input(whole->body.filters).constant()) {
    whole->id = whole->conv.filter_layout();
    whole->packing = {.size = sizeof(weft_packing),
                      .layout = kFilterLayout,
                      .id = whole->id.c_str(),
                      .bytes = whole->conv.filter_bytes(),
                      .alignment = 64};
    whole->list[static_cast<size_t>(whole->body.filters)] = &whole->packing;
    write(&plan, &weft_plan::packings, whole->list.data());
  } else {
    plan.workspace = whole->conv.filter_bytes();
  }
  return keep(plan, std::move(whole));
}

void release_convolution(weft_plan* plan) { release<Whole>(plan); }

Outcome pack_filters(const weft_plan& plan, int64_t, TensorView from, TensorView to, const Host&) {
  static_cast<const Whole*>(plan.data)->conv.rearrange(from.data(), to.data());
  return Outcome::ok();
}

Outcome launch_convolution(const Launch& l) {
  const auto& [body, conv, id, packing, list] = *static_cast<const Whole*>(l.raw()->plan->data);
  const TensorView given = l.input(body.filters);
  char* filters = given.layout() == kFilterLayout ? given.data() : l.workspace().data();
  if (filters != given.data()) conv.rearrange(given.data(), filters);
  l.host().parallel_for(conv.parts(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      conv.run(i, l.input(body.x).data(), filters, l.output(0).data());
      const auto [first, count] = conv.places(i);
      finish(body, l, first, count, body.y.back());
    }
  });
  return Outcome::ok();
}

}  // namespace weft::onednn

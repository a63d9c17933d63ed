#include <algorithm>

#include "backends/onednn/product.h"
#include "weft/shared/ops/conv.hpp"

// conv: one image, or some of its filters, at a time.
namespace weft::onednn {

using namespace weft::backend;

namespace {

constexpr int64_t kPieces = 16, kFilters = 16;

struct Convolution {
  Primitive whole, last;  // for `block` filters, and for the rest
  int64_t images = 0, filters = 0, block = 0, blocks = 1;
  int64_t image = 0, filter = 0, result = 0;  // bytes: of an image of x, a filter, an image's filter of y

  explicit Convolution(const OpCall& c) {
    const TypeView x = c.input(0), w = c.input(1), y = c.output(0);
    const auto bytes = static_cast<int64_t>(byte_size(y.dtype()));
    images = x.max()[0], filters = w.max()[0], block = filters;
    image = shared::product(x.max().subspan(1)) * bytes, filter = shared::product(w.max().subspan(1)) * bytes;
    result = shared::product(y.max().subspan(2)) * bytes;
    if (const int64_t pieces = kPieces / images; pieces > 1 && c.attr("groups").integer(1) == 1)
      block = std::min(filters, (filters / pieces + kFilters) / kFilters * kFilters);
    blocks = (filters + block - 1) / block;
    whole = make(c, block);
    if (const int64_t rest = filters - (blocks - 1) * block; rest != block) last = make(c, rest);
  }

  static Layout plain(DType type, std::vector<int64_t> sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
    return Layout(type_of(type), sizes, strides);
  }

  static Primitive make(const OpCall& c, int64_t size) {
    const TypeView x = c.input(0), w = c.input(1), y = c.output(0);
    const auto sizes = [](TypeView t) { return std::vector<int64_t>(t.max().begin(), t.max().end()); };
    auto xs = sizes(x), ws = sizes(w), ys = sizes(y);
    xs[0] = ys[0] = 1, ws[0] = ys[1] = size;
    if (const int64_t groups = c.attr("groups").integer(1); groups > 1)
      ws.insert(ws.begin(), groups), ws[1] /= groups;
    const auto rank = static_cast<size_t>(x.rank() - 2);
    const auto list = [&](const char* name, size_t i, int64_t missing) {
      const auto values = c.attr(name).ints();
      return values.empty() ? missing : values[i];
    };
    dnnl_dims_t strides{}, gaps{}, before{}, after{};
    for (size_t d = 0; d < rank; ++d) {
      strides[d] = list("stride", d, 1), gaps[d] = list("dilation", d, 1) - 1;
      before[d] = list("padding", 2 * d, 0), after[d] = list("padding", 2 * d + 1, 0);
      // Drops the rows that the last stride leaves unread: oneDNN wants sizes that divide evenly.
      const int64_t extent = (gaps[d] + 1) * (w.max()[2 + d] - 1) + 1;
      after[d] = (y.max()[2 + d] - 1) * strides[d] + extent - x.max()[2 + d] - before[d];
    }
    const Layout lx = plain(y.dtype(), xs), lw = plain(y.dtype(), ws), ly = plain(y.dtype(), ys);
    const Attributes attributes(Epilogue::none, false);
    return Primitive::make([&](dnnl_primitive_desc_t* desc) {
      return library().dnnl_convolution_forward_primitive_desc_create(
          desc, library().engine, dnnl_forward_inference, dnnl_convolution_direct, lx.get(), lw.get(),
          nullptr, ly.get(), strides, gaps, before, after, attributes.get());
    });
  }

  void run(const Launch& l) const {
    l.host().parallel_for(images * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / blocks, b = i % blocks, first = b * block;
        const Primitive::Argument all[] = {
            {DNNL_ARG_SRC, l.input(0).data() + n * image},
            {DNNL_ARG_WEIGHTS, l.input(1).data() + first * filter},
            {DNNL_ARG_DST, l.output(0).data() + (n * filters + first) * result}};
        (last && b == blocks - 1 ? last : whole).run(all);
      }
    });
  }
};

Support accepts(const OpCall& c) {
  if (auto s = shared::detail::accepts_conv(c); !s) return s;
  if (auto s = accepts_types(c); !s) return s;
  return tried([&] { Convolution convolution(c); });
}

Outcome prepare(const OpCall& c, weft_plan& plan) { return keep(plan, std::make_unique<Convolution>(c)); }

Outcome launch(const Launch& l) {
  static_cast<const Convolution*>(l.raw()->plan->data)->run(l);
  return Outcome::ok();
}

}  // namespace

extern const KernelRecord conv_images = {
    .op = "conv",
    .variant = "images",
    .reads = {"stride", "padding", "dilation", "groups"},
    .accepts = accepts,
    .prepare = prepare,
    .release = release<Convolution>,
    .launch = launch,
    .determinism = WEFT_DETERMINISM_RUN,  // blocks depend on the number of images
};

}  // namespace weft::onednn

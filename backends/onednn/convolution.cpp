#include "backends/onednn/convolution.h"

#include <algorithm>

#include "weft/shared/walk.hpp"

namespace weft::onednn {

using namespace weft::backend;

namespace {

constexpr int64_t kWorth = 1 << 24;  // multiply-adds of a part
constexpr int64_t kMostParts = 16;   // of an image

// Elements of [1, channels, size...] where channels lie side by side.
std::vector<int64_t> steps_of(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> steps(sizes.size(), 1);
  int64_t step = sizes[1];
  for (size_t d = sizes.size() - 1; d >= 2; --d) steps[d] = step, step *= sizes[d];
  steps[0] = step;
  return steps;
}

std::vector<int64_t> plain_steps(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> steps(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d-- > 0;) steps[d] = steps[d + 1] * sizes[d + 1];
  return steps;
}

}  // namespace

int64_t Convolution::places() const { return shared::product(out); }
int64_t Convolution::multiply_adds() const {
  return places() * filters * channels / groups * shared::product(window);
}

Convolution convolution_of(const OpCall& call, std::span<const int64_t> x, std::span<const int64_t> w,
                           std::span<const int64_t> y) {
  const size_t rank = x.size() - 2;
  Convolution c{.type = call.output(0).dtype(),
                .images = x[0],
                .channels = x.back(),
                .filters = w[0],
                .groups = call.attr("groups").integer(1)};
  for (size_t d = 0; d < rank; ++d) {
    const auto listed = [&](const char* name, size_t i, int64_t missing) {
      const auto list = call.attr(name).ints();
      return list.empty() ? missing : list[i];
    };
    c.in.push_back(x[1 + d]), c.window.push_back(w[2 + d]), c.out.push_back(y[1 + d]);
    c.stride.push_back(listed("stride", d, 1)), c.dilation.push_back(listed("dilation", d, 1));
    c.before.push_back(listed("padding", 2 * d, 0));
  }
  return c;
}

RowsConvolution::RowsConvolution(const Convolution& c) : c_(c) {
  const auto sizes = filter_sizes();
  any_ = Layout(type_of(c.type), sizes);
  plain_ = Layout(type_of(c.type), sizes, plain_steps(sizes));
  const int64_t wanted = std::clamp<int64_t>(c.multiply_adds() / kWorth, 1, std::min(kMostParts, c.out[0]));
  if (wanted == 1 || !cut((c.out[0] + wanted - 1) / wanted)) cut(c.out[0]);
  const Attributes attributes(Epilogue::none, false);
  const auto* packed = kinds_.front().second.layout(DNNL_ARG_WEIGHTS);
  reorder_ = Primitive::make([&](dnnl_primitive_desc_t* desc) {
    return library().dnnl_reorder_primitive_desc_create(desc, plain_.get(), library().engine, packed,
                                                        library().engine, attributes.get());
  });
}

// Whether oneDNN has a kernel for all parts, of filters in one layout. It has for most sizes, not for all.
bool RowsConvolution::cut(int64_t rows_of_part) {
  rows_ = rows_of_part, per_image_ = (c_.out[0] + rows_ - 1) / rows_;
  kinds_.clear(), kind_of_.clear();
  for (int64_t i = 0; i < per_image_; ++i) {
    const Rows r = rows(i);
    const auto known = std::ranges::find_if(kinds_, [&](const auto& k) { return k.first.like(r); });
    kind_of_.push_back(static_cast<size_t>(known - kinds_.begin()));
    if (known != kinds_.end()) continue;
    try {
      if (r.in_count < 1) throw Unsupported{"windows see nothing but padding"};
      kinds_.emplace_back(r, make(r));
    } catch (const Unsupported&) {
      if (per_image_ == 1) throw;
      return false;
    }
  }
  return true;
}

std::vector<int64_t> RowsConvolution::filter_sizes() const {
  std::vector<int64_t> sizes = {c_.filters, c_.channels / c_.groups};
  sizes.insert(sizes.end(), c_.window.begin(), c_.window.end());
  if (c_.groups > 1) sizes[0] /= c_.groups, sizes.insert(sizes.begin(), c_.groups);
  return sizes;
}

bool RowsConvolution::Rows::like(const Rows& o) const {
  return count == o.count && in_count == o.in_count && before == o.before && after == o.after;
}

RowsConvolution::Rows RowsConvolution::rows(int64_t index) const {
  const int64_t first = index * rows_, count = std::min(rows_, c_.out[0] - first);
  const int64_t begin = first * c_.stride[0] - c_.before[0];
  const int64_t end = begin + (count - 1) * c_.stride[0] + (c_.window[0] - 1) * c_.dilation[0] + 1;
  const int64_t in_first = std::clamp<int64_t>(begin, 0, c_.in[0]), in_end = std::min(end, c_.in[0]);
  return {first, count, in_first, in_end - in_first, in_first - begin, end - in_end};
}

Primitive RowsConvolution::make(const Rows& r) const {
  std::vector<int64_t> xs = {1, c_.channels}, ys = {1, c_.filters};
  xs.insert(xs.end(), c_.in.begin(), c_.in.end()), ys.insert(ys.end(), c_.out.begin(), c_.out.end());
  xs[2] = r.in_count, ys[2] = r.count;
  dnnl_dims_t stride{}, gaps{}, before{}, after{};
  for (size_t d = 0; d < c_.in.size(); ++d) {
    stride[d] = c_.stride[d], gaps[d] = c_.dilation[d] - 1, before[d] = d == 0 ? r.before : c_.before[d];
    const int64_t extent = c_.dilation[d] * (c_.window[d] - 1) + 1;
    // At most what is read: rows that the last stride leaves unread are none of oneDNN's concern.
    after[d] =
        d == 0 ? r.after : std::max<int64_t>(0, (c_.out[d] - 1) * stride[d] + extent - c_.in[d] - before[d]);
  }
  const Layout x(type_of(c_.type), xs, steps_of(xs)), y(type_of(c_.type), ys, steps_of(ys));
  const const_dnnl_memory_desc_t w =
      kinds_.empty() ? any_.get() : kinds_.front().second.layout(DNNL_ARG_WEIGHTS);
  const Attributes attributes(Epilogue::none, false);
  return Primitive::make([&](dnnl_primitive_desc_t* desc) {
    return library().dnnl_convolution_forward_primitive_desc_create(
        desc, library().engine, dnnl_forward_inference, dnnl_convolution_direct, x.get(), w, nullptr, y.get(),
        stride, gaps, before, after, attributes.get());
  });
}

RowsConvolution::Places RowsConvolution::places(int64_t part) const {
  const int64_t image = part / per_image_, row = c_.places() / c_.out[0];
  const Rows r = rows(part % per_image_);
  return {image * c_.places() + r.first * row, r.count * row};
}

void RowsConvolution::run(int64_t part, char* x, char* filters, char* y) const {
  const auto bytes = static_cast<int64_t>(byte_size(c_.type));
  const int64_t image = part / per_image_, index = part % per_image_;
  const int64_t size = shared::product(c_.in), row = size / c_.in[0];
  const int64_t from = (image * size + rows(index).in_first * row) * c_.channels * bytes;
  const Primitive::Argument all[] = {{DNNL_ARG_SRC, x + from},
                                     {DNNL_ARG_WEIGHTS, filters},
                                     {DNNL_ARG_DST, y + places(part).first * c_.filters * bytes}};
  kinds_[kind_of_[static_cast<size_t>(index)]].second.run(all);
}

uint64_t RowsConvolution::filter_bytes() const {
  return library().dnnl_memory_desc_get_size(kinds_.front().second.layout(DNNL_ARG_WEIGHTS));
}

std::string RowsConvolution::filter_layout() const {
  const auto list = [](const std::vector<int64_t>& v) {
    std::string s;
    for (const int64_t i : v) s += format(" {}", i);
    return s;
  };
  return format(
      "onednn.filters.1 {} {} of [{}, {}] in {} groups, window{}, from{} to{} by{} gaps{} padding{} parts {}",
      library().version, c_.type, c_.filters, c_.channels, c_.groups, list(c_.window), list(c_.in),
      list(c_.out), list(c_.stride), list(c_.dilation), list(c_.before), per_image_);
}

void RowsConvolution::rearrange(char* from, char* to) const {
  const Primitive::Argument all[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  reorder_.run(all);
}

}  // namespace weft::onednn

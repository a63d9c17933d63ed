#include <cmath>

#include "weft/ops.h"
#include "weft/vision.h"

namespace weft::nn {
namespace {

const ResNetConfig& checked(const ResNetConfig& c) {
  if (c.channels < 1 || c.classes < 1 || c.blocks < 1 || c.widths.empty())
    throw Error(invalid("ResNet: sizes must be at least 1, got channels {}, classes {}, blocks {}, {} widths",
                        c.channels, c.classes, c.blocks, c.widths.size()));
  for (size_t i = 0; i < c.widths.size(); ++i)
    if (c.widths[i] < 1 || (i > 0 && c.widths[i] < c.widths[i - 1]))
      throw Error(
          invalid("ResNet: each width must be at least that before it, shortcuts only add channels; "
                  "got {}",
                  text(c.widths)));
  return c;
}

// 3 x 3 without a bias, which the following norm would cancel.
Conv2d conv3x3(int64_t in, int64_t out, int64_t stride) {
  const Conv2dConfig c{.in = in, .out = out, .stride = stride, .padding = 1, .bias = false};
  return Conv2d(c, Initial::normal(std::sqrt(2 / static_cast<double>(Conv2d::fan_in(c)))));
}

}  // namespace

ResNet::Block::Block(int64_t in, int64_t out, int64_t step)
    : conv1(conv3x3(in, out, step)),
      conv2(conv3x3(out, out, 1)),
      norm1(out),
      norm2(out),
      more(out - in),
      stride(step) {}

void ResNet::Block::fields(Fields& f) {
  f.child("conv1", conv1), f.child("norm1", norm1), f.child("conv2", conv2), f.child("norm2", norm2);
}

Tensor ResNet::Block::shortcut(const Tensor& x) const {
  Tensor y = x;
  if (stride > 1)
    for (const int64_t axis : {2, 3}) y = slice(y, axis, 0, y.dim(axis), stride);
  return more > 0 ? pad(y, 1, 0, more) : y;
}

Tensor ResNet::Block::operator()(const Tensor& x) const {
  const Scope here = scope();
  const Tensor y = relu(norm1(conv1(x)));
  return relu(norm2(conv2(y)) + shortcut(x));
}

ResNet::ResNet(const ResNetConfig& config)
    : config_(checked(config)),
      conv_(conv3x3(config_.channels, config_.widths.front(), 1)),
      norm_(config_.widths.front()),
      scores_(config_.widths.back(), config_.classes) {
  int64_t width = config_.widths.front();
  for (size_t stage = 0; stage < config_.widths.size(); ++stage)
    for (int64_t i = 0; i < config_.blocks; ++i) {
      const int64_t out = config_.widths[stage];
      blocks_.emplace_back(width, out, stage > 0 && i == 0 ? 2 : 1);
      width = out;
    }
}

void ResNet::fields(Fields& f) {
  f.child("conv", conv_), f.child("norm", norm_);
  f.children("blocks", blocks_);
  f.child("scores", scores_);
}

Tensor ResNet::operator()(const Tensor& images) const {
  if (images.rank() != 4 || !(images.dim(1) == Dim(config_.channels)))
    throw Error(invalid("ResNet: images must be [batch, {}, height, width], got {}", config_.channels,
                        text(images.type())));
  Tensor x = relu(norm_(conv_(images)));
  for (const Block& block : blocks_) x = block(x);
  return scores_(global_average_pool(x));
}

}  // namespace weft::nn

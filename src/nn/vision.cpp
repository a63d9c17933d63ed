#include "weft/vision.h"

#include <cmath>

#include "weft/ops.h"

namespace weft::nn {

static const Conv2dConfig& checked(const Conv2dConfig& c) {
  if (c.in < 1 || c.out < 1 || c.kernel < 1 || c.stride < 1 || c.dilation < 1 || c.padding < 0)
    throw Error(
        invalid("Conv2d: sizes must be at least 1, padding 0, got in {}, out {}, kernel {}, stride {}, "
                "dilation {}, padding {}",
                c.in, c.out, c.kernel, c.stride, c.dilation, c.padding));
  if (c.groups < 1 || c.in % c.groups != 0 || c.out % c.groups != 0)
    throw Error(invalid("Conv2d: {} groups don't divide {} channels in, {} out", c.groups, c.in, c.out));
  return c;
}

int64_t Conv2d::fan_in(const Conv2dConfig& c) { return c.in / c.groups * c.kernel * c.kernel; }

Conv2d::Conv2d(const Conv2dConfig& config)
    : config_(checked(config)),
      first_weight_(Initial::uniform(1 / std::sqrt(static_cast<double>(fan_in(config))))),
      first_bias_(first_weight_) {}
Conv2d::Conv2d(const Conv2dConfig& config, Initial first) : config_(checked(config)), first_weight_(first) {}

void Conv2d::fields(Fields& f) {
  const auto& c = config_;
  f.parameter("weight", weight, {c.out, c.in / c.groups, c.kernel, c.kernel}, first_weight_);
  if (c.bias) f.parameter("bias", bias, {c.out}, first_bias_);
}
Tensor Conv2d::operator()(const Tensor& x) const {
  const Scope here = scope();
  const auto& c = config_;
  const Shape stride = {c.stride, c.stride}, padding = {c.padding, c.padding, c.padding, c.padding};
  const Tensor y =
      conv(x, built(weight, "Conv2d.weight"), stride, padding, {c.dilation, c.dilation}, c.groups);
  return c.bias ? y + reshape(built(bias, "Conv2d.bias"), {c.out, 1, 1}) : y;
}

BatchNorm2d::BatchNorm2d(int64_t channels, double eps, double part)
    : epsilon(eps), momentum(part), channels_(channels) {}

static DType of_statistics(DType model) { return is_half(model) ? DType::f32 : model; }

void BatchNorm2d::fields(Fields& f) {
  f.parameter("weight", weight, {channels_}, Initial::constant(1));
  f.parameter("bias", bias, {channels_});
  f.state("running_mean", running_mean, {channels_}, of_statistics(f.dtype()));
  f.state("running_variance", running_variance, {channels_}, of_statistics(f.dtype()), Initial::constant(1));
}
Tensor BatchNorm2d::operator()(const Tensor& x) const {
  const Scope here = scope();
  if (training && x.rank() == 4 && x.dim(0) * x.dim(2) * x.dim(3) == Dim(1))
    throw Error(in_scope(
        invalid("BatchNorm2d: training wants more than one number a channel, got {}", text(x.type()))));
  const bool half = is_half(x.dtype());
  const auto widened = [&](const Tensor& t) { return half ? cast(t, DType::f32) : t; };
  const Tensor &mean = built(running_mean, "BatchNorm2d.running_mean"), in = widened(x);
  const Tensor scale = widened(weight), shift = widened(bias);
  const Tensor y = training ? batch_norm_train(in, mean, running_variance, scale, shift, momentum, epsilon)
                            : batch_norm(in, mean, running_variance, scale, shift, epsilon);
  return half ? cast(y, x.dtype()) : y;
}

Tensor global_average_pool(const Tensor& x) {
  if (x.rank() != 4)
    throw Error(in_scope(
        invalid("global_average_pool: wants [batch, channels, height, width], got {}", text(x.type()))));
  return mean(x, {2, 3});
}
Tensor flatten(const Tensor& x) {
  if (x.rank() < 1) throw Error(in_scope(invalid("flatten: wants [batch, n...], got {}", text(x.type()))));
  Dim n = 1;
  for (int64_t d = 1; d < x.rank(); ++d) n = n * x.dim(d);
  return reshape(x, {x.dim(0), n});
}

}  // namespace weft::nn

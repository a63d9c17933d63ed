#pragma once
#include "weft/nn.h"

// Layers for images, [batch, channels, height, width], and a model that is known by name, made of them.
namespace weft::nn {

struct Conv2dConfig {
  int64_t in = 0, out = 0;  ///< channels
  int64_t kernel = 3;       ///< height and width
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
};

/// Slides `out` kernels over the images; a correlation, nothing is flipped.
///
/// Shape    x [batch, in, height, width] -> [batch, out, ...], each size
///          floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1;
///          weight [out, in / groups, kernel, kernel], bias [out] or none.
/// Numerics both begin even in +-1 / sqrt(in / groups kernel kernel), as in PyTorch; where `first` says how
///          the weight does, the bias is zero.
/// Errors   invalid_argument for sizes below 1, and channels that are no whole groups.
/// Source   LeCun et al., Gradient-based learning applied to document recognition (1998).
class Conv2d : public Module {
 public:
  explicit Conv2d(const Conv2dConfig& config);
  Conv2d(const Conv2dConfig& config, Initial first);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x) const;
  /// How many numbers each output is made of: what an initialisation goes by.
  static int64_t fan_in(const Conv2dConfig& config);

  Tensor weight, bias;

 private:
  Conv2dConfig config_;
  Initial first_weight_, first_bias_;
};

/// Mean 0 and variance 1 for each channel, then a learned scale and shift. In training these are statistics
/// of the batch, and running ones, which take over afterwards, move towards them.
///
/// Shape    same as x [batch, channels, height, width]; all tensors [channels].
/// DType    in f16 and bf16 the statistics are f32: what moves by a tenth would be lost.
/// Numerics the running variance is over n - 1, what normalizes a batch over n.
/// Errors   invalid_argument in training for one number a channel, which has no variance.
/// Source   Ioffe and Szegedy, Batch normalization (ICML 2015).
class BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(int64_t channels, double epsilon = 1e-5, double momentum = 0.1);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x) const;

  Tensor weight, bias, running_mean, running_variance;
  double epsilon, momentum;

 private:
  int64_t channels_;
};

/// The mean of each channel.
///
/// Shape    x [batch, channels, height, width] -> [batch, channels].
/// Errors   invalid_argument for x of another rank.
/// Source   Lin et al., Network in network (ICLR 2014), section 3.2.
[[nodiscard]] Tensor global_average_pool(const Tensor& x);

/// All axes but the first as one.
///
/// Shape    x [batch, n...] -> [batch, product of n].
/// Errors   invalid_argument for x of rank 0.
[[nodiscard]] Tensor flatten(const Tensor& x);

struct ResNetConfig {
  int64_t channels = 3;  ///< of an image
  int64_t classes = 10;
  std::vector<int64_t> widths = {16, 32, 64};  ///< channels of each stage
  int64_t blocks = 3;                          ///< of each stage, two layers each: 3 make ResNet-20
  friend bool operator==(const ResNetConfig&, const ResNetConfig&) = default;
};

/// The residual network for small images: every stage but the first halves height and width. Shortcuts have
/// no parameters: where a stage begins they keep every second pixel, and new channels get zeros.
///
/// Shape    images [batch, channels, height, width] -> logits [batch, classes]; batch may be a symbol.
/// Numerics convolutions begin normal with variance 2 / fan-in, which relu keeps (He et al., Delving deep
///          into rectifiers, ICCV 2015).
/// Errors   invalid_argument for sizes below 1, widths that shrink, and images of another rank or number of
///          channels.
/// Source   He et al., Deep residual learning for image recognition (CVPR 2016), section 4.2.
class ResNet : public Module {
 public:
  explicit ResNet(const ResNetConfig& config);
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& images) const;
  const ResNetConfig& config() const { return config_; }

 private:
  struct Block : Module {
    Block(int64_t in, int64_t out, int64_t stride);
    void fields(Fields& f) override;
    Tensor operator()(const Tensor& x) const;
    Tensor shortcut(const Tensor& x) const;
    Conv2d conv1, conv2;
    BatchNorm2d norm1, norm2;
    int64_t more, stride;  // channels
  };
  ResNetConfig config_;
  Conv2d conv_;
  BatchNorm2d norm_;
  std::vector<Block> blocks_;
  Linear scores_;
};

}  // namespace weft::nn

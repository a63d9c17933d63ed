#pragma once
#include "backends/onednn/primitive.h"

// Convolutions whose channels lie side by side, in rows of which one thread computes some.
namespace weft::onednn {

/// y [images, out..., filters] of x [images, in..., channels]; the filters are [filters, channels / groups,
/// window...] as conv has them.
struct Convolution {
  DType type = DType::f32;
  int64_t images = 0, channels = 0, filters = 0, groups = 1;
  std::vector<int64_t> in, window, out;  ///< of each spatial axis
  std::vector<int64_t> stride, dilation, before;

  int64_t places() const;         ///< of an image of y
  int64_t multiply_adds() const;  ///< of an image
};
/// Of a call of conv, or of conv_channels_last, whose operands and attributes these are.
Convolution convolution_of(const backend::OpCall& call, std::span<const int64_t> x,
                           std::span<const int64_t> w, std::span<const int64_t> y);

/// Cut along the first spatial axis by its sizes alone, so the number of threads changes no result. The
/// filters are in oneDNN's own layout, which is the same for all parts.
class RowsConvolution {
 public:
  /// Throws Unsupported.
  explicit RowsConvolution(const Convolution& c);

  int64_t parts() const { return c_.images * per_image_; }
  /// The places of y, of all images, that a part computes: the first one, and how many.
  struct Places {
    int64_t first, count;
  };
  Places places(int64_t part) const;
  void run(int64_t part, char* x, char* filters, char* y) const;

  uint64_t filter_bytes() const;
  /// Names the layout and all that it depends on.
  std::string filter_layout() const;
  void rearrange(char* from, char* to) const;

 private:
  struct Rows {
    int64_t first, count;            // of y
    int64_t in_first, in_count;      // of x
    int64_t before, after;           // padding
    bool like(const Rows& o) const;  // the same primitive
  };
  bool cut(int64_t rows_of_part);
  Rows rows(int64_t index) const;
  Primitive make(const Rows& rows) const;
  std::vector<int64_t> filter_sizes() const;

  Convolution c_;
  int64_t rows_ = 0, per_image_ = 1;  // rows of a part, parts of an image
  Layout any_, plain_;                // of the filters
  std::vector<std::pair<Rows, Primitive>> kinds_;
  std::vector<size_t> kind_of_;  // by part of an image
  Primitive reorder_;
};

}  // namespace weft::onednn

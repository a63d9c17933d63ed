#pragma once
#include <cstdint>

// Functions over one contiguous row of f32, in the best instruction set of this machine. Sums use several f32
// lanes for a thousand elements, and a double beyond.
namespace weft::native {

double sum(const float* x, int64_t n);
/// The maximum; -inf for n = 0, NaN if any element is.
float max(const float* x, int64_t n);
/// Sum of (x - shift)^2.
double sum_of_squares(const float* x, float shift, int64_t n);
double dot(const float* x, const float* y, int64_t n);

/// y = exp(x - shift); returns the sum. y may be x, or null for the sum alone.
double exp_of_row(const float* x, float shift, float* y, int64_t n);
/// y = (x - shift) * scale * weight + bias; a null weight is ones, a null bias zeros. y may be x.
void affine(const float* x, float shift, float scale, const float* weight, const float* bias, float* y,
            int64_t n);
/// y = gelu(x), and dx = dy gelu'(x); see src/ops/gelu.cpp. y may be x, dx any of its operands.
void gelu(const float* x, bool approximate, float* y, int64_t n);
void gelu_grad(const float* x, const float* dy, bool approximate, float* dx, int64_t n);
/// to += x and to = max(to, x), element by element.
void add_to(float* to, const float* x, int64_t n);
void max_to(float* to, const float* x, int64_t n);

/// One block of attention: `scores` [keys, columns], a column for each query, become exp(scores - most).
/// `most` and `total` are running values over the blocks of a query; multiply the sums of earlier blocks by
/// `factor`.
void softmax_columns(float* scores, int64_t keys, int64_t columns, float* most, float* total, float* factor);
/// scores become the weights exp(scores - lse), and slopes weights * (slopes - sum) * scale.
void softmax_slopes(float* scores, float* slopes, int64_t keys, int64_t columns, const float* lse,
                    const float* sum, float scale);

/// The gradient of a normalized row h = (x - mean) * scale, with g = dy * weight; a null weight is ones.
struct NormedRow {
  const float *x, *dy, *weight;
  float mean, scale;
};
/// The sums of g and of g h.
struct NormSums {
  double slope, along;
};
NormSums norm_sums(const NormedRow& r, int64_t n);
/// dx = scale * (g - slope - h * along), or += if it adds; and dweight += dy h, dbias += dy unless null.
void norm_grad(const NormedRow& r, float slope, float along, float* dx, bool adds, float* dweight,
               float* dbias, int64_t n);

/// One AdamW update of n elements; see src/ops/adamw_step.cpp. The factors are those of one step.
struct AdamwFactors {
  float beta1, rest1, beta2, rest2;  ///< rest = 1 - beta
  float mean_scale, square_scale;    ///< 1 / weights of the moving averages
  float decay, rate, epsilon;
};
void adamw(const AdamwFactors& f, float* parameter, const float* gradient, float* mean, float* square,
           int64_t n);

}  // namespace weft::native

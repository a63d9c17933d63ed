#include <array>
#include <span>
#include <vector>

#include "measure.hpp"

// Softmax, norms and cross entropy of 2^26 elements in bf16; and errors of norms and losses.
namespace weft::bench {

namespace {

/// Four calls of an op on different inputs. `passes`: how often it must read or write all elements.
void measure_row_op(const std::string& op, int64_t columns, double passes,
                    const std::function<Tensor(const Tensor&)>& f) {
  constexpr int64_t kElements = int64_t{1} << 26;
  constexpr int kCalls = 4;
  std::vector<Tensor> inputs;
  std::vector<InputSpec> specs;
  for (int i = 0; i < kCalls; ++i) {
    inputs.push_back(random(static_cast<uint64_t>(i + 1), {kElements / columns, columns}));
    specs.push_back(spec_of("x" + std::to_string(i), inputs.back()));
  }
  auto program = compile(
      [&](const std::vector<Tensor>& in) {
        std::vector<Tensor> out;
        for (const Tensor& x : in) out.push_back(f(x));
        return out;
      },
      specs);
  print(op, kElements / columns, columns, seconds(program, inputs) / kCalls, passes * kElements * 2);
}

}  // namespace

void measure_rows() {
  for (const int64_t columns : {1024, 4096, 16384, 32768, 131072}) {
    const Tensor weight = random(7, {columns}), bias = random(8, {columns});
    const int64_t count = (int64_t{1} << 26) / columns;
    const Tensor target =
        cast(random(9, {count}, DType::f32) * Tensor::scalar(500) + Tensor::scalar(500), DType::i32);
    measure_row_op("softmax", columns, 2, [](const Tensor& x) { return softmax(x); });
    measure_row_op("layer_norm", columns, 2, [&](const Tensor& x) { return layer_norm(x, weight, bias); });
    measure_row_op("rms_norm", columns, 2, [&](const Tensor& x) { return rms_norm(x, weight); });
    measure_row_op("cross_entropy", columns, 1, [&](const Tensor& x) { return cross_entropy(x, target); });
  }
}

namespace {

/// Classes below 1,000 of so many rows, every fifth of which does not count; of one row alone, only that one.
Tensor classes_of(int64_t rows, int64_t alone = -1) {
  std::vector<int32_t> all;
  for (int64_t r = 0; r < rows; ++r)
    all.push_back((alone < 0 ? r % 5 == 0 : r != alone) ? -100 : static_cast<int32_t>(r * 37 % 1000));
  return Tensor::of(std::span<const int32_t>(all), std::array{rows}, DType::i32);
}
/// cross_entropy in f32 on the CPU, beside what this backend gives.
bool check_loss(const std::string& what, const Tensor& x, const Tensor& classes) {
  const auto loss = [&](const Tensor& of, const Tensor& at) {
    return cross_entropy(of, at, Tensor(), -100, 0, true);
  };
  const Tensor got = loss(x, classes).to("native"),
               exact = loss(cast(x, DType::f32).to("native"), classes.to("native"));
  return show_error("cross_entropy of " + what, error_of({got}, {exact}), DType::f32);
}
/// Of rows in two to sixteen parts, and of more rows than the block that joins these has threads.
bool check_losses() {
  bool good = true;
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    for (const int64_t rows : {512, 520})
      for (const int64_t columns : {16392, 20000, 32768, 50000, 131072}) {
        const Tensor x = random(1, {rows, columns}, dtype) * Tensor::scalar(8, dtype);
        const std::string of_rows =
            std::to_string(rows) + " rows of " + weft::name(dtype) + ", " + std::to_string(columns);
        good &= check_loss(of_rows, x, classes_of(rows));
        if (columns == 20000)
          for (const int64_t alone : {int64_t{0}, int64_t{511}, rows - 1})
            good &= check_loss(of_rows + ", row " + std::to_string(alone), x, classes_of(rows, alone));
        const Tensor with_infinities = log(relu(x));
        good &= check_loss(of_rows + ", half -infinity", with_infinities, argmax(with_infinities, -1));
      }
  return good;
}

}  // namespace

/// Softmax and norms of rows of many lengths, several for each block or cluster: results beside those of f32
/// by other ops; and losses.
bool check_rows() {
  bool good = check_losses();
  for (const DType dtype : {DType::bf16, DType::f32})
    for (const int64_t columns : {776, 1024, 3072, 8192, 12288, 16384, 20000, 32768, 65536, 100000, 131072}) {
      const Tensor x = random(1, {300, columns}, dtype) + random(4, {300, 1}, dtype),
                   w = random(2, {columns}, dtype), b = random(3, {columns}, dtype);
      const Tensor of = cast(x, DType::f32), by = cast(w, DType::f32), more = cast(b, DType::f32);
      const auto n = static_cast<double>(columns);
      const auto mean = [&](const Tensor& t) { return sum(t, {1}, true) * Tensor::scalar(1 / n); };
      const Tensor epsilon = Tensor::scalar(1e-5), apart = of - mean(of);
      const Tensor normed = apart / sqrt(mean(apart * apart) + epsilon) * by + more,
                   scaled = of / sqrt(mean(of * of) + epsilon) * by;
      const Tensor e = exp(of - max(of, {1}, true)), shares = e / sum(e, {1}, true);
      const std::string of_rows = std::string(" of ") + weft::name(dtype) + ", " + std::to_string(columns);
      good &= show_error("softmax" + of_rows, error_of({softmax(x)}, {shares}), dtype);
      good &= show_error("layer_norm" + of_rows, error_of({layer_norm(x, w, b)}, {normed}), dtype);
      good &= show_error("rms_norm" + of_rows, error_of({rms_norm(x, w)}, {scaled}), dtype);
    }
  return good;
}

}  // namespace weft::bench

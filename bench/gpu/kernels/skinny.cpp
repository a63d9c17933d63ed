#include <iterator>
#include <utility>

#include "measure.hpp"

// Products of 1 to 16 rows with weights of an 8B model, and their errors.
namespace weft::bench {

namespace {

/// A chain of products, each of which needs the one before: there and back between two widths.
void measure_chain(int64_t rows, int64_t in, int64_t out) {
  const int64_t pairs = (int64_t{1} << 29) / (2 * 2 * in * out) + 1;
  std::vector<Tensor> weights;
  for (int64_t i = 0; i < pairs; ++i) {
    weights.push_back(random(static_cast<uint64_t>(2 * i), {out, in}) * Tensor::scalar(0.03, DType::bf16));
    weights.push_back(random(static_cast<uint64_t>(2 * i + 1), {in, out}) *
                      Tensor::scalar(0.03, DType::bf16));
  }
  const Tensor x = random(1, {rows, in});
  auto program = compile(
      [&](const std::vector<Tensor>& inputs) {
        Tensor y = inputs[0];
        for (const Tensor& w : weights) y = linear(y, w);
        return std::vector<Tensor>{y};
      },
      {spec_of("x", x)});
  const auto calls = static_cast<double>(weights.size());
  print("linear " + std::to_string(in) + "-" + std::to_string(out), rows, in, seconds(program, {x}) / calls,
        2.0 * static_cast<double>(in * out));
}

/// Microseconds of a layer: the four launches of a layer of Qwen3-8B's shape, each of which needs the one
/// before, without what lies between them.
void measure_layer(int64_t rows) {
  constexpr int64_t kLayers = 3, kWidth = 4096, kKeys = 1024, kHidden = 12288;
  uint64_t seed = 1;
  const auto weight = [&](int64_t out, int64_t in) {
    return random(++seed, {out, in}) * Tensor::scalar(0.03, DType::bf16);
  };
  struct Layer {
    Tensor q, k, v, o, gate, up, down;
  };
  std::vector<Layer> layers;
  for (int64_t i = 0; i < kLayers; ++i)
    layers.push_back({weight(kWidth, kWidth), weight(kKeys, kWidth), weight(kKeys, kWidth),
                      weight(kWidth, kWidth), weight(kHidden, kWidth), weight(kHidden, kWidth),
                      weight(kWidth, kHidden)});
  const Tensor x = random(1, {rows, kWidth});
  auto program = compile(
      [&](const std::vector<Tensor>& inputs) {
        Tensor y = inputs[0];
        std::vector<Tensor> out;
        for (const Layer& l : layers) {
          out.push_back(linear(y, l.k)), out.push_back(linear(y, l.v));
          y = linear(linear(y, l.q), l.o);
          y = linear(silu(linear(y, l.gate)) * linear(y, l.up), l.down);
        }
        out.push_back(y);
        return out;
      },
      {spec_of("x", x)});
  print("layer 8b", rows, kWidth, seconds(program, {x}) / kLayers,
        2.0 * kWidth * (2 * kWidth + 2 * kKeys + 3 * kHidden));
}

}  // namespace

void measure_skinny() {
  for (const int64_t rows : {1, 2, 4, 8, 16}) {
    measure_layer(rows);
    measure_chain(rows, 4096, 4096);
    measure_chain(rows, 4096, 1024);
    measure_chain(rows, 4096, 12288);
  }
}

/// What is launched as products of few rows, each by itself: results beside those of f32.
bool check_skinny() {
  bool good = true;
  const auto scaled = [](uint64_t seed, int64_t out, int64_t in) {
    return random(seed, {out, in}) * Tensor::scalar(0.03, DType::bf16);
  };
  const Tensor wide = scaled(1, 12288, 4096), back = scaled(2, 4096, 12288), square = scaled(3, 4096, 4096),
               narrow = scaled(4, 1024, 4096), gate = scaled(5, 12288, 4096), odd = scaled(6, 12296, 4040),
               odd_gate = scaled(11, 12296, 4040);
  const Op product = [](const std::vector<Tensor>& in) { return std::vector{linear(in[0], in[1])}; };
  const Op with_residual = [](const std::vector<Tensor>& in) {
    return std::vector{linear(in[0], in[1]) + in[2]};
  };
  const Op gated = [](const std::vector<Tensor>& in) {
    return std::vector{silu(linear(in[0], in[1])) * linear(in[0], in[2])};
  };
  const Op three = [](const std::vector<Tensor>& in) {
    return std::vector{linear(in[0], in[1]), linear(in[0], in[2]), linear(in[0], in[3])};
  };
  const std::pair<const char*, Op> ops[] = {{"4096-12288", product},
                                            {"12288-4096 and a residual", with_residual},
                                            {"4096-12288 and a residual", with_residual},
                                            {"4096-4096, 1024, 12288 of one x", three},
                                            {"4096-12288 gated", gated},
                                            {"4040-12296", product},
                                            {"4040-12296 gated", gated}};
  for (const int64_t rows : {2, 5, 8, 9, 16}) {
    const Tensor x = random(7, {rows, 4096}), odd_x = random(10, {rows, 4040});
    const std::vector<Tensor> inputs[] = {{x, wide},
                                          {random(8, {rows, 12288}), back, random(9, {rows, 4096})},
                                          {x, wide, random(12, {rows, 12288})},
                                          {x, square, narrow, wide},
                                          {x, wide, gate},
                                          {odd_x, odd},
                                          {odd_x, odd, odd_gate}};
    for (size_t i = 0; i < std::size(ops); ++i) {
      std::vector<Tensor> exact;
      std::vector<InputSpec> specs;
      for (const Tensor& t : inputs[i])
        exact.push_back(cast(t, DType::f32)), specs.push_back(spec_of("x" + std::to_string(specs.size()), t));
      exact = ops[i].second(exact);
      auto program = compile(ops[i].second, specs);
      good &= show_error("linear " + std::string(ops[i].first) + ", " + std::to_string(rows) + " rows",
                         error_of(program(inputs[i]), exact), DType::bf16);
    }
  }
  return good;
}

}  // namespace weft::bench

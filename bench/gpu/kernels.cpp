#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include "weft/backend.h"
#include "weft/backends.h"
#include "weft/generate.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"
#include "weft/optim.h"
#include "weft/policy_scope.h"
#include "weft/pretrained.h"
#include "weft/quantize.h"
#include "weft/random.h"

// Microseconds of single ops on a GPU, which scripts/gpu compares with PyTorch's (bench/gpu/kernels.py):
//
//   kernels rows|rows_check|skinny|skinny_check|heads|images|f8|adamw|add|decode=FOLDER BACKEND PLUGIN...
//
// Heads: attention and its gradient in bf16, causal, where products of bf16 are allowed; images: convolutions
// and their gradients in f32 (TF32) and bf16. f8: products of 8-bit floats into
// bf16, with sums as in f32, and where the precision of bf16 is allowed. These name the kernel, and the
// largest error beside f32. Rows: softmax, norms and cross entropy of 2^26 elements in bf16. Skinny: chains
// of products of 1 to 16 rows with weights of an 8B model. A program has several calls on different memory,
// more than the caches hold, and is replayed as one sequence. adamw: a step of GPT-2's parameters with
// clipping, in bf16 with masters. add: what an eager addition of 64 elements takes of the host.
namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;

constexpr int kRuns = 4, kRounds = 11;

double seconds(Compiled& program, const std::vector<Tensor>& inputs) {
  for (int i = 0; i < 4; ++i) program(inputs);  // the first runs link and record
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < kRuns; ++i) (void)program.enqueue(inputs);
    program.wait();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / kRuns);
  }
  std::ranges::nth_element(times, times.begin() + kRounds / 2);
  return times[kRounds / 2];
}

/// Numbers in [-1, 1) from a seed.
Tensor random(uint64_t seed, std::initializer_list<int64_t> shape, DType dtype = DType::bf16) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  std::vector<float> all(static_cast<size_t>(std::min<int64_t>(n, 1 << 20)));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(2 * unit(random_word(seed, i)) - 1);
  const int64_t size[] = {static_cast<int64_t>(all.size())};
  const Tensor piece = Tensor::of(std::span<const float>(all), size, dtype);
  const int64_t times = (n + size[0] - 1) / size[0];
  const Tensor many = reshape(broadcast(reshape(piece, {1, size[0]}), {times, size[0]}), {times * size[0]});
  return reshape(slice(many, 0, 0, n), Shape(shape.begin(), shape.end()));
}

InputSpec spec_of(const std::string& name, const Tensor& t) { return {name, t.type()}; }

void print(const std::string& op, int64_t rows, int64_t columns, double time, double bytes) {
  std::printf(
      R"({"op": "%s", "rows": %lld, "columns": %lld, "microseconds": %.2f, "gigabytes_per_second": %.0f})"
      "\n",
      op.c_str(), static_cast<long long>(rows), static_cast<long long>(columns), time * 1e6,
      bytes / time / 1e9);
  std::fflush(stdout);
}

/// Four calls of an op on different inputs. `passes`: how often it must read or write all elements.
void measure_rows(const std::string& op, int64_t columns, double passes,
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

void measure_all_rows() {
  for (const int64_t columns : {1024, 4096, 16384, 32768, 131072}) {
    const Tensor weight = random(7, {columns}), bias = random(8, {columns});
    const int64_t count = (int64_t{1} << 26) / columns;
    const Tensor target =
        cast(random(9, {count}, DType::f32) * Tensor::scalar(500) + Tensor::scalar(500), DType::i32);
    measure_rows("softmax", columns, 2, [](const Tensor& x) { return softmax(x); });
    measure_rows("layer_norm", columns, 2, [&](const Tensor& x) { return layer_norm(x, weight, bias); });
    measure_rows("rms_norm", columns, 2, [&](const Tensor& x) { return rms_norm(x, weight); });
    measure_rows("cross_entropy", columns, 1, [&](const Tensor& x) { return cross_entropy(x, target); });
  }
}

/// A chain of products, each of which needs the one before: there and back between two widths.
void measure_skinny(int64_t rows, int64_t in, int64_t out) {
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

using Op = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

double largest(const Tensor& t) { return max(abs(t)).item(); }

/// The largest difference of any result from what f32 gives, as a share of the largest number there.
double error_of(const std::vector<Tensor>& got, const std::vector<Tensor>& exact) {
  double most = 0;
  for (size_t i = 0; i < got.size(); ++i)
    most = std::max(most, largest(cast(got[i], DType::f32) - exact[i]) / largest(exact[i]));
  return most;
}

/// One op: the kernels that ran, its error, the time of a call, and operations a second.
void report(const std::string& name, const Op& f, const std::vector<Tensor>& inputs,
            const std::vector<Tensor>& exact, double operations, uint8_t precision) {
  std::vector<InputSpec> specs;
  for (const Tensor& t : inputs) specs.push_back(spec_of("x" + std::to_string(specs.size()), t));
  Policy policy = current_policy();
  policy.precision = precision;
  const PolicyScope scope(policy);
  (void)f(inputs);
  reset_ledger();
  const auto got = f(inputs);
  std::string kernels;
  for (const LedgerRow& row : ledger_rows()) kernels += (kernels.empty() ? "" : ", ") + row.kernel;
  const double error = error_of(got, exact);
  auto program = compile(f, specs, {.policy = policy});
  const double time = seconds(program, inputs);
  std::printf(R"({"op": "%s", "kernels": "%s", "error": %.2e, "microseconds": %.1f, "tflops": %.1f})"
              "\n",
              name.c_str(), kernels.c_str(), error, time * 1e6, operations / time / 1e12);
  std::fflush(stdout);
}

/// Prints an error, and whether it is at most some roundings of the dtype.
bool show_error(const std::string& what, double error, DType dtype) {
  const double most = dtype == DType::bf16 ? 0x1p-7 : 0x1p-20;
  std::printf(R"({"check": "%s", "error": %.2e, "most": %.2e})"
              "\n",
              what.c_str(), error, most);
  if (!(error <= most))
    std::fprintf(stderr, "%s: an error of %.2e, at most %.2e\n", what.c_str(), error, most);
  return error <= most;
}

/// What is launched as products of few rows, each by itself: results beside those of f32.
bool check_skinny() {
  bool good = true;
  const auto scaled = [](uint64_t seed, int64_t out, int64_t in) {
    return random(seed, {out, in}) * Tensor::scalar(0.03, DType::bf16);
  };
  const Tensor wide = scaled(1, 12288, 4096), back = scaled(2, 4096, 12288), square = scaled(3, 4096, 4096),
               narrow = scaled(4, 1024, 4096), gate = scaled(5, 12288, 4096), odd = scaled(6, 12296, 4040);
  const std::pair<const char*, Op> ops[] = {
      {"4096-12288", [](const std::vector<Tensor>& in) { return std::vector{linear(in[0], in[1])}; }},
      {"12288-4096 and a residual",
       [](const std::vector<Tensor>& in) { return std::vector{linear(in[0], in[1]) + in[2]}; }},
      {"4096-4096, 1024, 12288 of one x",
       [](const std::vector<Tensor>& in) {
         return std::vector{linear(in[0], in[1]), linear(in[0], in[2]), linear(in[0], in[3])};
       }},
      {"4096-12288 gated",
       [](const std::vector<Tensor>& in) {
         return std::vector{silu(linear(in[0], in[1])) * linear(in[0], in[2])};
       }},
      {"4040-12296", [](const std::vector<Tensor>& in) { return std::vector{linear(in[0], in[1])}; }}};
  for (const int64_t rows : {2, 5, 8, 9, 16}) {
    const Tensor x = random(7, {rows, 4096});
    const std::vector<Tensor> inputs[] = {{x, wide},
                                          {random(8, {rows, 12288}), back, random(9, {rows, 4096})},
                                          {x, square, narrow, wide},
                                          {x, wide, gate},
                                          {random(10, {rows, 4040}), odd}};
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

/// Norms of rows of many lengths, several for each block or cluster: results beside those of f32 by other
/// ops.
bool check_rows() {
  bool good = true;
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
      const std::string of_rows = std::string(" of ") + weft::name(dtype) + ", " + std::to_string(columns);
      good &= show_error("layer_norm" + of_rows, error_of({layer_norm(x, w, b)}, {normed}), dtype);
      good &= show_error("rms_norm" + of_rows, error_of({rms_norm(x, w)}, {scaled}), dtype);
    }
  return good;
}

void measure_op(const std::string& name, const Op& f, const std::vector<Tensor>& inputs, double operations) {
  std::vector<Tensor> wide;
  for (const Tensor& t : inputs) wide.push_back(cast(t, DType::f32));
  report(name, f, inputs, f(wide), operations, WEFT_PRECISION_BF16);
}

void measure_f8() {
  for (const int64_t n : {4096, 8192}) {
    const Quantized a = quantize_rows(random(1, {n, n})), b = quantize_rows(random(2, {n, n}));
    const std::vector<Tensor> inputs = {a.values, b.values, a.scale, b.scale},
                              of_tensors = {a.values, b.values, Tensor::scalar(0.5), Tensor::scalar(2)};
    const Tensor product = matmul(cast(a.values, DType::f32), cast(b.values, DType::f32), false, true);
    const std::vector exact = {product * reshape(a.scale, {n, 1}) * b.scale}, plain = {product};
    const Op op = [](const std::vector<Tensor>& in) {
      return std::vector{scaled_matmul(in[0], in[1], in[2], in[3], Tensor(), DType::bf16)};
    };
    const double work = 2 * std::pow(static_cast<double>(n), 3);
    for (const uint8_t precision : {WEFT_PRECISION_STRICT, WEFT_PRECISION_BF16}) {
      const std::string name = std::to_string(n) + (precision ? " bf16 allowed" : " strict");
      report("scaled_matmul " + name, op, of_tensors, plain, work, precision);
      report("scaled_matmul rows " + name, op, inputs, exact, work, precision);
    }
  }
}

void measure_heads() {
  for (const auto& [batch, rows, heads, dim] : {std::array<int64_t, 4>{16, 1024, 16, 128},
                                                {4, 4096, 16, 128},
                                                {1, 16384, 16, 128},
                                                {32, 1024, 12, 64}}) {
    const std::string name = std::to_string(rows) + " x " + std::to_string(dim);
    std::vector<Tensor> all;
    for (uint64_t i = 0; i < 4; ++i) all.push_back(random(i, {batch, heads, rows, dim}));
    const std::vector<Tensor> qkv(all.begin(), all.begin() + 3);
    // Half of all pairs: two products forward, and five backward, of two operations each.
    const auto pairs = static_cast<double>(batch * heads * rows * rows * dim);
    const auto causal = [](const std::vector<Tensor>& in) {
      return attention(in[0], in[1], in[2], Tensor(), Tensor(), true);
    };
    measure_op("attention " + name, [&](const auto& in) { return std::vector{causal(in)}; }, qkv, 2 * pairs);
    const Op both = [&](const std::vector<Tensor>& in) {
      std::vector<Tensor> leaves, gradients;
      for (size_t i = 0; i < 3; ++i) leaves.push_back(in[i].detach().requires_grad(true));
      causal(leaves).backward(in[3]);
      for (const Tensor& leaf : leaves) gradients.push_back(leaf.grad());
      return gradients;
    };
    measure_op("attention and gradient " + name, both, all, 7 * pairs);
  }
}

void measure_images() {
  struct Sizes {
    int64_t channels, size, filters, kernel, stride;
  };
  constexpr int64_t kImages = 64;
  for (const auto [channels, size, filters, kernel, stride] :
       {Sizes{64, 56, 64, 3, 1}, Sizes{128, 28, 256, 3, 2}, Sizes{256, 14, 1024, 1, 1}})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const int64_t half = kernel / 2, out = (size + 2 * half - kernel) / stride + 1;
      const Tensor x = random(1, {kImages, channels, size, size}, dtype),
                   w = random(2, {filters, channels, kernel, kernel}, dtype),
                   dy = random(3, {kImages, filters, out, out}, dtype);
      const Shape strides{stride, stride}, padding{half, half, half, half};
      const auto work = static_cast<double>(2 * kImages * filters * out * out * channels * kernel * kernel);
      const auto name = [&](const char* op) {
        return std::string(op) + " " + weft::name(dtype) + " " + std::to_string(channels) + " x " +
               std::to_string(size);
      };
      measure_op(
          name("conv"), [&](const auto& in) { return std::vector{conv(in[0], in[1], strides, padding)}; },
          {x, w}, work);
      const Shape rest(2, Dim(stride - 1));
      measure_op(
          name("conv_transpose"),
          [&](const auto& in) {
            return std::vector{conv_transpose(in[0], in[1], strides, padding, {}, 1, rest)};
          },
          {dy, w}, work);
      measure_op(
          name("conv_weight_grad"),
          [&](const auto& in) {
            return std::vector{conv_weight_grad(in[0], in[1], {kernel, kernel}, strides, padding)};
          },
          {x, dy}, work);
    }
}

/// One step along gradients of bf16, which are clipped together.
void measure_adamw() {
  std::vector<std::vector<int64_t>> shapes = {{50304, 768}, {1024, 768}, {768}, {768}};
  for (int layer = 0; layer < 12; ++layer) {
    for (int i = 0; i < 4; ++i) shapes.push_back({768, 768});  // query, key, value, out
    shapes.push_back({3072, 768}), shapes.push_back({768, 3072}), shapes.push_back({3072});
    for (int i = 0; i < 9; ++i) shapes.push_back({768});  // biases and norms
  }
  std::vector<Tensor> parameters, gradients;
  double count = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto& s = shapes[i];
    const auto of = [&](uint64_t seed) {
      return s.size() == 2 ? random(seed, {s[0], s[1]}) : random(seed, {s[0]});
    };
    parameters.push_back(of(2 * i).named("p" + std::to_string(i)).requires_grad(true));
    gradients.push_back(of(2 * i + 1));
    count += static_cast<double>(s.size() == 2 ? s[0] * s[1] : s[0]);
  }
  nn::AdamWConfig config;
  config.clip = 1;
  nn::AdamW optimizer(parameters, config);
  const Tensor rate = Tensor::scalar(1e-3);
  auto program = compile(
      [&](const std::vector<Tensor>& in) {
        for (size_t i = 0; i < parameters.size(); ++i)
          reshape(parameters[i], parameters[i].shape()).backward(gradients[i]);
        optimizer.step(in[0]);
        return std::vector<Tensor>{in[0] + in[0]};
      },
      {spec_of("rate", rate)}, {.name = "adamw", .take_captured = true});
  print("adamw", static_cast<int64_t>(shapes.size()), static_cast<int64_t>(count), seconds(program, {rate}),
        count * (2 + 12 + 12 + 2));
}

/// Of the host until the call returns, and until all sums are there.
void measure_add() {
  const Tensor a = random(1, {64}, DType::f32), b = random(2, {64}, DType::f32);
  constexpr int kAdds = 2000;
  std::vector<double> of_host, of_all;
  for (int round = 0; round < kRounds; ++round) {
    Tensor sum = a;
    const auto begin = Clock::now();
    for (int i = 0; i < kAdds; ++i) sum = sum + b;
    const auto called = Clock::now();
    (void)sum.to_bytes();
    of_host.push_back(std::chrono::duration<double>(called - begin).count() / kAdds);
    of_all.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / kAdds);
  }
  for (auto* times : {&of_host, &of_all}) std::ranges::nth_element(*times, times->begin() + kRounds / 2);
  std::printf(R"({"op": "eager add of 64", "host_microseconds": %.2f, "microseconds": %.2f})"
              "\n",
              of_host[kRounds / 2] * 1e6, of_all[kRounds / 2] * 1e6);
}

/// Steps of a decoder of bf16 after 512 tokens, a token each, without the choice of tokens.
void measure_decoding(const std::string& folder) {
  const auto model = nn::load_pretrained(folder, DType::bf16);
  nn::Decoder decoder(*model, {.capacity = 1024, .compile = {.name = "decoder", .take_captured = true}});
  const std::vector<int32_t> prompt(512, 5);
  const std::span<const int32_t> tokens(prompt), one = tokens.first(1);
  decoder.read({&tokens, 1});
  std::vector<double> times;
  for (int i = 0; i < 64; ++i) {
    const auto begin = Clock::now();
    decoder.read({&one, 1});
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(times, times.begin() + 32);
  const auto whole = [](int32_t x) {
    return Tensor::of(std::span<const int32_t>(&x, 1), std::array<int64_t, 1>{1}, DType::i32);
  };
  const std::vector<Tensor> inputs = {whole(5), whole(512), Tensor::of({0, 1}, {2}, DType::i32)};
  Compiled program = decoder.program();
  std::printf(R"({"decoding": "%s", "microseconds": %.1f, "with_copies": %.1f})"
              "\n",
              folder.c_str(), seconds(program, inputs) * 1e6, times[32] * 1e6);
}

int run(int n, char** arguments) {
  for (int i = 3; i < n; ++i) load_backend(arguments[i]);
  set_default_backend(arguments[2]);
  const std::string what = arguments[1];
  if (what == "rows_check") return check_rows() ? 0 : 1;
  if (what == "skinny_check") return check_skinny() ? 0 : 1;
  if (what == "heads") return measure_heads(), 0;
  if (what == "adamw") return measure_adamw(), 0;
  const NoGrad off;
  if (what == "images") return measure_images(), 0;
  if (what == "f8") return measure_f8(), 0;
  if (what == "rows") return measure_all_rows(), 0;
  if (what == "add") return measure_add(), 0;
  if (what.starts_with("decode=")) return measure_decoding(what.substr(7)), 0;
  for (const int64_t rows : {1, 2, 4, 8, 16}) {
    measure_skinny(rows, 4096, 4096);
    measure_skinny(rows, 4096, 1024);
    measure_skinny(rows, 4096, 12288);
  }
  return 0;
}

}  // namespace

int main(int n, char** arguments) {
  if (n < 3)
    return std::fprintf(
               stderr,
               "kernels rows|rows_check|skinny|skinny_check|heads|images|f8|adamw|add BACKEND PLUGIN...\n"),
           2;
  try {
    return run(n, arguments);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernels: %s\n", e.what());
    return 1;
  }
}

#include <array>
#include <cstdio>

#include "measure.hpp"
#include "weft/generate.h"
#include "weft/optim.h"
#include "weft/pretrained.h"

// A step of an optimizer, an eager addition, and a step of decoding.
namespace weft::bench {

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
  std::printf(R"({"op": "eager add of 64", "host_microseconds": %.2f, "microseconds": %.2f})"
              "\n",
              middle(of_host) * 1e6, middle(of_all) * 1e6);
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
  const auto whole = [](int32_t x) {
    return Tensor::of(std::span<const int32_t>(&x, 1), std::array<int64_t, 1>{1}, DType::i32);
  };
  const std::vector<Tensor> inputs = {whole(5), whole(512), Tensor::of({0, 1}, {2}, DType::i32)};
  Compiled program = decoder.program();
  std::printf(R"({"decoding": "%s", "microseconds": %.1f, "with_copies": %.1f})"
              "\n",
              folder.c_str(), seconds(program, inputs) * 1e6, middle(times) * 1e6);
}

}  // namespace weft::bench

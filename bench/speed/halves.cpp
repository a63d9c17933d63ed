#include <fmt/format.h>

#include <numeric>

#include "cases.h"
#include "weft/generate.h"

// A model in halves against itself in f32: generating tokens, and reading a prompt.
namespace weft::speed {
namespace {

constexpr int64_t kHalvesContext = 256, kHalvesTokens = 8, kPrompt = 128;

nn::GPT model_in(DType dtype) {
  static const nn::GPT f32 = [] {
    nn::GPT m({.vocabulary = 8192, .context = kHalvesContext, .layers = 6, .heads = 12, .width = 768});
    nn::build(m, {.seed = 1});
    return m;
  }();
  return dtype == DType::f32 ? f32 : nn::copy_as(dtype, f32);
}

/// A prompt read at once, or tokens read one by one.
struct Reading {
  Reading(DType dtype, int64_t tokens, bool at_once)
      : decoder(model_in(dtype),
                {.capacity = kHalvesContext, .compile = {.name = "decoder", .take_captured = true}}),
        ids(static_cast<size_t>(tokens)),
        step(at_once ? ids.size() : 1) {
    std::iota(ids.begin(), ids.end(), 65);
  }
  void operator()() {
    decoder.rewind(0, 0);
    for (size_t i = 0; i < ids.size(); i += step) {
      const std::span<const int32_t> next[] = {std::span<const int32_t>(ids).subspan(i, step)};
      decoder.read(next);
    }
  }
  nn::Decoder decoder;
  std::vector<int32_t> ids;
  size_t step;
};

Task reading(DType dtype, int64_t tokens, bool at_once) {
  return {[run = std::make_shared<Reading>(dtype, tokens, at_once)] { (*run)(); }, {}};
}

Case beside_f32(DType dtype, int64_t tokens, bool at_once) {
  return {"", fmt::format("{}, {} {} tokens", name(dtype), at_once ? "a prompt of" : "one by one", tokens),
          [=] { return reading(dtype, tokens, at_once); },
          [=] { return std::vector<PeerTask>{{"f32", reading(DType::f32, tokens, at_once), {}}}; }};
}

}  // namespace

Group generation_in_halves(int threads) {
  Group group{"halves", threads, 1.2, 0.95, {}};
  for (const DType dtype : {DType::bf16, DType::f16}) {
    group.cases.push_back(beside_f32(dtype, kHalvesTokens, false));
    group.cases.push_back(beside_f32(dtype, kPrompt, true));
  }
  return group;
}

}  // namespace weft::speed

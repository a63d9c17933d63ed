#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "test_backends.h"
#include "weft/chat.h"
#include "weft/checkpoint.h"
#include "weft/data.h"
#include "weft/einsum.h"
#include "weft/generate.h"
#include "weft/jit.h"
#include "weft/lists.h"
#include "weft/ops.h"
#include "weft/pretrained.h"
#include "weft/safetensors.h"
#include "weft/state_dict.h"
#include "weft/text.h"
#include "weft/trainer.h"
#include "weft/vision.h"

// The lines "Errors" of the public headers, claim by claim: what is documented is what is raised.
namespace weft::documented_errors_test {
namespace {

Code raised(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_FALSE(e.status().message().empty());
    return e.status().code();
  }
  return Code::ok;
}

struct Claim {
  const char* what;
  Code code;
  std::function<void()> breaks;
};
void check(const std::vector<Claim>& claims) {
  for (const auto& c : claims)
    EXPECT_EQ(code_name(raised(c.breaks)), std::string(code_name(c.code))) << c.what;
}

const Tensor& pair() {
  static const Tensor t = Tensor::of({1, 2}, {2});
  return t;
}
nn::GPTConfig tiny() { return {.vocabulary = 256, .context = 4, .layers = 1, .heads = 1, .width = 2}; }

TEST(DocumentedErrors, OfTensorsAndTraces) {
  const auto twice = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[0]}; };
  auto program = compile(twice, {{"x", {DType::f32, {2}}}});
  const std::vector<std::byte> bytes(8);
  const int64_t sizes[] = {2};
  std::vector<std::byte> small(4);
  const HostArray in[] = {{DType::f32, sizes, bytes}};
  const std::span<std::byte> out[] = {small};
  Tensor integer = Tensor::of({1}, {1}, DType::i32);
  check({
      {"Tensor::of", Code::invalid_argument, [&] { (void)Tensor::of({1, 2, 3}, {2}); }},
      {"Tensor::from_bytes", Code::invalid_argument,
       [&] { (void)Tensor::from_bytes(bytes, {{3}}, DType::f32); }},
      {"item", Code::invalid_argument, [&] { (void)pair().item(); }},
      {"requires_grad", Code::invalid_argument, [&] { integer.requires_grad(true); }},
      {"an empty tensor", Code::invalid_argument, [&] { (void)Tensor().dtype(); }},
      {"backward", Code::invalid_argument, [&] { pair().backward(); }},
      {"concat", Code::invalid_argument, [&] { (void)concat(std::span<const Tensor>()); }},
      {"split", Code::invalid_argument, [&] { (void)split(pair(), {1, 2}); }},
      {"global_norm", Code::invalid_argument, [] { (void)global_norm({}); }},
      {"clip_by_norm", Code::invalid_argument, [&] { (void)clip_by_norm(pair(), Tensor::scalar(1), 0); }},
      {"clip_global_norm", Code::invalid_argument, [&] { (void)clip_global_norm({&pair(), 1}, 0); }},
      {"einsum", Code::invalid_argument, [&] { (void)einsum("ij->i", {pair()}); }},
      {"Compiled::run", Code::invalid_argument, [&] { program.run(in, out); }},
      {"Compiled::state", Code::invalid_argument, [&] { (void)program.state("none"); }},
      {"Compiled::save", Code::io, [&] { program.save("/no/such/folder/p.npubin"); }},
      {"load_program", Code::unavailable, [&] { (void)load_program("/no/such/file"); }},
      {"trace", Code::invalid_argument,
       [&] {
         (void)trace([](const std::vector<Tensor>& v) { return v[0].item(), v; }, {{"x", {DType::f32, {1}}}});
       }},
  });
}

TEST(DocumentedErrors, OfModules) {
  nn::GPT model(tiny());
  const Tensor ids = Tensor::of({1, 2}, {1, 2}, DType::i32), pixels = Tensor::of({1}, {1, 1, 1, 1});
  nn::BatchNorm2d norm(1);
  nn::build(norm);
  nn::set_training(norm, true);
  check({
      {"an unbuilt module", Code::invalid_argument, [&] { (void)model(ids); }},
      {"parameters", Code::invalid_argument, [&] { (void)nn::parameters(model); }},
      {"state_dict", Code::invalid_argument, [&] { (void)nn::state_dict(model); }},
      {"nn::save", Code::io, [&] { nn::save(norm, "/no/such/folder/m"); }},
      {"nn::load", Code::unavailable, [&] { nn::load(norm, "/no/such/file"); }},
  });
  nn::build(model);
  const Tensor p = nn::parameters(model)[0];
  nn::AdamW optimizer({p});
  check({
      {"Dropout", Code::invalid_argument, [] { nn::Dropout(1); }},
      {"Conv2d", Code::invalid_argument, [] { nn::Conv2d({.in = 0, .out = 1}); }},
      {"Conv2d, groups", Code::invalid_argument, [] { nn::Conv2d({.in = 3, .out = 2, .groups = 2}); }},
      {"BatchNorm2d", Code::invalid_argument, [&] { (void)norm(pixels); }},
      {"global_average_pool", Code::invalid_argument, [] { (void)nn::global_average_pool(pair()); }},
      {"flatten", Code::invalid_argument, [] { (void)nn::flatten(Tensor::scalar(1)); }},
      {"ResNet", Code::invalid_argument, [] { nn::ResNet({.channels = 1, .classes = 2, .widths = {4, 2}}); }},
      {"GPT", Code::invalid_argument,
       [] { nn::GPT({.vocabulary = 4, .context = 4, .layers = 1, .heads = 3, .width = 4}); }},
      {"GPT, tokens of another dtype", Code::invalid_argument, [&] { (void)model(pair()); }},
      {"GPT, too many tokens", Code::invalid_argument,
       [&] { (void)model(Tensor::of({1, 2, 3, 4, 5}, {1, 5}, DType::i32)); }},
      {"make_cache", Code::invalid_argument, [&] { (void)model.make_cache(0, 1); }},
      {"AdamW", Code::invalid_argument, [&] { nn::AdamW({p}, {.beta1 = 1}); }},
      {"SGD", Code::invalid_argument, [&] { nn::SGD({p}, {.nesterov = true}); }},
      {"Optimizer::step", Code::invalid_argument, [&] { optimizer.step(Tensor::scalar(1)); }},
      {"replace", Code::invalid_argument,
       [&] { nn::replace(model, [](const nn::Field&) { return pair(); }); }},
      {"accumulate_gradients", Code::invalid_argument, [&] { (void)nn::accumulate_gradients(model, {}); }},
      {"evaluate", Code::invalid_argument, [&] { (void)nn::evaluate(model, {}); }},
      {"Decoder", Code::invalid_argument, [&] { nn::Decoder(model, {.batch = 0}); }},
      {"Decoder, capacity", Code::invalid_argument, [&] { nn::Decoder(model, {.capacity = 9}); }},
      {"begin_run", Code::invalid_argument,
       [] {
         nn::RunInfo info;
         info.settings.model =
             nn::GPTConfig{.vocabulary = 2, .context = 4, .layers = 1, .heads = 1, .width = 2};
         (void)nn::begin_run(info);
       }},
      {"load_checkpoint", Code::unavailable, [] { (void)nn::load_checkpoint("/no/such/folder"); }},
      {"load_pretrained", Code::unavailable, [] { (void)nn::load_pretrained("/no/such/folder"); }},
      {"load_pretrained, dtype", Code::invalid_argument,
       [] { (void)nn::load_pretrained("/no/such/folder", DType::i32); }},
  });
}

TEST(DocumentedErrors, OfText) {
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("weft_errors_{}", ::getpid())).string();
  std::ofstream(path) << "no tokens";
  const auto bytes = io::Tokenizer::bytes();
  const io::TokenData wild({std::vector<int32_t>(64, 999), bytes}, 4, 1);
  io::Sampler sampler({});
  const float none[] = {NAN, 1};
  check({
      {"load_text", Code::unavailable, [] { (void)io::load_text({"/no/such/file"}); }},
      {"load_text, nothing", Code::invalid_argument, [] { (void)io::load_text({"/dev/null"}); }},
      {"Tokens::map", Code::unavailable, [] { (void)io::Tokens::map("/no/such/file"); }},
      {"Tokens::map, damaged", Code::corrupt, [&] { (void)io::Tokens::map(path); }},
      {"Safetensors::map", Code::unavailable, [] { (void)io::Safetensors::map("/no/such/file"); }},
      {"Safetensors::map, damaged", Code::corrupt, [&] { (void)io::Safetensors::map(path); }},
      {"write_safetensors", Code::io, [] { io::write_safetensors("/no/such/folder/f", {{"a", pair()}}); }},
      {"write_safetensors, empty", Code::invalid_argument,
       [&] { io::write_safetensors(path, {{"a", Tensor()}}); }},
      {"TokenData", Code::invalid_argument, [&] { io::TokenData({{1, 2}, bytes}, 4, 1); }},
      {"TokenData::train", Code::corrupt, [&] { (void)wild.train(0, 1); }},
      {"Tokenizer::from_json", Code::corrupt, [] { (void)io::Tokenizer::from_json("{}"); }},
      {"Tokenizer::token", Code::invalid_argument, [&] { (void)bytes.token(999); }},
      {"ChatTemplate", Code::invalid_argument, [&] { io::ChatTemplate{bytes}; }},
      {"Sampler", Code::invalid_argument, [] { io::Sampler({.temperature = -1}); }},
      {"Sampler::pick", Code::invalid_argument, [&] { (void)sampler.pick(none); }},
      {"StopStrings", Code::invalid_argument, [] { io::StopStrings({""}); }},
  });
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weft::documented_errors_test

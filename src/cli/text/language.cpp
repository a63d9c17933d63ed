#include "cli/text/language.h"

#include <algorithm>
#include <filesystem>

#include "cli/program/backend.h"
#include "formats/file.h"
#include "weft/checkpoint.h"
#include "weft/tensor.h"

namespace weft::cli {
namespace {

/// Model and tokenizer of a folder saved by Hugging Face's libraries.
Language from_hugging_face(const std::string& folder, DType dtype) {
  const auto at = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  std::error_code no_such_name;
  if (nn::has_checkpoint(folder) && formats::is_missing(at("config.json")))
    throw Error(
        invalid("{} is no folder of Hugging Face's, there is no config.json; a checkpoint of Weft's is "
                "read with --model",
                folder));
  if (std::filesystem::is_directory(folder, no_such_name) && formats::is_missing(at("tokenizer.json")))
    throw Error(fail(Code::unavailable,
                     "{} is not there: a model alone can't read text; save its tokenizer beside it",
                     at("tokenizer.json")));
  Language l{
      nn::load_pretrained(folder, dtype), io::Tokenizer::load(folder), {}, {}, nn::load_generation(folder)};
  if (l.tokenizer.size() > l.model->vocabulary())
    throw Error(fail(Code::corrupt, "{}: the tokenizer has {} tokens, the model only {}", folder,
                     l.tokenizer.size(), l.model->vocabulary()));
  l.ends = l.wants.ends;
  if (l.tokenizer.bos()) l.begin.push_back(*l.tokenizer.bos());
  if (l.tokenizer.eos()) l.ends.push_back(*l.tokenizer.eos());
  return l;
}

Language from_checkpoint(const std::string& folder) {
  auto trained = nn::load_trained(folder);
  Language l{std::move(trained.model), std::move(trained.info.tokenizer), {}, {}, {}};
  l.begin = l.tokenizer.bos() ? std::vector{*l.tokenizer.bos()} : l.tokenizer.encode("\n", false);
  if (l.tokenizer.eos()) l.ends.push_back(*l.tokenizer.eos());
  return l;
}

}  // namespace

Language load_language(const TextOptions& o) {
  check_computes();
  if (!o.model.empty() && o.app->given("--dtype"))
    throw UsageError(invalid("--dtype is for --hf: a checkpoint computes in what it was trained in"));
  if (!o.model.empty()) return from_checkpoint(o.model);
  return from_hugging_face(o.hugging_face, *dtype_from_name(o.dtype));
}

void add_text_options(Syntax& app, TextOptions& o, bool programs) {
  o.app = &app;
  auto& s = o.generate.sampling;
  auto model = app.add_option("--model", o.model, "folder of a checkpoint").type_name("DIR").check(some_name);
  app.add_option("--hf", o.hugging_face, "folder of a model and its tokenizer, as Hugging Face saves them")
      .type_name("DIR")
      .excludes(model)
      .check(some_name);
  std::vector<std::string> sources = {"--model", "--hf"};
  if (programs) {
    app.add_option("program", o.program, "a decoder's program file, as weft compile writes it")
        .type_name("FILE")
        .excludes("--model")
        .excludes("--hf");
    app.add_option("--tokenizer", o.tokenizer,
                   "of a program: a tokenizer.json, or its folder; without it, the folder of the program")
        .type_name("DIR");
    sources.insert(sources.begin(), "program");
  }
  app.require_one(sources);
  app.add_option("--dtype", o.dtype, "dtype that the model of --hf computes in")
      .one_of({"f64", "f32", "f16", "bf16"})
      .capture_default_str();
  app.add_option("--length", o.generate.length, "most tokens to generate")
      .check(whole_number<int64_t>(1))
      .capture_default_str();
  app.add_option("--temperature", s.temperature, "sampling temperature; 0: always the likeliest token")
      .check(from_zero)
      .capture_default_str();
  app.add_option("--top-k", s.top_k, "sample from the N likeliest tokens; 0: all")
      .check(whole_number<int64_t>(0))
      .capture_default_str();
  app.add_option("--top-p", s.top_p, "sample from the likeliest tokens with this total probability")
      .check(share)
      .capture_default_str();
  app.add_option("--min-p", s.min_p, "drop tokens below this fraction of the largest probability")
      .check(share)
      .capture_default_str();
  app.add_option("--repetition-penalty", s.repetition_penalty,
                 "above 1: penalty on tokens that occurred before")
      .check(positive)
      .capture_default_str();
  app.add_option("--seed", s.seed, "seed of the sampling")
      .check(whole_number<uint64_t>(0))
      .capture_default_str();
  app.add_option("--stop", o.generate.stops, "end the text before this string; may be repeated")
      .check(some_name)
      .type_name("TEXT")
      .one_at_a_time();
}

nn::GenerateOptions generate_options(const TextOptions& o, const Language& l, size_t prompt_tokens) {
  nn::GenerateOptions g = o.generate;
  const auto& wants = l.wants;
  const auto take = [&](const char* option, auto& to, const auto& wanted) {
    if (wanted && !o.app->given(option)) to = *wanted;
  };
  take("--temperature", g.sampling.temperature, wants.temperature);
  take("--top-k", g.sampling.top_k, wants.top_k);
  take("--top-p", g.sampling.top_p, wants.top_p);
  take("--min-p", g.sampling.min_p, wants.min_p);
  take("--repetition-penalty", g.sampling.repetition_penalty, wants.repetition_penalty);
  take("--length", g.length, wants.max_new_tokens);
  if (wants.max_length && !wants.max_new_tokens && !o.app->given("--length")) {
    const int64_t left = *wants.max_length - static_cast<int64_t>(prompt_tokens);
    if (left < 1)
      throw Error(
          invalid("the prompt has {} tokens, and max_length in the model's folder is {}, for prompt and text "
                  "together; give --length to override it",
                  prompt_tokens, *wants.max_length));
    g.length = std::min(g.length, left);
  }
  if (!o.app->given("--stop")) g.stops = wants.stops;
  g.sampling.never = wants.never;
  g.ends = l.ends;
  return g;
}

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

}  // namespace weft::cli

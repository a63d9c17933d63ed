#include "cli/text/language.h"

#include <filesystem>

#include "cli/program/backend.h"
#include "formats/json.h"
#include "weft/checkpoint.h"
#include "weft/pretrained.h"
#include "weft/tensor.h"

namespace weft::cli {
namespace {

/// What `eos_token_id` of a file says, a number or a list of them; nothing without file or field.
std::vector<int32_t> end_tokens(const std::string& path) {
  std::error_code no_such_name;
  if (!std::filesystem::exists(path, no_such_name)) return {};
  const auto root = value_or_raise(formats::read_json_object(path));
  const auto field = root.value("eos_token_id", nlohmann::json());
  std::vector<int32_t> ends;
  for (const auto& id : field.is_array() ? field : nlohmann::json::array({field})) {
    if (id.is_null()) continue;
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<int32_t>::max())
      throw Error(fail(Code::corrupt, "{}: field 'eos_token_id' is {}, wanted tokens", path, field.dump()));
    ends.push_back(id.get<int32_t>());
  }
  return ends;
}

/// Model and tokenizer of a folder as Hugging Face's libraries save them.
Language from_hugging_face(const std::string& folder, DType dtype) {
  const auto at = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  std::error_code no_such_name;
  if (nn::has_checkpoint(folder) && !std::filesystem::exists(at("config.json"), no_such_name))
    throw Error(
        invalid("{} is no folder of Hugging Face's, there is no config.json; a checkpoint of Weft's is "
                "read with --model",
                folder));
  if (std::filesystem::is_directory(folder, no_such_name) &&
      !std::filesystem::exists(at("tokenizer.json"), no_such_name))
    throw Error(fail(Code::unavailable,
                     "{} is not there: a model alone can't read text; save its tokenizer beside it",
                     at("tokenizer.json")));
  Language l{nn::load_pretrained(folder, dtype), io::Tokenizer::load(folder), {}, {}};
  if (l.tokenizer.size() > l.model->vocabulary())
    throw Error(fail(Code::corrupt, "{}: the tokenizer has {} tokens, the model only {}", folder,
                     l.tokenizer.size(), l.model->vocabulary()));
  for (const char* file : {"config.json", "generation_config.json"}) {
    const auto ends = end_tokens(at(file));
    l.ends.insert(l.ends.end(), ends.begin(), ends.end());
  }
  if (l.tokenizer.bos()) l.begin.push_back(*l.tokenizer.bos());
  if (l.tokenizer.eos()) l.ends.push_back(*l.tokenizer.eos());
  return l;
}

Language from_checkpoint(const std::string& folder) {
  auto trained = nn::load_trained(folder);
  Language l{std::move(trained.model), std::move(trained.info.tokenizer), {}, {}};
  l.begin = l.tokenizer.bos() ? std::vector{*l.tokenizer.bos()} : l.tokenizer.encode("\n", false);
  if (l.tokenizer.eos()) l.ends.push_back(*l.tokenizer.eos());
  return l;
}

}  // namespace

Language load_language(const TextOptions& o) {
  check_computes();
  if (!o.model.empty()) return from_checkpoint(o.model);
  return from_hugging_face(o.hugging_face, *dtype_from_name(o.dtype));
}

void add_text_options(Syntax& app, TextOptions& o) {
  auto& s = o.generate.sampling;
  auto model = app.add_option("--model", o.model, "folder of a checkpoint").type_name("DIR").check(some_name);
  app.add_option("--hf", o.hugging_face, "folder of a model and its tokenizer, as Hugging Face saves them")
      .type_name("DIR")
      .excludes(model)
      .check(some_name);
  app.require_one({"--model", "--hf"});
  app.add_option("--dtype", o.dtype, "what the model of --hf computes in")
      .one_of({"f64", "f32", "f16", "bf16"})
      .capture_default_str();
  app.add_option("--length", o.generate.length, "tokens to make at most")
      .check(whole_number<int64_t>(1))
      .capture_default_str();
  app.add_option("--temperature", s.temperature, "low keeps to what is likely, 0 takes only the likeliest")
      .check(from_zero)
      .capture_default_str();
  app.add_option("--top-k", s.top_k, "only the so many likeliest tokens; 0: all")
      .check(whole_number<int64_t>(0))
      .capture_default_str();
  app.add_option("--top-p", s.top_p, "only the likeliest that together have this probability")
      .check(share)
      .capture_default_str();
  app.add_option("--min-p", s.min_p, "only those with this part of the largest probability")
      .check(share)
      .capture_default_str();
  app.add_option("--repetition-penalty", s.repetition_penalty, "above 1 shuns tokens that were there")
      .check(positive)
      .capture_default_str();
  app.add_option("--seed", s.seed, "another one, another text")
      .check(whole_number<uint64_t>(0))
      .capture_default_str();
  app.add_option("--stop", o.generate.stops, "end the text before this string; may be repeated")
      .check(some_name)
      .type_name("TEXT")
      .one_at_a_time();
}

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

}  // namespace weft::cli

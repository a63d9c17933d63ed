#pragma once
#include <memory>

#include "cli/command.h"
#include "weft/backends.h"
#include "weft/generate.h"
#include "weft/pretrained.h"

// What `weft generate` and `weft chat` share: where a model comes from, and how its text is chosen.
namespace weft::cli {

struct Language {
  std::unique_ptr<nn::LanguageModel> model;
  io::Tokenizer tokenizer;
  std::vector<int32_t> ends;       ///< tokens that end a text
  std::vector<int32_t> begin;      ///< what a text without a prompt begins with; it may be nothing
  nn::PretrainedGeneration wants;  ///< what its folder says of choosing text
};

/// What both commands ask for; the defaults of `generate` are said by each.
struct TextOptions {
  std::string model;                        // a checkpoint
  std::string hugging_face, dtype = "f32";  // or a folder as Hugging Face's libraries save it
  nn::GenerateOptions generate;
  const Syntax* app = nullptr;
};
void add_text_options(Syntax& app, TextOptions& o);

/// The model that was asked for, on the default backend, and its tokenizer.
Language load_language(const TextOptions& o);

/// How to go on from a prompt of so many tokens: as the command line says, else the model's folder, else by
/// the command's defaults.
nn::GenerateOptions generate_options(const TextOptions& o, const Language& l, size_t prompt_tokens);

/// Tokens a second.
double rate(int64_t tokens, double seconds);

}  // namespace weft::cli

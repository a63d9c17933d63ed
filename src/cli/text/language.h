#pragma once
#include <memory>

#include "cli/command.h"
#include "weft/backends.h"
#include "weft/generate.h"
#include "weft/pretrained.h"

// Shared by `weft generate` and `weft chat`: the source of the model, and the options of sampling.
namespace weft::cli {

struct Language {
  std::unique_ptr<nn::LanguageModel> model;
  io::Tokenizer tokenizer;
  std::vector<int32_t> ends;       ///< tokens that end a text
  std::vector<int32_t> begin;      ///< what a text without a prompt begins with; it may be nothing
  nn::PretrainedGeneration wants;  ///< what its folder says of choosing text
};

/// The options of both commands; each has its own defaults for `generate`.
struct TextOptions {
  std::string model;                        // a checkpoint
  std::string hugging_face, dtype = "f32";  // or a folder saved by Hugging Face's libraries
  std::string program, tokenizer;           // or a program file, where a command takes one
  nn::GenerateOptions generate;
  const Syntax* app = nullptr;
};
/// `programs`: a program file is a third source.
void add_text_options(Syntax& app, TextOptions& o, bool programs = false);

/// The selected model, on the default backend, and its tokenizer.
Language load_language(const TextOptions& o);

/// The sampling options for a prompt of this many tokens: from the command line, else the model's folder,
/// else the command's defaults.
nn::GenerateOptions generate_options(const TextOptions& o, const Language& l, size_t prompt_tokens);

/// Tokens a second.
double rate(int64_t tokens, double seconds);

}  // namespace weft::cli

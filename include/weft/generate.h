#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/jit.h"
#include "weft/models.h"
#include "weft/sampling.h"
#include "weft/tokenizer.h"

// Text generation.
namespace weft::nn {

struct DecoderConfig {
  int64_t batch = 1;
  int64_t capacity = 0;  ///< tokens of cache for each sequence; 0: the model's context
  CompileOptions compile = {
      .name = "decoder", .backend = {}, .policy = {}, .fuse = true, .take_captured = false};
};

/// A language model that reads sequences of tokens a few at a time, each token once: its cache and one
/// compiled program, for prompts and for single tokens. Keeps weights of its own, or, with
/// `compile.take_captured`, those of the model; the model is not needed afterwards. An unknown
/// sequence is invalid_argument.
class Decoder {
 public:
  /// Errors   invalid_argument for a model in training, a batch below 1, or a capacity outside the context.
  explicit Decoder(const LanguageModel& model, const DecoderConfig& config = {});

  /// Appends `tokens[i]` to sequence i, which may be none. Each sequence gets the scores that it would get
  /// alone, up to rounding; nothing is padded. Reads of one token each allocate nothing after the first.
  ///
  /// Errors   invalid_argument for a token outside the vocabulary, and for a full cache.
  void read(std::span<const std::span<const int32_t>> tokens);
  /// Scores of the next token, of a sequence that took part in the last read(): copied from the device when
  /// they are first asked for. Not while program() runs for somebody else.
  std::span<const float> scores(int64_t sequence) const;
  /// The token with the highest score, of equal ones the first; -1 if that score is no finite number.
  int32_t choice(int64_t sequence) const;

  /// The tokens of a sequence so far.
  std::span<const int32_t> tokens(int64_t sequence) const;
  /// Truncates a sequence to its first `length` tokens; it must have that many.
  void rewind(int64_t sequence, int64_t length);

  int64_t batch() const { return static_cast<int64_t>(read_.size()); }
  int64_t capacity() const { return capacity_; }
  int64_t vocabulary() const { return vocabulary_; }
  const Compiled& program() const { return program_; }

 private:
  void check(std::span<const std::span<const int32_t>> tokens) const;

  int64_t capacity_, vocabulary_;
  mutable Compiled program_;
  std::vector<std::vector<int32_t>> read_;          // by sequence
  std::vector<int32_t> tokens_, length_, offsets_;  // inputs of the program
  std::vector<int32_t> choices_;
  mutable std::vector<float> scores_;  // if has_scores_, those of the last read()
  mutable bool has_scores_ = false;
};

/// Why a text ended.
enum class Finish : uint8_t {
  none,    ///< it has not ended
  end,     ///< the model ended it
  stop,    ///< a stop string was generated
  length,  ///< the requested number of tokens was generated
  full,    ///< the cache is full
};
const char* name(Finish finish);

struct GenerateOptions {
  int64_t length = 200;            ///< most tokens of each text
  io::Sampling sampling;           ///< sequence i has the seed behind that of i - 1
  std::vector<int32_t> ends;       ///< tokens that end a text, and are not part of it
  bool forget = false;             ///< if the cache is full, continues from the newer half of the text
  std::vector<std::string> stops;  ///< strings that end a text; neither they nor what follows is shown
};

/// Generates a text for each prompt. Text i equals that of its prompt alone with seed `sampling.seed + i`.
class Generation {
 public:
  /// Reads the prompts, except the prefixes that are in the decoder's cache. The decoder must outlive this.
  ///
  /// Errors   invalid_argument for another number of prompts than the decoder has sequences, a prompt that is
  ///          empty or longer than the decoder has room for, and what Sampler and StopStrings refuse.
  Generation(Decoder& decoder, const io::Tokenizer& tokenizer, std::span<const std::vector<int32_t>> prompts,
             GenerateOptions options);

  /// Generates one token for each unfinished text; false if there is none. Allocates nothing after the first
  /// step, unless tokens are forgotten.
  bool step();
  /// The text that the last step completed: whole characters, and no part of a stop string.
  std::string_view text(int64_t i) const { return at(i).text; }
  /// All generated tokens, including the one that ended the text.
  std::span<const int32_t> tokens(int64_t i) const { return at(i).chosen; }
  Finish finish(int64_t i) const { return at(i).finish; }
  /// Number of tokens dropped from the beginning of a text: see GenerateOptions::forget.
  int64_t forgotten(int64_t i) const { return at(i).forgotten; }
  /// Tokens of the prompts that had to be read.
  int64_t prompt_tokens() const { return prompt_tokens_; }

 private:
  struct Sequence {
    io::Sampler sampler;
    io::TokenStream stream;
    io::StopStrings stops;
    std::vector<int32_t> chosen, kept;  // `kept`: what is read anew once there is no room
    std::string text;
    Finish finish = Finish::none;
    int64_t forgotten = 0;
  };
  const Sequence& at(int64_t i) const;
  void read_prompts(std::span<const std::vector<int32_t>> prompts);
  void take(size_t i);
  bool is_full(size_t i) const;
  std::span<const int32_t> newer_half(size_t i);

  Decoder& decoder_;
  GenerateOptions options_;
  std::vector<Sequence> sequences_;
  std::vector<std::span<const int32_t>> next_;  // what each sequence reads
  int64_t prompt_tokens_ = 0;
};

}  // namespace weft::nn

#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/jit.h"
#include "weft/models.h"
#include "weft/sampling.h"
#include "weft/tokenizer.h"

// Text out of a language model.
namespace weft::nn {

struct DecoderConfig {
  int64_t batch = 1;
  int64_t capacity = 0;  ///< tokens that there is room for, of each sequence; 0: the model's context
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

  /// Sequence i goes on with `tokens[i]`; one that gets none stays as it is. Each gets the scores that it
  /// would get alone, up to rounding; nothing is padded. Reads of one token each allocate nothing after the
  /// first.
  ///
  /// Errors   invalid_argument for a token that the model has not, and where there is no room.
  void read(std::span<const std::span<const int32_t>> tokens);
  /// Scores of what may come next, of a sequence that took part in the last read().
  std::span<const float> scores(int64_t sequence) const;

  /// What a sequence has read.
  std::span<const int32_t> tokens(int64_t sequence) const;
  /// Forgets all but the first `length` tokens of a sequence, which has as many at least.
  void rewind(int64_t sequence, int64_t length);

  int64_t batch() const { return static_cast<int64_t>(read_.size()); }
  int64_t capacity() const { return capacity_; }
  int64_t vocabulary() const { return vocabulary_; }
  const Compiled& program() const { return program_; }

 private:
  void check(std::span<const std::span<const int32_t>> tokens) const;

  int64_t capacity_, vocabulary_;
  Compiled program_;
  std::vector<std::vector<int32_t>> read_;          // by sequence
  std::vector<int32_t> tokens_, length_, offsets_;  // inputs of the program
  std::vector<float> scores_;
};

/// Why a text goes on no longer.
enum class Finish : uint8_t {
  none,    ///< it goes on
  end,     ///< the model ended it
  stop,    ///< a stop string came
  length,  ///< it has as many tokens as were asked for
  full,    ///< there is no room for more
};
const char* name(Finish finish);

struct GenerateOptions {
  int64_t length = 200;            ///< tokens of each text at most
  io::Sampling sampling;           ///< sequence i has the seed behind that of i - 1
  std::vector<int32_t> ends;       ///< tokens that end a text, and are not part of it
  bool forget = false;             ///< where there is no room, goes on from the newer half of the text
  std::vector<std::string> stops;  ///< so do these strings: neither they nor what follows is shown
};

/// Texts in the making, one for each prompt. Text i is the one that its prompt would give alone with the seed
/// `sampling.seed + i`.
class Generation {
 public:
  /// Reads the prompts; what the decoder has read of them already it keeps. The decoder must outlive this.
  ///
  /// Errors   invalid_argument for another number of prompts than the decoder has sequences, a prompt that is
  ///          empty or longer than the decoder has room for, and what Sampler and StopStrings refuse.
  Generation(Decoder& decoder, const io::Tokenizer& tokenizer, std::span<const std::vector<int32_t>> prompts,
             GenerateOptions options);

  /// Takes a token for each text that goes on; false when none did. Allocates nothing after the first, where
  /// nothing is forgotten.
  bool step();
  /// The text that the last step made certain: whole characters, and no part of a stop string.
  std::string_view text(int64_t i) const { return at(i).text; }
  /// All tokens that were chosen, the one that ended the text too.
  std::span<const int32_t> tokens(int64_t i) const { return at(i).chosen; }
  Finish finish(int64_t i) const { return at(i).finish; }
  /// Tokens of a text, from its beginning, that the model no longer sees: see GenerateOptions::forget.
  int64_t forgotten(int64_t i) const { return at(i).forgotten; }
  /// Tokens of the prompts that were read for this.
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

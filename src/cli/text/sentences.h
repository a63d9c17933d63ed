#pragma once
#include <memory>

#include "runtime/session.h"
#include "weft/tokenizer.h"

// Texts as vectors: the tokenizer, a program that makes hidden states of tokens, and what a folder of
// sentence-transformers says of the steps between and after them.
namespace weft::cli {

/// How the vectors of a text's tokens become one.
enum class Pooling { mean, first, greatest };

struct SentenceConfig {
  Pooling pooling = Pooling::mean;
  bool normalized = true;
  std::optional<int64_t> longest;  ///< the tokens that a text is cut to
};
/// From `modules.json` of the folder, and the files that it names; without one, the mean, normalized.
///
/// Errors   unsupported for another module or another pooling, with the file and the field.
Result<SentenceConfig> read_sentence_config(const std::string& folder);

struct Sentence {
  std::vector<float> vector;
  size_t tokens = 0;
  bool cut = false;  ///< the text had more tokens
};

/// The program's inputs are `input_ids`, `attention_mask` and perhaps `token_type_ids` [batch, length]; its
/// first output is [batch, length, width], which is pooled, or [batch, width].
class Embedder {
 public:
  static Result<Embedder> make(std::unique_ptr<runtime::Session> session, io::Tokenizer tokenizer,
                               const SentenceConfig& config);
  /// One for each text, in their order. Texts of similar length run together, at most `batch` at a time.
  Result<std::vector<Sentence>> operator()(std::span<const std::string> texts, int64_t batch);

 private:
  using Ids = std::vector<int32_t>;
  Embedder(std::unique_ptr<runtime::Session> session, io::Tokenizer tokenizer, const SentenceConfig& config)
      : session_(std::move(session)), tokenizer_(std::move(tokenizer)), config_(config) {}
  Status check_ports();
  std::vector<runtime::HostTensor> inputs_of(std::span<const Ids* const> rows) const;
  Status run(std::span<const Ids* const> rows, std::span<Sentence* const> to);

  std::unique_ptr<runtime::Session> session_;
  io::Tokenizer tokenizer_;
  SentenceConfig config_;
  Dim batch_ = 1, length_ = 1;
};

}  // namespace weft::cli

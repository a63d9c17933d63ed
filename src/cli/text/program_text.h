#pragma once
#include <functional>

#include "runtime/session.h"
#include "weft/generate.h"

// Text out of a program file that an imported decoder became.
namespace weft::cli {

struct ProgramText {
  std::string text;
  std::vector<int32_t> tokens;
  nn::Finish finish = nn::Finish::none;
};

/// The program's inputs are `input_ids` [1, length] and `position` [length], its first output the scores
/// [1, length, vocabulary]; its states are the cache, which has room for as many positions as `length` may
/// have. The prompt is one run, and then each token is one.
class ProgramDecoder {
 public:
  /// Errors   invalid_argument for a program of another kind, with what is wrong with it.
  static Result<ProgramDecoder> make(std::unique_ptr<runtime::Session> session);

  /// `show` gets parts of the text as they become certain.
  ///
  /// Errors   invalid_argument for a prompt without tokens, or with more than there is room for.
  Result<ProgramText> generate(std::span<const int32_t> prompt, const io::Tokenizer& tokenizer,
                               const nn::GenerateOptions& options,
                               const std::function<void(std::string_view)>& show);
  int64_t capacity() const { return length_.max(); }
  const std::string& backend() const { return session_->backend(); }

 private:
  explicit ProgramDecoder(std::unique_ptr<runtime::Session> session) : session_(std::move(session)) {}
  Status check_ports();
  /// The scores behind the last of these tokens, the first of which is at `position`.
  Result<std::vector<float>> scores_after(std::span<const int32_t> ids, int64_t position);

  std::unique_ptr<runtime::Session> session_;
  Dim length_ = 1;
};

}  // namespace weft::cli

#pragma once
#include <memory>
#include <string>
#include <vector>

#include "formats/tokenizer_json.h"

namespace weft::io {

/// Decodes tokens to text, one at a time, by the decoders of a tokenizer. Text comes out as soon as no later
/// token can change it, and in whole characters.
class TokenDecoding {
 public:
  /// A step: receives the parts of a token's text, then its end, and passes tokens to the next step.
  class Step {
   public:
    virtual ~Step() = default;
    virtual void put(std::string_view part) = 0;
    virtual void end() = 0;
    virtual void finish() = 0;
    Step* next = nullptr;
  };

  /// Without decoders, tokens are separated by spaces.
  explicit TokenDecoding(const std::optional<std::vector<formats::TokenDecoder>>& decoders);
  void push(std::string_view token);
  void finish();
  /// The output; the reader clears it.
  std::string& text() { return *text_; }

 private:
  std::unique_ptr<std::string> text_;
  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace weft::io

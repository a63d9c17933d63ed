#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/tokenizer.h"

// Conversations as a model wants to read them.
namespace weft::io {

namespace jinja {
class Template;
}

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant"
  std::string content;
};

struct ChatOptions {
  bool add_generation_prompt = true;  ///< end where the assistant begins to speak
  /// What else a template may look at: a name, and "true", "false" or a string.
  std::vector<std::pair<std::string, std::string>> variables;
};

/// The chat template of a tokenizer: Jinja2, of which it may use what Hugging Face's chat templates do, with
/// the meaning that it has in Python: if, for, set, macro, namespaces, filters, tests, and methods of strings
/// and dicts.
///
/// Errors   invalid_argument for a tokenizer without one; corrupt or unsupported, with the line, for a
/// template
///          that can't be read; invalid_argument where the template refuses a conversation.
class ChatTemplate {
 public:
  explicit ChatTemplate(Tokenizer tokenizer);

  /// The text of a conversation.
  std::string render(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  /// Its tokens. A special token that is spelled out in a message is text there, not a token.
  std::vector<int32_t> encode(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;

 private:
  Tokenizer tokenizer_;
  std::shared_ptr<const jinja::Template> template_;
};

}  // namespace weft::io

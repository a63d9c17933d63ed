#include "weft/chat.h"

#include <set>

#include "io/jinja/template.h"
#include "weft/text.h"

namespace weft::io {
namespace {

// A noncharacter of Unicode that marks text of a message spelled like a special token. The marked text ends
// with its known spelling, so no template can strip the end of a mark.
constexpr char32_t kMark = U'\uFDD0';
constexpr std::string_view kMarkUtf8 = "\uFDD0";

/// The texts of a conversation, with special tokens that they spell marked.
class Guard {
 public:
  explicit Guard(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::string marked(std::string_view text) {
    std::u32string characters = from_utf8(text);
    std::erase(characters, kMark);
    const std::string own = to_utf8(characters);
    std::string out;
    size_t done = 0;
    for (const auto& [begin, end] : tokenizer_.specials_in(own)) {
      spellings_.insert(own.substr(begin, end - begin));
      out.append(own, done, begin - done).append(kMarkUtf8).append(own, begin, end - begin);
      done = end;
    }
    return out.append(own, done);
  }

  /// The length of the marked text at the front of `text`, which follows a mark; 0 if a template removed it.
  size_t length_of_marked(std::string_view text) const {
    size_t longest = 0;
    for (const std::string& s : spellings_)
      if (text.starts_with(s)) longest = std::max(longest, s.size());
    return longest;
  }

 private:
  const Tokenizer& tokenizer_;
  std::set<std::string> spellings_;
};

jinja::Value variable(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  return text;
}

}  // namespace

ChatTemplate::ChatTemplate(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {
  if (tokenizer_.chat_template().empty())
    throw Error(invalid("the tokenizer has no chat template: the model was not made for conversations"));
  template_ = std::make_shared<const jinja::Template>(tokenizer_.chat_template());
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages, const ChatOptions& options) const {
  jinja::List list;
  for (const ChatMessage& m : messages) {
    jinja::Dict d;
    d.items = {{"role", m.role}, {"content", m.content}};
    list.emplace_back(std::move(d));
  }
  const auto spelling = [&](std::optional<int32_t> id) { return id ? tokenizer_.token(*id) : std::string(); };
  std::vector<std::pair<std::string, jinja::Value>> variables = {
      {"messages", std::move(list)},
      {"tools", nullptr},
      {"documents", nullptr},
      {"add_generation_prompt", options.add_generation_prompt},
      {"bos_token", spelling(tokenizer_.bos())},
      {"eos_token", spelling(tokenizer_.eos())}};
  for (const auto& [name, value] : options.variables) variables.emplace_back(name, variable(value));
  return template_->render(std::move(variables));
}

std::vector<int32_t> ChatTemplate::encode(std::span<const ChatMessage> messages,
                                          const ChatOptions& options) const {
  Guard guard(tokenizer_);
  std::vector<ChatMessage> safe(messages.begin(), messages.end());
  for (auto& m : safe) m = {guard.marked(m.role), guard.marked(m.content)};
  const std::string text = render(safe, options);
  std::vector<int32_t> ids;
  const auto add = [&](std::string_view part, bool read_specials) {
    const auto more = tokenizer_.encode(part, false, read_specials);
    ids.insert(ids.end(), more.begin(), more.end());
  };
  std::string open;  // the template's own text, without marks whose text is gone
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t mark = std::min(rest.find(kMarkUtf8), rest.size());
    open += rest.substr(0, mark);
    rest.remove_prefix(std::min(rest.size(), mark + kMarkUtf8.size()));
    const size_t length = guard.length_of_marked(rest);
    if (length == 0) continue;
    add(std::exchange(open, {}), true);
    add(rest.substr(0, length), false);
    rest.remove_prefix(length);
  }
  add(open, true);
  return ids;
}

}  // namespace weft::io

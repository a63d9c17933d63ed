#include "weft/chat.h"

#include "io/jinja/template.h"

namespace weft::io {
namespace {

// Around what is no special token though it is spelled like one: two characters that Unicode keeps for such
// uses.
constexpr std::string_view kBegin = "\uFDD0", kEnd = "\uFDD1";

std::string without(std::string text, std::string_view part) {
  for (size_t at; (at = text.find(part)) != text.npos;) text.erase(at, part.size());
  return text;
}

std::string guarded(const Tokenizer& tokenizer, const std::string& content) {
  const std::string text = without(without(content, kBegin), kEnd);
  std::string out;
  size_t done = 0;
  for (const auto& [begin, end] : tokenizer.specials_in(text)) {
    out.append(text, done, begin - done).append(kBegin).append(text, begin, end - begin).append(kEnd);
    done = end;
  }
  return out.append(text, done);
}

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
  std::vector<ChatMessage> safe(messages.begin(), messages.end());
  for (auto& m : safe) m.content = guarded(tokenizer_, m.content);
  const std::string text = render(safe, options);
  std::vector<int32_t> ids;
  const auto add = [&](std::string_view part, bool read_specials) {
    const auto more = tokenizer_.encode(part, false, read_specials);
    ids.insert(ids.end(), more.begin(), more.end());
  };
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t begin = std::min(rest.find(kBegin), rest.size());
    add(rest.substr(0, begin), true);
    rest.remove_prefix(begin);
    if (rest.empty()) break;
    const size_t end = std::min(rest.find(kEnd), rest.size());
    add(rest.substr(kBegin.size(), end - std::min(end, kBegin.size())), false);
    rest.remove_prefix(std::min(rest.size(), end + kEnd.size()));
  }
  return ids;
}

}  // namespace weft::io

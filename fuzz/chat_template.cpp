#include "fuzz/target.h"
#include "io/jinja/template.h"

namespace weft::fuzz {

using io::jinja::Dict;
using io::jinja::List;
using io::jinja::Value;

static Dict message(const std::string& role, const std::string& content) {
  Dict d;
  d.items = {{"role", role}, {"content", content}};
  return d;
}

static std::string rendered(const io::jinja::Template& t) {
  const List messages = {message("system", "be kind"), message("user", " <b>\xC3\xA9\n "),
                         message("assistant", "")};
  return t.render({{"messages", messages},
                   {"tools", nullptr},
                   {"add_generation_prompt", true},
                   {"bos_token", "<s>"},
                   {"x", int64_t{-7}},
                   {"y", 2.5}});
}

// A chat template.
void target(std::string_view input) {
  if (input.find("strftime_now") != input.npos) return;  // a text that changes with the clock
  std::optional<io::jinja::Template> t;
  if (refused_by([&] { t.emplace(input); })) return;
  std::string text;
  if (refused_by([&] { text = rendered(*t); })) return;
  expect(rendered(*t) == text, "a template gives the same text again");
}

}  // namespace weft::fuzz

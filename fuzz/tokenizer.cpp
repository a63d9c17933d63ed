#include "weft/tokenizer.h"

#include "formats/tokenizer_json.h"
#include "fuzz/target.h"

namespace weft::fuzz {

// Texts that no tokenizer of a test was made for: malformed, accents in two forms, other scripts, digits,
// spaces.
static constexpr std::string_view kTexts[] = {"", "a b  ab\n\t0123", "e\xCC\x81\xC3\xA9 \xE4\xB8\xAD<s>",
                                              "\xFF\xC3 x\xF0\x9F\x98\x80"};

static void use(const io::Tokenizer& t, const io::Tokenizer& again) {
  for (const auto text : kTexts) {
    std::vector<int32_t> ids;
    if (refused_by([&] { ids = t.encode(text); })) continue;  // an expression may give up
    for (const int32_t id : ids) expect(id >= 0 && id < t.size(), "ids are those of the tokenizer");
    expect(again.encode(text) == ids, "what is written and read again gives the same ids");
    const std::string back = t.decode(ids);
    expect(again.decode(ids) == back, "what is written and read again gives the same text");
    io::TokenStream stream(t);
    std::string parts;
    for (const int32_t id : ids) parts += stream.push(id);
    expect((parts += stream.finish()) == back, "a stream gives what decode() gives");
  }
}

// The text of a tokenizer.json.
void target(std::string_view input) {
  auto file = formats::parse_tokenizer(input, "input");
  if (refused(file)) return;
  const std::string text = formats::write_tokenizer(*file);
  auto again = formats::parse_tokenizer(text, "written");
  expect(again.ok(), "what is written can be read: " + again.status().text());
  expect(formats::write_tokenizer(*again) == text, "what is read is written the same");
  std::optional<io::Tokenizer> t;
  if (refused_by([&] { t = io::Tokenizer::from_json(std::string(input)); })) return;
  const bool whole = file->before.empty() && file->after.empty();  // these are not written
  use(*t, whole ? io::Tokenizer::from_json(text) : *t);
  const int32_t any[] = {0, 1, 2, 255, 256, -1, INT32_MIN, INT32_MAX, 3, 0};
  (void)t->decode(any, false);  // ids may come from anywhere
}

}  // namespace weft::fuzz

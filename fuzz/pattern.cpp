#include "io/tokenizer/pattern.h"
#include "fuzz/target.h"
#include "weft/text.h"

// A regular expression of a tokenizer, in UTF-8 as JSON has it; it is looked for in itself and in a fixed
// text.
void weft::fuzz::target(std::string_view input) {
  const std::string source = io::to_utf8(io::from_utf8(input));
  auto pattern = io::Pattern::make({source, true});
  if (refused(pattern)) return;
  for (const std::string& text :
       {source, std::string("Aa 012\xC3\xA9\n\xE2\x82\xAC'll  \xF0\x9F\x98\x80 \xE1\xA0\x8E")}) {
    size_t end = 0;
    (void)refused_by([&] {  // it may give up
      io::Pattern::Walk walk(*pattern, text);
      for (io::Piece p; walk.next(p); end = p.end) {
        expect(p.begin == end, "pieces lie without gaps");
        expect(p.end >= p.begin && p.end <= text.size(), "pieces lie in the text");
        expect(p.end == text.size() || (static_cast<unsigned char>(text[p.end]) & 0xC0) != 0x80,
               "pieces end where characters end");
      }
      expect(end == text.size(), "pieces are the whole text");
    });
  }
}

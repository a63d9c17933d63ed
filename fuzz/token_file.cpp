#include <algorithm>

#include "fuzz/folder.h"
#include "fuzz/target.h"
#include "weft/data.h"

// The bytes of a token file: ids and their tokenizer.
void weft::fuzz::target(std::string_view input) {
  static const Folder folder;
  const std::string path = folder.write("given", input), copy = folder.at("written");
  std::optional<io::Tokens> tokens;
  if (refused_by([&] { tokens = io::Tokens::map(path); })) return;
  expect(io::Tokens::is_token_file(path), "what is mapped is known for a token file");
  tokens->save(copy);
  const auto again = io::Tokens::map(copy);
  expect(std::ranges::equal(again.ids(), tokens->ids()), "ids go round");
  expect(again.tokenizer().to_json() == tokens->tokenizer().to_json(), "the tokenizer goes round");
  expect(again.tokenizer().config_json() == tokens->tokenizer().config_json(), "its tokens go round");
  (void)refused_by([&] {  // ids that are none of the tokenizer's are found here
    const io::TokenData data(*tokens, 2, 1);
    (void)data.train(0, 2);
    (void)data.validation(0, 2);
  });
}

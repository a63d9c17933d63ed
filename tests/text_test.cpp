#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "test_backends.h"
#include "weft/data.h"
#include "weft/text.h"

namespace weft::io::text_test {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

class TextFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "sub");
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string put(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  std::string error(const std::vector<std::string>& paths) {
    return error_of([&] { load_text(paths); });
  }
  fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_text_test_{}", ::getpid());
};

TEST(Utf8, GoesRound) {
  const std::u32string s = U"a\u00e9\u20ac\U0001F600\u07ff\u0800\uffff\U00010000\U0010FFFF\x7f";
  bool valid = false;
  EXPECT_EQ(from_utf8(to_utf8(s), &valid), s);
  EXPECT_TRUE(valid);
}

// The division is Python's: bytes(..).decode("utf-8", errors="replace").
TEST(Utf8, EveryMalformedPartBecomesOneMark) {
  const std::pair<const char*, size_t> all[] = {{"\xff", 1},
                                                {"\xc0\xaf", 2},
                                                {"\xe0\x80\x80", 3},
                                                {"\xed\xa0\x80", 3},
                                                {"\xf5\x80\x80\x80", 4},
                                                {"\xe2\x82", 1},
                                                {"\x80", 1},
                                                {"\xf0\x80\x80\x80", 4},
                                                {"\xf0\x9f\x98", 1},
                                                {"\xf4\x90\x80\x80", 4},
                                                {"\xe2\x82\xe2", 2}};
  for (const auto& [bad, marks] : all) {
    bool valid = true;
    const auto s = from_utf8(bad, &valid);
    EXPECT_FALSE(valid);
    EXPECT_EQ(s, std::u32string(marks, U'\uFFFD'));
  }
  EXPECT_EQ(from_utf8("\xe2"
                      "a"),
            U"\uFFFDa");  // the next character is not swallowed
}

TEST_F(TextFiles, FoldersInOrderEachFileOnce) {
  put("b.txt", "two\r\nlines\rmore");
  put("a.txt", "one\n");
  put("sub/c.txt", "three");
  put(".hidden", "no");
  put("empty.txt", "");
  put("data.bin", std::string("x\0y", 3));
  fs::create_symlink(folder_ / "a.txt", folder_ / "z.txt");
  fs::create_symlink(folder_ / "sub", folder_ / "link");
  fs::create_symlink(folder_ / ".circle", folder_ / ".circle");
  const auto t = load_text({folder_.string()});
  EXPECT_EQ(t.utf8, "one\ntwo\r\nlines\rmore\nthree");
  EXPECT_EQ(t.files.size(), 3u);
  EXPECT_EQ(t.notes.size(), 5u);  // the empty and the binary one, two that are hidden, a linked folder
}

// Tokenizers get a file's contents byte for byte, and return them.
TEST_F(TextFiles, TheTextOfAFileIsItsBytes) {
  for (const std::string bytes :
       {"\xef\xbb\xbfone\r\ntwo\rthree\n\n", "no end of line", "\r\n", " x \t\f\n"}) {
    const auto t = load_text({put("f.txt", bytes)});
    EXPECT_EQ(t.utf8, bytes);
    EXPECT_TRUE(t.notes.empty());
    for (const auto& tokenizer : {Tokenizer::bytes(), Tokenizer::train_bpe(bytes, {.vocabulary_size = 300}),
                                  Tokenizer::train_characters(bytes, {.least = 1})})
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(t.utf8, false)), bytes);
  }
}

TEST_F(TextFiles, Latin1IsNoted) {
  const auto t = load_text({put("l.txt", "caf\xe9 noir")});
  EXPECT_EQ(t.utf8, "caf\u00e9 noir");
  ASSERT_EQ(t.notes.size(), 1u);
  EXPECT_NE(t.notes[0].find("Latin-1"), std::string::npos);
}

TEST_F(TextFiles, ErrorsNameTheFile) {
  EXPECT_EQ(error({"/no/such"}), "unavailable: no file or folder /no/such");
  EXPECT_NE(error({put("e.txt", "")}).find("e.txt is empty"), std::string::npos);
  EXPECT_NE(error({put("b.bin", std::string(8, '\0'))}).find("b.bin is binary"), std::string::npos);
  EXPECT_NE(error({(folder_ / "sub").string()}).find("no text in"), std::string::npos);
}

// A text of `n` tokens, each another one.
Tokens distinct(size_t n) {
  std::u32string text;
  for (size_t i = 0; i < n; ++i) text += static_cast<char32_t>(0x10000 + i);
  const auto utf8 = to_utf8(text);
  const auto tokenizer = Tokenizer::train_characters(utf8, {.limit = n, .least = 1});
  return {tokenizer.encode(utf8), tokenizer};
}

TEST(TokenData, BatchesAreFunctionsOfSeedAndNumber) {
  const auto tokens = distinct(50'000);
  const TokenData a(tokens, 4, 1), b(tokens, 4, 1), other(tokens, 4, 2);
  (void)b.train(0, 8);
  EXPECT_EQ(a.train(5, 8).tokens, b.train(5, 8).tokens);
  EXPECT_NE(a.train(5, 8).tokens, a.train(6, 8).tokens);
  EXPECT_NE(a.train(5, 8).tokens, other.train(5, 8).tokens);
  EXPECT_EQ(a.train_tokens() + a.validation_tokens(), 50'000);
  std::set<int32_t> held;
  for (uint64_t n = 0; n < 50; ++n) {
    const auto batch = a.validation(n, 32);
    held.insert(batch.targets.begin(), batch.targets.end());
    for (size_t i = 0; i < batch.tokens.size(); ++i) ASSERT_EQ(batch.targets[i], batch.tokens[i] + 1);
  }
  EXPECT_GT(held.size(), 2'000u);
  for (uint64_t n = 0; n < 400; ++n) {
    const auto batch = a.train(n, 32);
    ASSERT_EQ(batch.tokens.size(), 128u);
    for (const int32_t t : batch.targets)
      EXPECT_FALSE(held.contains(t));  // validation tokens are never trained on
  }
}

TEST(TokenData, AnEpochHasEachRowOnceInAnOrderOfItsOwn) {
  const TokenData data(distinct(30'000), 16, 3);
  const int64_t rows = data.train_rows();
  EXPECT_GT(rows * 16, data.train_tokens() * 9 / 10);
  std::vector<int32_t> orders[2];
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    std::set<int32_t> seen;
    for (int64_t i = 0; i < rows; ++i) {
      const auto b = data.train(static_cast<uint64_t>(epoch * rows + i), 1);
      orders[epoch].push_back(b.tokens[0]);
      for (const int32_t t : b.tokens) EXPECT_TRUE(seen.insert(t).second);  // no token twice
    }
    EXPECT_FALSE(std::ranges::is_sorted(orders[epoch]));
  }
  EXPECT_NE(orders[0], orders[1]);
  // However the rows are batched, they come in the same order.
  EXPECT_EQ(data.train(1, 8).tokens[0], orders[0][8]);
}

TEST(TokenData, ATextTooShortIsToldHowLongItMustBe) {
  const std::vector<int32_t> ids(100'000);
  for (const size_t context : {1, 4, 1023, 1024, 2100}) {
    const auto of = [&](size_t n) {
      return TokenData({{ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)}, Tokenizer::bytes()},
                       static_cast<int64_t>(context), 1);
    };
    const size_t least = 2 * (context + 1);
    const auto data = of(least);
    EXPECT_EQ(data.train(3, 2).targets.size(), 2 * context);
    EXPECT_EQ(data.validation(3, 2).targets.size(), 2 * context);
    EXPECT_NE(error_of([&] { of(least - 1); }).find(fmt::format("which wants {} at least", least)),
              std::string::npos);
  }
}

TEST_F(TextFiles, TokenFilesAreMappedAsTheyWereWritten) {
  const auto tokens = distinct(1000);
  const std::string path = (folder_ / "corpus.tokens").string();
  tokens.save(path);
  EXPECT_TRUE(Tokens::is_token_file(path));
  EXPECT_FALSE(Tokens::is_token_file(put("a.txt", "some text that is no token file")));
  const auto mapped = Tokens::map(path);
  EXPECT_TRUE(std::ranges::equal(mapped.ids(), tokens.ids()));
  EXPECT_EQ(mapped.tokenizer().to_json(), tokens.tokenizer().to_json());

  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  const auto replaced = [&](const std::string& from, const std::string& to) {
    auto s = whole;
    return s.replace(s.find(from), from.size(), to);
  };
  for (const auto& [bytes, words] :
       {std::pair(whole.substr(0, whole.size() - 100), "data_offsets"),
        {replaced("\"tokens\"", "\"tokenz\""), "tensor 'tokens' must be there"},
        {replaced("\"tokenizer\"", "\"tokenizes\""), "field 'tokenizer' is missing"},
        {replaced("\"I32\"", "\"U32\""), "i32 of rank 1"}})
    EXPECT_NE(error_of([&] { Tokens::map(put("bad", bytes)); }).find(words), std::string::npos) << words;
  // An id that the tokenizer does not have is found when its row is drawn.
  auto strange = whole;
  strange.replace(strange.size() - 4 * 10, 4, "\xff\xff\xff\x7f");
  const TokenData data(Tokens::map(put("strange", strange)), 400, 1);
  EXPECT_NE(error_of([&] {
              for (uint64_t n = 0; n < 100; ++n) data.validation(n, 8);
            }).find("the tokens have id 2147483647"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::io::text_test

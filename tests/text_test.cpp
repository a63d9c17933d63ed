#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "weft/text.h"

namespace weft::io {
namespace {

namespace fs = std::filesystem;

class TextFiles : public testing::Test {
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
    try {
      load_text(paths);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
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
  const auto t = load_text({folder_.string()});
  EXPECT_EQ(to_utf8(t.characters), "one\n\ntwo\nlines\nmore\nthree\n");
  EXPECT_EQ(t.files.size(), 3u);
  EXPECT_EQ(t.notes.size(), 2u);  // the empty one and the binary one
}

TEST_F(TextFiles, Latin1IsNoted) {
  const auto t = load_text({put("l.txt", "caf\xe9 noir")});
  EXPECT_EQ(t.characters, U"caf\u00e9 noir\n");
  ASSERT_EQ(t.notes.size(), 1u);
  EXPECT_NE(t.notes[0].find("Latin-1"), std::string::npos);
}

TEST_F(TextFiles, ErrorsNameTheFile) {
  EXPECT_EQ(error({"/no/such"}), "unavailable: no file or folder /no/such");
  EXPECT_NE(error({put("e.txt", "")}).find("e.txt is empty"), std::string::npos);
  EXPECT_NE(error({put("b.bin", std::string(8, '\0'))}).find("b.bin is binary"), std::string::npos);
  EXPECT_NE(error({(folder_ / "sub").string()}).find("no text in"), std::string::npos);
}

TEST(Vocabulary, GoesRound) {
  std::u32string s;
  for (int i = 0; i < 10; ++i) s += U"hello \u20ac";
  s += U"q";
  const auto v = Vocabulary::from_text(s);
  EXPECT_EQ(v.characters(), U"\uFFFD ehlo\u20ac");
  EXPECT_EQ(v.decode(v.encode(U"hole \u20ac")), U"hole \u20ac");
  EXPECT_EQ(v.decode(v.encode(U"qua")), U"\uFFFD\uFFFD\uFFFD");  // rare and unseen
  EXPECT_EQ(Vocabulary(v.characters()).encode(s), v.encode(s));
  EXPECT_EQ(Vocabulary::from_text(s, 2).size(), 3);
  EXPECT_THROW(Vocabulary(U"ab"), Error);
  EXPECT_THROW(Vocabulary(U"\uFFFDba"), Error);
  EXPECT_THROW(Vocabulary(U"\uFFFDaa"), Error);
  const int32_t outside[] = {99};
  EXPECT_THROW(v.decode(outside), Error);
}

TEST(TextData, BatchesAreFunctionsOfSeedAndNumber) {
  std::vector<int32_t> ids(50'000);
  std::iota(ids.begin(), ids.end(), 0);
  const TextData a(ids, 4, 1), b(ids, 4, 1), other(ids, 4, 2);
  (void)b.train(0, 8);
  EXPECT_EQ(a.train(5, 8).tokens, b.train(5, 8).tokens);
  EXPECT_NE(a.train(5, 8).tokens, a.train(6, 8).tokens);
  EXPECT_NE(a.train(5, 8).tokens, other.train(5, 8).tokens);
  EXPECT_EQ(a.train_size() + a.validation_size(), 50'000);
  std::set<int32_t> held;
  for (uint64_t n = 0; n < 50; ++n)
    for (const int32_t t : a.validation(n, 32).targets) held.insert(t);
  EXPECT_GT(held.size(), 500u);
  for (uint64_t n = 0; n < 200; ++n) {
    const auto batch = a.train(n, 32);
    ASSERT_EQ(batch.tokens.size(), 128u);
    for (const int32_t t : batch.targets)
      EXPECT_FALSE(held.contains(t));  // what validates is never trained on
  }
}

TEST(TextData, ATextTooShortIsToldHowLongItMustBe) {
  const std::vector<int32_t> ids(100'000);
  for (const auto& [context, least] :
       {std::pair(4, 19'461), {1023, 20'480}, {1024, 39'937}, {2100, 60'469}}) {
    EXPECT_NO_THROW(TextData(std::span(ids).first(static_cast<size_t>(least)), context, 1));
    try {
      (void)TextData(std::span(ids).first(static_cast<size_t>(least) - 1), context, 1);
      ADD_FAILURE() << context;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(fmt::format("a text of at least {}; ", least)), std::string::npos)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace weft::io

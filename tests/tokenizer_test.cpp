#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "weft/text.h"
#include "weft/tokenizer.h"

namespace weft::io {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<int32_t>;

std::string read(const fs::path& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(all).str();
}

/// The answers of PyPI's tokenizers; scripts/token_oracle says what is in them.
fs::path oracle() {
  const char* other = std::getenv("WEFT_TOKENS");
  return other ? fs::path(other) : fs::path(WEFT_SOURCE_DIR "/conformance/data/tokens");
}

std::string said(const Tokenizer& t, const std::string& line) {
  const Ids plain = t.encode(line, false), ids = t.encode(line);
  std::string all = fmt::format("{}|{}", fmt::join(plain, " "), fmt::join(ids, " "));
  return fmt::format("{}|{}|{}", all, t.decode(ids), t.decode(ids, false));
}

TEST(Tokenizers, AnswerAsTheOracle) {
  const json cases = json::parse(read(oracle() / "cases.json"));
  auto lines = cases["lines"].get<std::vector<std::string>>();
  for (const auto& bad : cases["malformed"]) {
    std::string bytes;
    for (const char32_t c : from_utf8(bad.get<std::string>())) bytes += static_cast<char>(c);
    lines.push_back(bytes);
  }
  ASSERT_GE(cases["kinds"].size(), 14u);
  for (const auto& [kind, hashes] : cases["kinds"].items()) {
    const auto tokenizer = Tokenizer::load((oracle() / (kind + ".json")).string());
    ASSERT_EQ(hashes.size(), lines.size());
    size_t wrong = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string ours = said(tokenizer, lines[i]);
      if (fmt::format("{:016x}", XXH3_64bits(ours.data(), ours.size())) == hashes[i].get<std::string>())
        continue;
      if (++wrong <= 3)
        ADD_FAILURE() << kind << ", line " << i << ": "
                      << json(lines[i]).dump(-1, ' ', true, json::error_handler_t::replace) << "\n"
                      << ours;
    }
    fmt::print("[tokens] {:<14} {} lines, {} differ\n", kind, lines.size(), wrong);
    EXPECT_EQ(wrong, 0u) << kind;
  }
}

}  // namespace
}  // namespace weft::io

#pragma once
#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "program/container.h"
#include "small_program.h"

// Program files by their bytes: which section each belongs to, and what happens when one is not what it was.
namespace weft::program {

inline uint64_t u64_at(const std::string& s, size_t at) {
  uint64_t v = 0;
  std::memcpy(&v, s.data() + at, sizeof v);
  return v;
}
inline void put_hash(std::string& file, size_t at, size_t from, size_t n) {
  const Hash h = hash128(std::as_bytes(std::span(file).subspan(from, n)));
  std::memcpy(file.data() + at, &h, sizeof h);
}
inline void reseal_header(std::string& file) { put_hash(file, 48, 0, 48); }

/// A section as the table says it.
struct Section {
  std::string name;
  size_t at = 0, size = 0;
};
inline std::vector<Section> sections(const std::string& file) {
  std::vector<Section> all;
  for (size_t entry = 64; all.size() < static_cast<unsigned char>(file[12]); entry += 48)
    all.push_back({file.substr(entry, strnlen(file.data() + entry, 16)), u64_at(file, entry + 16),
                   u64_at(file, entry + 24)});
  return all;
}
inline Section section(const std::string& file, std::string_view name) {
  const auto all = sections(file);
  return *std::ranges::find(all, name, &Section::name);
}

/// The section that each byte of the file belongs to; padding belongs to what follows it.
inline std::vector<std::string> owners(const std::string& file) {
  const auto all = sections(file);
  std::vector<std::string> out(64, "header");
  out.resize(64 + all.size() * 48, "section table");
  for (const auto& s : all)
    if (s.name != "blobs") out.resize(s.at + s.size, s.name);
  const size_t table = section(file, "blob table").at, blobs = section(file, "blobs").at;
  out.resize(blobs, "blobs");
  for (size_t i = 0; i < section(file, "blob table").size / 32; ++i)
    out.resize(blobs + u64_at(file, table + i * 32) + u64_at(file, table + i * 32 + 8),
               fmt::format("blob {}", i));
  return out;
}

/// A program as the compiler writes it, with tests.
inline std::string compiled_file() {
  std::ifstream in(WEFT_SOURCE_DIR "/tests/golden/version_1_1.weft", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What is said of a file.
using Said = std::function<std::string(const std::string& file)>;

/// Whichever bit differs, the section that it lies in is named.
inline void flip_every_bit(std::string file, const Said& said) {
  const auto owner = owners(file);
  ASSERT_EQ(owner.size(), file.size());
  for (size_t at = 0; at < file.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      file[at] = static_cast<char>(file[at] ^ (1 << bit));
      const auto words = said(file);
      ASSERT_NE(words.find(owner[at] + ":"), std::string::npos)
          << "byte " << at << " bit " << bit << ": " << words;
      file[at] = static_cast<char>(file[at] ^ (1 << bit));
    }
  EXPECT_EQ(said(file), "ok");
}

/// A file that ends too early, or has a byte more, is refused by its header.
inline void cut_everywhere(const std::string& file, const Said& said) {
  for (size_t n = 0; n < file.size(); ++n)
    ASSERT_NE(said(file.substr(0, n)).find("header:"), std::string::npos)
        << n << ": " << said(file.substr(0, n));
  EXPECT_NE(said(file + '\0').find("header:"), std::string::npos);
}

}  // namespace weft::program

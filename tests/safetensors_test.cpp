#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "formats/safetensors.h"
#include "test_backends.h"
#include "weft/safetensors.h"

namespace weft::formats::safetensors_test {
namespace {

std::vector<std::byte> file(const std::string& header, size_t data_bytes, uint64_t said = UINT64_MAX) {
  const uint64_t length = said == UINT64_MAX ? header.size() : said;
  std::vector<std::byte> out(8 + header.size() + data_bytes);
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  return out;
}

struct Bad {
  const char* why;
  std::vector<std::byte> bytes;
  const char* words;
};

TEST(Safetensors, BadFilesSayWhatIsWrong) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const Bad all[] = {
      {"nothing", {}, "has 0 bytes, too few for a header"},
      {"short", std::vector<std::byte>(7), "has 7 bytes"},
      {"long header", file("{}", 0, 3), "header says 3 bytes, the file has 10"},
      {"huge header", file("{}", 0, uint64_t{1} << 63), "header says 9223372036854775808"},
      {"no JSON", file("{\"a\":", 0), "no JSON object"},
      {"a list", file("[]", 0), "no JSON object"},
      {"deep lists", file("{\"a\":" + std::string(100'000, '['), 0), "byte 105 is more than 100 lists"},
      {"not UTF-8", file("{\"\xff\":1}", 0), "no JSON object"},
      {"twice", file("{" + a + "," + a + "}", 8), "\"a\" appears twice"},
      {"twice inside", file(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8),
       "\"dtype\" appears twice"},
      {"no object", file(R"({"a":3})", 0), "'a' is no object"},
      {"no dtype", file(R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8), "no text field 'dtype'"},
      {"dtype", file(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8), "unknown dtype 'F31'"},
      {"no shape", file(R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", 8), "no list 'shape'"},
      {"negative", file(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "'shape' holds -2"},
      {"fraction", file(R"({"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8),
       "'shape' holds 2.5"},
      {"size", file(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
       "f32[3] does not have 8 bytes"},
      {"overflow", file(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0),
       "does not have 0"},
      {"outside", file("{" + a + "}", 7), "within 7 bytes, got [0,8]"},
      {"backwards", file(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[8,0]}})", 8), "got [8,0]"},
      {"three", file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8), "got [0,8,8]"},
      {"overlap", file("{" + a + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", 8), "overlap"},
      {"gap", file(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", 8),
       "4 bytes before tensor 'a'"},
      {"rest", file("{" + a + "}", 9), "1 bytes at the end"},
      {"metadata", file(R"({"__metadata__":[1]})", 0), "__metadata__ is no object"},
      {"metadata value", file(R"({"__metadata__":{"k":1}})", 0), "field 'k' is no text"},
  };
  for (const auto& bad : all) {
    const auto r = parse_safetensors(bad.bytes, "x.safetensors");
    ASSERT_FALSE(r.ok()) << bad.why;
    EXPECT_EQ(r.status().code(), Code::corrupt) << bad.why;
    EXPECT_NE(r.status().message().find(bad.words), std::string::npos)
        << bad.why << ": " << r.status().message();
    EXPECT_EQ(r.status().message().find("x.safetensors: "), 0u) << bad.why;
  }
}

TEST(Safetensors, MessagesCutLongNames) {
  const std::string n(100'000, 'n'), tensor = "{\"" + n + "\":";
  std::string sizes = "1";
  for (int i = 0; i < 50'000; ++i) sizes += ",1";
  for (const std::string& header :
       {tensor + "3}", tensor + R"({"shape":[2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":")" + n + R"(","shape":[2],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[")" + n + R"("],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[)" + sizes + R"(],"data_offsets":[0,8]}})",
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[)" + sizes + "]}}",
        tensor + R"({"dtype":"U8","shape":[4],"data_offsets":[4,8]}})", tensor + "1,\"" + n + "\":1}",
        R"({"__metadata__":{")" + n + R"(":1}})"}) {
    const auto r = parse_safetensors(file(header, 8), "x.safetensors");
    ASSERT_FALSE(r.ok());
    EXPECT_LT(r.status().message().size(), 500) << r.status().message().substr(0, 200);
  }
}

TEST(Safetensors, EveryDTypeGoesRound) {
  std::vector<std::vector<std::byte>> data;
  std::vector<TensorEntry> entries;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    data.emplace_back(3 * byte_size(t), static_cast<std::byte>(i + 1));
    entries.push_back({name(t), t, {3, 1}, data.back()});
  }
  entries.push_back({"none", DType::f32, {0, 5}, {}});
  entries.push_back({"scalar", DType::u8, {}, std::span(data[0]).first(1)});
  const auto bytes = encode_safetensors(entries, {{"k", "v"}});
  ASSERT_TRUE(bytes.ok());
  const auto back = parse_safetensors(*encode_safetensors(entries, {{"k", "v"}}), "x");
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(back.value().metadata.at("k"), "v");
  ASSERT_EQ(back.value().tensors.size(), entries.size());
  for (const auto& e : entries) {
    const auto* t = back.value().find(e.name);
    ASSERT_TRUE(t) << e.name;
    EXPECT_EQ(t->dtype, e.dtype);
    EXPECT_EQ(t->shape, e.shape);
    EXPECT_TRUE(std::equal(t->bytes.begin(), t->bytes.end(), e.bytes.begin(), e.bytes.end())) << e.name;
  }
}

// Any byte of a file may be wrong and any part missing: gives an error or another file, never a crash.
TEST(Safetensors, DamageIsSafe) {
  const std::vector<std::byte> data(24);
  const TensorEntry entries[] = {{"a", DType::f32, {2, 3}, data}};
  auto r = encode_safetensors(entries, {{"k", "v"}});
  const auto whole = *std::move(r);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_FALSE(
        parse_safetensors({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(i)}, "x").ok());
    for (const int flip : {1, 16, 128}) {
      auto copy = whole;
      copy[i] ^= static_cast<std::byte>(flip);
      (void)parse_safetensors(std::move(copy), "x").ok();
    }
  }
}

TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  const auto folder = std::filesystem::temp_directory_path() / "weft_atomic_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "taken");
  ASSERT_TRUE(write_file((folder / "f").string(), std::string_view("old")).ok());
  EXPECT_FALSE(write_file((folder / "taken").string(), std::string_view("new")).ok());  // a folder's name
  EXPECT_FALSE(write_file((folder / "no" / "f").string(), std::string_view("new")).ok());
  size_t entries = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder)) ++entries;
  EXPECT_EQ(entries, 2u);  // and nothing is left behind
  std::filesystem::remove_all(folder);
}

namespace fs = std::filesystem;

/// A folder for files, and what they hold.
class OutputFiles : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const char* name) const { return (folder_ / name).string(); }
  static std::string write(const std::string& path, std::string_view text) {
    return write_file(path, text).text();
  }
  static std::string contents(const std::string& path) {
    const auto bytes = value_or_raise(read_file(path));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::ptrdiff_t count() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_output_files_{}", ::getpid());
};

TEST_F(OutputFiles, ALinkStaysALinkAndItsTargetIsReplaced) {
  fs::create_directory(at("there"));
  ASSERT_EQ(write(at("there/f"), "old"), "ok");
  fs::create_symlink("there/f", at("link"));
  fs::create_symlink("link", at("second"));
  fs::create_symlink(at("there/new"), at("dangling"));
  fs::create_symlink("loop", at("loop"));
  EXPECT_EQ(write(at("second"), "new"), "ok");
  EXPECT_EQ(write(at("dangling"), "made"), "ok");
  for (const char* link : {"link", "second", "dangling", "loop"})
    EXPECT_TRUE(fs::is_symlink(at(link))) << link;
  EXPECT_EQ(contents(at("there/f")), "new");
  EXPECT_EQ(contents(at("there/new")), "made");
  EXPECT_NE(write(at("loop"), "x").find("Too many levels of symbolic links"), std::string::npos);
  EXPECT_EQ(count(), 5);
}

TEST_F(OutputFiles, WhatAKilledWriterLeftIsInNobodysWay) {
  for (int i = 0; i < 500; ++i)  // whatever number is the next
    std::ofstream(fmt::format("{}.tmp.{}.{}", at("f"), ::getpid(), i)) << "left";
  EXPECT_EQ(write(at("f"), "new"), "ok");
  EXPECT_EQ(contents(at("f")), "new");
}

TEST_F(OutputFiles, AnOldFileKeepsItsPermissions) {
  ASSERT_EQ(write(at("f"), "old"), "ok");
  fs::permissions(at("f"), fs::perms(0640));
  ASSERT_EQ(write(at("f"), "new"), "ok");
  EXPECT_EQ(fs::status(at("f")).permissions(), fs::perms(0640));
}

TEST_F(OutputFiles, APipeAndADeviceAreWrittenAsTheyStand) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  const int reader = ::open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_EQ(write(at("pipe"), "through"), "ok");
  char got[16];
  EXPECT_EQ(::read(reader, got, sizeof got), 7);
  EXPECT_EQ(std::string_view(got, 7), "through");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
  fs::create_symlink("/dev/full", at("full"));
  EXPECT_EQ(write(at("full"), "x"),
            fmt::format("input/output: can't write '{}': No space left on device", at("full")));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_EQ(write(folder_.string(), "x"),
            fmt::format("input/output: can't write '{}': it is a folder", folder_.string()));
  EXPECT_EQ(count(), 2);
}

/// Files of tensors.
class TensorFiles : public OutputFiles {
 protected:
  /// One with this header, and as many zeros behind it.
  std::string made(const char* name, const std::string& header, size_t data_bytes) const {
    const auto bytes = file(header, data_bytes);
    EXPECT_TRUE(write_file(at(name), bytes).ok());
    return at(name);
  }
  static std::string said(const std::function<void()>& f) { return testing::error_of(f); }
};

TEST_F(TensorFiles, WhatNoReaderTakesIsNotWritten) {
  io::write_safetensors(at("t"), {{"old", Tensor::of({1}, {1})}});
  const Tensor one = Tensor::of({2}, {1});
  EXPECT_EQ(said([&] { io::write_safetensors(at("t"), {{"__metadata__", one}}); }),
            "invalid argument: safetensors: no tensor can be named '__metadata__'");
  EXPECT_EQ(said([&] { io::write_safetensors(at("t"), {{"a\xff", one}, {"a\xfe", one}}); }),
            "invalid argument: safetensors: the name \"a\xef\xbf\xbd\" of a tensor is not UTF-8");
  EXPECT_EQ(said([&] { io::write_safetensors(at("t"), {{"a", one}}, {{"by", "\xff"}}); }),
            "invalid argument: safetensors: the metadata \"by\": \"\xef\xbf\xbd\" is not UTF-8");
  EXPECT_TRUE(io::Safetensors::map(at("t")).contains("old"));
  EXPECT_EQ(count(), 1);
}

TEST_F(TensorFiles, LimitsAreNamed) {
  const uint64_t length = kMaxSafetensorsHeader + 1;
  ASSERT_EQ(write(at("header"), {reinterpret_cast<const char*>(&length), sizeof length}), "ok");
  fs::resize_file(at("header"), sizeof length + length);  // with a hole
  EXPECT_NE(said([&] {
              io::Safetensors::map(at("header"));
            }).find("the header says 100000001 bytes, the format has at most 100000000"),
            std::string::npos);
  const auto path =
      made("rank", R"({"deep":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1);
  const auto ranked = io::Safetensors::map(path);
  EXPECT_EQ(ranked.tensors()[0].shape.size(), 9u);
  EXPECT_EQ(said([&] { (void)ranked.read("deep"); }),
            "invalid argument: " + path + ": tensor 'deep': rank 9 is above the limit of 8");
}

}  // namespace
}  // namespace weft::formats::safetensors_test

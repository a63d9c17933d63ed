#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "program/container.h"
#include "small_program.h"

namespace weft::program::program_test {
namespace {

namespace fs = std::filesystem;

void expect_same(const CompiledProgram& a, const CompiledProgram& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.symbols, b.symbols);
  EXPECT_TRUE(a.values == b.values);
  EXPECT_TRUE(a.calls == b.calls);
  EXPECT_TRUE(a.regions == b.regions);
  EXPECT_TRUE(a.inputs == b.inputs && a.outputs == b.outputs);
  EXPECT_TRUE(a.states == b.states && a.weights == b.weights);
  EXPECT_EQ(a.origin, b.origin);
  ASSERT_EQ(a.blobs.size(), b.blobs.size());
  for (size_t i = 0; i < a.blobs.size(); ++i) {
    ASSERT_EQ(a.blobs[i].size, b.blobs[i].size);
    EXPECT_EQ(std::memcmp(a.blobs[i].data, b.blobs[i].data, a.blobs[i].size), 0) << "blob " << i;
  }
}

/// A folder of its own for a test, gone afterwards.
struct Folder {
  fs::path path = fs::temp_directory_path() / fmt::format("weft_program_{}_{}", ::getpid(), next++);
  static inline int next = 0;
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
  size_t count() const { return static_cast<size_t>(std::distance(fs::directory_iterator(path), {})); }
};

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// ---- round trip ----

TEST(Program, RoundTripKeepsEverything) {
  const auto p = small_program();
  ASSERT_EQ(verify(p).text(), "ok");
  const auto again = load(serialize(p));
  ASSERT_TRUE(again.ok()) << again.status().text();
  expect_same(p, again.value());
  EXPECT_TRUE(std::signbit(std::get<double>(again.value().calls[0].attrs[1].value)));
  EXPECT_EQ(text(again.value().values[0].type), "f32[rows*16, 4]");
  EXPECT_TRUE(again.value().values[0].type.shape[0] == rows() * 16);
}

TEST(Program, EmptyProgramRoundTrips) {
  const auto again = load(serialize(CompiledProgram{}));
  ASSERT_TRUE(again.ok()) << again.status().text();
  expect_same(CompiledProgram{}, again.value());
}

TEST(Program, NanKeepsItsBits) {
  auto p = small_program();
  const auto nan = std::bit_cast<double>(uint64_t{0x7ff8000000001234});
  p.calls[0].attrs[1].value = nan;
  auto again = load(serialize(p));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(std::bit_cast<uint64_t>(std::get<double>(again->calls[0].attrs[1].value)), 0x7ff8000000001234);
}

TEST(Program, SameProgramSameBytes) {
  const auto first = serialize(small_program());
  EXPECT_EQ(first, serialize(small_program()));
  const auto again = load(first);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(first, serialize(again.value()));
}

TEST(Program, BlobsAreAlignedInTheFile) {
  const auto file = serialize(small_program());
  const auto p = load(file);
  ASSERT_TRUE(p.ok());
  for (const auto& b : p.value().blobs) EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data) % 64, 0u);
}

TEST(Program, TwoProgramsMayBoundOneSymbolDifferently) {
  const auto with_rows = [](int64_t max) {
    const Dim d = Dim::symbol("rows", 1, max);
    CompiledProgram p;
    p.symbols = {{"rows", 1, max}};
    p.values = {f32({d * 16, floor_div(d, 3), d * floor_div(d, 2)})};
    p.inputs = {{"x", 0}};
    return p;
  };
  for (const int64_t max : {5, 9, 64}) {
    const auto again = load(serialize(with_rows(max)));
    ASSERT_TRUE(again.ok()) << again.status().text();
    expect_same(with_rows(max), again.value());
    EXPECT_EQ(again.value().values[0].type.shape[0].max(), max * 16);
  }
}

TEST(Program, UnalignedBytesLoadToo) {
  const auto file = "." + serialize(small_program());
  const Blob aligned = Blob::copy_of(file.data(), file.size());
  const auto p = deserialize({aligned.data + 1, aligned.size - 1, aligned.owner});
  ASSERT_TRUE(p.ok()) << p.status().text();
  expect_same(small_program(), p.value());
}

TEST(Program, Prints) {
  EXPECT_EQ(print(small_program()), R"(program small
origin compiler: weft test
origin model: 
symbol rows in 1..64
input  %0: f32[rows*16, 4]  "x"
state  %2: f32[3]  "counter" ends as %5, blob 1, 12 bytes
weight %1: f32[4, 4]  "w" blob 0, 64 bytes
weight %6: u8[5] layout=7  "packed" blob 2, 5 bytes
output %4: f32[rows*16, 4]  "y"
  %3: f32[rows*16, 4] = matmul(%0, %1) {a=-3, b=-0.0, c=[2, rows*16, max(7,rows)], d=")" +
                                        std::string("me\0an", 5) + R"(", e=bytes(2)}  ; hidden1.matmul
  %4: f32[rows*16, 4] = silu.v3@r0(%3, _)
  %5: f32[3] = count(%2) [%5 over %2]  ; count

@r0 silu(%0: f32[rows*16, 4], %1: f32[4]) -> %3:
  %2: f32[rows*16, 4] = sigmoid(%0)
  %3: f32[rows*16, 4] = mul(%0, %2)
)");
}

TEST(Program, PrintsWhatVerifyRefuses) {
  auto p = small_program();
  p.calls[0].inputs = {77, -5}, p.calls[0].updates = {{9, 9}}, p.weights[0].blob = 12;
  EXPECT_NE(print(p).find("[? over ?]"), std::string::npos);
}

// ---- verify ----

struct Mutation {
  const char* words;
  std::function<void(CompiledProgram&)> apply;
};

const std::vector<Mutation>& mutations() {
  using P = CompiledProgram;
  const int64_t big = int64_t{1} << 40;
  static const std::vector<Mutation> all = {
      {"symbol rows is in 5..4", [](P& p) { p.symbols[0] = {"rows", 5, 4}; }},
      {"symbol rows is in -1..4", [](P& p) { p.symbols[0] = {"rows", -1, 4}; }},
      {"symbol rows is listed twice", [](P& p) { p.symbols.push_back(p.symbols[0]); }},
      {"has no name that a dimension can spell", [](P& p) { p.symbols[0].name = "a b"; }},
      {"value %0: dimension rows*16 uses symbol rows in 1..64, which is not listed",
       [](P& p) { p.symbols = {}; }},
      {"attribute c: dimension", [](P& p) { p.calls[0].attrs[2].value = Shape{Dim::symbol("other", 1, 2)}; }},
      {"value %2: f32[-1] has the negative dimension -1", [](P& p) { p.values[2] = f32({-1}); }},
      {"may have more bytes", [=](P& p) { p.values[2] = f32({big, 0, big}); }},
      {"value %3: element type 99", [](P& p) { p.values[3].type.dtype = static_cast<DType>(99); }},
      {"input 0 has no name", [](P& p) { p.inputs[0].name = ""; }},
      {"output 0's name holds control", [](P& p) { p.outputs[0].name = "a\nb"; }},
      {"the program's name holds control", [](P& p) { p.name = "\x1b[31m"; }},
      {"two weights are called 'w'", [](P& p) { p.weights[1].name = "w"; }},
      {"two outputs are called 'y'", [](P& p) { p.outputs.push_back(p.outputs[0]); }},
      {"state 0 has no name", [](P& p) { p.states[0].name = ""; }},
      {"call 0 matmul (hidden1.matmul): input 1: value %9", [](P& p) { p.calls[0].inputs[1] = 9; }},
      {"input 1: value %-2", [](P& p) { p.calls[0].inputs[1] = -2; }},
      {"input 1: value %4 is read before", [](P& p) { p.calls[0].inputs[1] = 4; }},
      {"input 0: value %3 is read before", [](P& p) { p.calls[0].inputs[0] = 3; }},
      {"call 1 silu: output 0: value %3 is defined twice", [](P& p) { p.calls[1].outputs[0] = 3; }},
      {"output 0: value %7;", [](P& p) { p.calls[1].outputs[0] = 7; }},
      {"weight 'w': value %1 is defined twice", [](P& p) { p.inputs[0].value = 1, p.weights[0].value = 1; }},
      {"input 'x': value %-1", [](P& p) { p.inputs[0].value = kAbsent; }},
      {"output 'y': value %70", [](P& p) { p.outputs[0].value = 70; }},
      {"output 'y': value %2 is read after %5", [](P& p) { p.outputs[0].value = 2; }},
      {"value %7 is listed, but nothing", [](P& p) { p.values.push_back(f32({1})); }},
      {"wanted each once, sorted", [](P& p) { std::swap(p.calls[0].attrs[0], p.calls[0].attrs[1]); }},
      {"attribute a after a", [](P& p) { p.calls[0].attrs[1].name = "a"; }},
      {"an attribute has no name", [](P& p) { p.calls[0].attrs[0].name = ""; }},
      {"default zz is no attribute", [](P& p) { p.calls[0].defaults = {"zz"}; }},
      {"defaults; wanted each once", [](P& p) { p.calls[0].defaults = {"a", "a"}; }},
      {"the op has no name", [](P& p) { p.calls[0].op = ""; }},
      {"call 1 silu: region 4; the program has 1", [](P& p) { p.calls[1].region = 4; }},
      {"region -2;", [](P& p) { p.calls[1].region = -2; }},
      {"its region @r0 has 2 and 1", [](P& p) { p.calls[1].inputs.pop_back(); }},
      {"its region @r0 has 2 and 1", [](P& p) { p.calls[1].inputs.push_back(kAbsent); }},
      {"output 0: value %-1", [](P& p) { p.calls[1].outputs[0] = kAbsent; }},
      {"65 results", [](P& p) { p.calls[1].outputs.resize(65, 4); }},
      {"call 1 silu: input 0 is f32[4, 4], its region wants", [](P& p) { p.calls[1].inputs[0] = 1; }},
      {"call 1 silu: output 0 is f32[2], its region", [](P& p) { p.values[4] = f32({2}); }},
      {"input 0 is left out, but region @r0 reads it", [](P& p) { p.calls[1].inputs[0] = kAbsent; }},
      {"region @r0 silu: 9 inputs, but only 4", [](P& p) { p.regions[0].n_inputs = 9; }},
      {"region @r0 silu: call 0 sigmoid: has body @r0", [](P& p) { p.regions[0].calls[0].region = 0; }},
      {"region @r0 silu: call 0 sigmoid: input 0: value %3 is read before",
       [](P& p) { p.regions[0].calls[0].inputs = {3}; }},
      {"region @r0 silu: output 0: value %8", [](P& p) { p.regions[0].outputs = {8}; }},
      {"region @r0 silu: value %4 is listed", [](P& p) { p.regions[0].values.push_back(f32({})); }},
      {"region @r0 silu: value %1: f32[-4]", [](P& p) { p.regions[0].values[1] = f32({-4}); }},
      {"region @r0 overwrites input 0, but the call lists no",
       [](P& p) { p.regions[0].calls[1].updates = {{0, 0}}; }},
      {"region @r0 overwrites input 0, but %3 is passed twice",
       [](P& p) {
         p.regions[0].calls[1].updates = {{0, 0}}, p.regions[0].values[1] = p.values[3];
         p.calls[1].updates = {{0, 0}}, p.calls[1].inputs[1] = 3;
       }},
      {"call 2 count (count): update 0: output 0 over input 1, but the call has",
       [](P& p) { p.calls[2].updates[0].input = 1; }},
      {"output 0 over input 0, which is left out", [](P& p) { p.calls[2].inputs[0] = kAbsent; }},
      {"%5 is f32[4], but is written over %2, which is f32[3]", [](P& p) { p.values[5] = f32({4}); }},
      {"wanted the same type and layout", [](P& p) { p.values[5].layout = 3; }},
      {"%1 is a weight and may not be overwritten",
       [](P& p) { p.values[5] = f32({4, 4}), p.calls[2].inputs[0] = 1; }},
      {"%2 is updated twice in one call",
       [](P& p) {
         p.values.push_back(f32({3}));
         p.calls[2].outputs.push_back(7), p.calls[2].updates = {{0, 0}, {1, 0}};
       }},
      {"%5 is written over two values",
       [](P& p) {
         p.values.push_back(f32({3})), p.inputs.push_back({"z", 7});
         p.calls[2].inputs.push_back(7), p.calls[2].updates = {{0, 0}, {0, 1}};
       }},
      {"call 3 late: input 0: value %2 is read after %5 was written over it",
       [](P& p) { p.calls.push_back({.op = "late", .inputs = {2}}); }},
      {"state 'counter' ends as %2, but the buffer of %2 holds %5", [](P& p) { p.states[0].after = 2; }},
      {"state 'counter' ends as %-1", [](P& p) { p.states[0].after = kAbsent; }},
      {"state 'counter': value %44", [](P& p) { p.states[0].before = 44; }},
      {"state 'counter': its type f32[rows] must have no symbols",
       [](P& p) { p.values[2] = p.values[5] = f32({rows()}); }},
      {"weight 'w': blob 9; the program has 3", [](P& p) { p.weights[0].blob = 9; }},
      {"weight 'w' has no blob", [](P& p) { p.weights[0].blob = -1; }},
      {"weight 'w': blob 1 has 12 bytes, f32[4, 4] wants 64", [](P& p) { p.weights[0].blob = 1; }},
      {"state 'counter': blob -7", [](P& p) { p.states[0].blob = -7; }},
      {"blob 1 has a size, but no bytes", [](P& p) { p.blobs[1].data = nullptr; }},
  };
  return all;
}

TEST(Program, VerifyRefusesEachBrokenRule) {
  for (const auto& m : mutations()) {
    auto p = small_program();
    m.apply(p);
    const Status s = verify(p);
    ASSERT_FALSE(s.ok()) << m.words;
    EXPECT_NE(s.message().find(m.words), std::string::npos)
        << "wanted: " << m.words << "\ngot:    " << s.message();
  }
}

TEST(Program, MessagesCutLongNames) {
  const std::string more(100'000, 'n');
  size_t refused = 0;
  for (const auto& m : mutations()) {
    auto p = small_program();
    for (auto* ports : {&p.inputs, &p.outputs})
      for (auto& port : *ports) port.name += more;
    for (auto& w : p.weights) w.name += more;
    for (auto& s : p.states) s.name += more;
    for (auto& r : p.regions) r.pattern += more;
    for (auto& c : p.calls) {
      c.op += more, c.where += more;
      for (auto& a : c.attrs) a.name += more;
      for (auto& d : c.defaults) d += more;
    }
    m.apply(p);
    const Status s = verify(p);
    refused += !s.ok();
    EXPECT_LT(s.message().size(), 1000) << m.words;
  }
  EXPECT_GT(refused, mutations().size() - 3);  // some rules are about names alone
}

TEST(Program, VerifyAcceptsChainsOfUpdates) {
  auto p = small_program();
  p.values.push_back(f32({3}));
  p.calls.push_back({.op = "count", .inputs = {5}, .outputs = {7}, .updates = {{0, 0}}});
  EXPECT_NE(verify(p).message().find("state 'counter' ends as %5"), std::string::npos);
  p.states[0].after = 7;
  EXPECT_EQ(verify(p).text(), "ok");
  // A region's body that writes over its input, and the call that says so.
  p.regions[0].calls[1].updates = {{0, 0}}, p.calls[1].updates = {{0, 0}};
  EXPECT_EQ(verify(p).text(), "ok");
}

// ---- files ----

TEST(ProgramFile, MappedBlobsOutliveTheFile) {
  const Folder folder;
  const auto path = folder.file("p.npubin");
  ASSERT_EQ(write_file(small_program(), path).text(), "ok");
  EXPECT_EQ(contents(path), serialize(small_program()));
  EXPECT_EQ(folder.count(), 1u);
  auto p = read_file(path);
  ASSERT_TRUE(p.ok()) << p.status().text();
  fs::remove(path);
  const Blob last = p->blobs[2];
  *p = CompiledProgram{};
  EXPECT_EQ(std::memcmp(last.data, "12345", 5), 0);
}

TEST(ProgramFile, SaysOnceWhatIsWrong) {
  const Folder folder;
  const auto said_of = [](const std::string& path) { return read_file(path).status().text(); };
  const auto missing = folder.file("missing"), empty = folder.file("empty"), other = folder.file("other");
  EXPECT_EQ(
      said_of(missing),
      fmt::format("unavailable: can't read '{}': there is no such file; check its name and folder", missing));
  std::ofstream(empty).flush();
  EXPECT_EQ(said_of(empty),
            fmt::format("corrupt: {}: header: 0 bytes are too few for a Weft program", empty));
  std::ofstream(other) << std::string(500, 'x');
  EXPECT_EQ(said_of(other),
            fmt::format("corrupt: {}: header: not a Weft program (the first 8 bytes differ)", other));
  EXPECT_NE(said_of(folder.path.string()).find("it is a folder; name a file"), std::string::npos);
  const auto pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(said_of(pipe).find("not a regular file"), std::string::npos);
}

TEST(ProgramFile, FailedWriteLeavesTheOldFileAndNoOther) {
  const Folder folder;
  const auto p = small_program();
  EXPECT_NE(write_file(p, folder.file("none/p"))
                .text()
                .find("there is no folder '" + folder.file("none") + "'; make it"),
            std::string::npos);
  fs::create_directory(folder.path / "taken");  // a folder can't be replaced by a file
  EXPECT_NE(write_file(p, folder.file("taken")).text().find("it is a folder"), std::string::npos);
  EXPECT_EQ(folder.count(), 1u);

  const auto path = folder.file("p");
  std::ofstream(path) << "old";
  auto bad = p;
  bad.outputs[0].value = 99;
  EXPECT_NE(write_file(bad, path).message().find("program not written: output 'y'"), std::string::npos);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{100, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &tight);
  const auto full = write_file(p, path);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(full.text().find("can't write"), std::string::npos) << full.text();
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(folder.count(), 2u);
  EXPECT_EQ(write_file(p, path).text(), "ok");
  EXPECT_TRUE(read_file(path).ok());
}

}  // namespace
}  // namespace weft::program::program_test

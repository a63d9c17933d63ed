#include "program/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <bit>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <random>

#include "base/dims.h"
#include "plan_generated.h"
#include "program/container.h"
#include "program/plan.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace weft::program {
namespace {

namespace fs = std::filesystem;

TensorSpec f32(Shape shape) { return {{DType::f32, std::move(shape)}, 0, {}}; }

// The test's own symbol name: expressions are interned for the process, and other tests have a `batch` too.
Dim rows() { return Dim::symbol("rows", 1, 64); }

/// y = silu(x @ w), a state that counts in place, and one attribute of each kind.
CompiledProgram small_program() {
  const TensorSpec wide = f32({rows() * 16, 4});
  CompiledProgram p;
  p.name = "small";
  p.symbols = {{"rows", 1, 64}};
  p.values = {wide, f32({4, 4}), f32({3}), wide, wide, f32({3}), {{DType::u8, {5}}, 7, {"tile(4)", "pack"}}};
  KernelCall matmul{.op = "matmul", .inputs = {0, 1}, .outputs = {3}, .where = "hidden1.matmul"};
  matmul.attrs = {{"a", int64_t{-3}},
                  {"b", -0.0},
                  {"c", Shape{2, rows() * 16, max(rows(), 7)}},
                  {"d", std::string("me\0an", 5)},
                  {"e", Bytes{std::string("\0\xff", 2)}}};
  matmul.defaults = {"a", "d"};
  KernelCall silu{.op = "silu", .version = 3, .inputs = {3, kAbsent}, .outputs = {4}, .region = 0};
  KernelCall count{.op = "count", .inputs = {2}, .outputs = {5}, .updates = {{0, 0}}, .where = "count"};
  p.calls = {matmul, silu, count};
  Region r{.pattern = "silu", .n_inputs = 2, .values = {wide, f32({4}), wide, wide}, .outputs = {3}};
  r.calls = {{.op = "sigmoid", .inputs = {0}, .outputs = {2}},
             {.op = "mul", .inputs = {0, 2}, .outputs = {3}}};
  p.regions = {r};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 4}};
  p.states = {{"counter", 2, 5, 1}};
  p.weights = {{"w", 1, 0}, {"packed", 6, 2}};
  const std::vector<float> numbers(16, 1.5f);
  p.blobs = {Blob::copy_of(numbers.data(), 64), Blob::copy_of(numbers.data(), 12), Blob::copy_of("12345", 5)};
  p.origin = {{"compiler", "weft test"}, {"model", ""}};
  return p;
}

Result<CompiledProgram> load(const std::string& file) {
  return deserialize(Blob::copy_of(file.data(), file.size()));
}

/// What loading says; "ok" if it is content.
std::string said(const std::string& file) {
  const auto p = load(file);
  return p.ok() ? "ok" : p.status().text();
}

std::string assemble(const std::string& plan, const CompiledProgram& p) {
  std::string out = container_head(plan, write_origin(p), p.blobs);
  for (size_t i = 0; i < p.blobs.size(); ++i) {
    out.append(reinterpret_cast<const char*>(p.blobs[i].data), p.blobs[i].size);
    out.append(blob_padding(p.blobs, i), '\0');
  }
  return out;
}

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

uint64_t u64_at(const std::string& s, size_t at) {
  uint64_t v = 0;
  std::memcpy(&v, s.data() + at, sizeof v);
  return v;
}
void put_hash(std::string& file, size_t at, size_t from, size_t n) {
  const XXH128_hash_t h = XXH3_128bits(file.data() + from, n);
  std::memcpy(file.data() + at, &h.low64, 8);
  std::memcpy(file.data() + at + 8, &h.high64, 8);
}
void reseal_header(std::string& file) { put_hash(file, 48, 0, 48); }

/// The section that each byte of the file belongs to; padding belongs to what follows it.
std::vector<std::string> owners(const std::string& file) {
  std::vector<std::string> names = {"plan", "origin", "blob table", "blobs"}, out(64, "header");
  out.resize(64 + names.size() * 48, "section table");
  for (size_t i = 0; i < 3; ++i)
    out.resize(u64_at(file, 64 + i * 48 + 16) + u64_at(file, 64 + i * 48 + 24), names[i]);
  const size_t table = u64_at(file, 64 + 2 * 48 + 16), blobs = u64_at(file, 64 + 3 * 48 + 16);
  out.resize(blobs, "blobs");
  for (size_t i = 0; i < 3; ++i)
    out.resize(blobs + u64_at(file, table + i * 32) + u64_at(file, table + i * 32 + 8),
               fmt::format("blob {}", i));
  return out;
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
weight %6: u8[5] layout=7 -> tile(4) -> pack  "packed" blob 2, 5 bytes
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

// ---- integrity ----

TEST(Program, EveryFlippedBitIsRefusedByItsSection) {
  std::string file = serialize(small_program());
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

TEST(Program, EveryTruncationIsRefused) {
  const std::string file = serialize(small_program());
  for (size_t n = 0; n < file.size(); ++n)
    ASSERT_NE(said(file.substr(0, n)).find("header:"), std::string::npos)
        << n << ": " << said(file.substr(0, n));
  EXPECT_NE(said(file + '\0').find("header:"), std::string::npos);
}

TEST(Program, PaddingMustBeZero) {
  std::string file = serialize(small_program());
  const size_t blobs = u64_at(file, 64 + 3 * 48 + 16);
  file[blobs + 64 + 12] = 1;  // after blob 1
  EXPECT_NE(said(file).find("blob 2: the padding before it is not zero"), std::string::npos) << said(file);
}

TEST(Program, UnknownFeatureAndVersionAreRefusedByNumber) {
  std::string file = serialize(small_program());
  file[16] = 0x20;
  reseal_header(file);
  EXPECT_NE(said(file).find("header: needs feature 5,"), std::string::npos) << said(file);
  EXPECT_EQ(load(file).status().code(), Code::version);
  file[16] = 0, file[8] = 2;
  reseal_header(file);
  EXPECT_NE(said(file).find("header: format version 2.0"), std::string::npos) << said(file);
  file[8] = 1, file[10] = 9;  // a newer minor version only adds what may be ignored
  reseal_header(file);
  EXPECT_EQ(said(file), "ok");
}

TEST(Program, OriginIsBoundsChecked) {
  const auto p = small_program();
  for (const std::string& origin : {std::string("abc"), std::string(8, '\xff'), std::string(8, '\0')}) {
    const auto words = said(container_head(write_plan(CompiledProgram{}), origin, {}));
    EXPECT_NE(words.find("origin:"), std::string::npos) << words;
  }
}

// ---- a crafted plan ----

struct Mutator {
  explicit Mutator(uint32_t seed) : random(seed) {}
  std::mt19937 random;
  uint32_t below(size_t n) { return static_cast<uint32_t>(random() % n); }
  void mutate(std::string& s, size_t from, size_t to) {
    for (uint32_t k = below(2) ? 1 : 1 + below(4); k-- > 0;) {
      const size_t at = from + below(to - from);
      const uint32_t extreme[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, below(size_t{1} << 32)};
      const uint32_t word = extreme[below(6)];
      if (below(3) == 0)
        std::memcpy(s.data() + at / 4 * 4, &word, std::min<size_t>(4, s.size() - at / 4 * 4));
      else
        s[at] = static_cast<char>(below(2) ? s[at] ^ (1 << below(8)) : static_cast<int>(below(256)));
    }
  }
};

TEST(Program, MutatedPlansAreRefusedOrSound) {
  const auto p = small_program();
  const std::string plan = write_plan(p);
  int accepted = 0, by_verify = 0;
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    std::string bad = plan;
    Mutator(seed).mutate(bad, 0, bad.size());
    const auto loaded = load(assemble(bad, p));
    if (!loaded.ok()) {
      ASSERT_NE(loaded.status().message().find("plan: "), std::string::npos) << loaded.status().text();
      by_verify += loaded.status().message().find("FlatBuffer") == std::string::npos;
      continue;
    }
    ++accepted;
    ASSERT_EQ(verify(loaded.value()).text(), "ok") << "seed " << seed;
    ASSERT_FALSE(print(loaded.value()).empty());
    ASSERT_EQ(said(serialize(loaded.value())), "ok") << "seed " << seed;
  }
  RecordProperty("accepted", accepted);
  std::printf("mutated plans: %d accepted, %d refused by the FlatBuffers verifier, %d by ours\n", accepted,
              5000 - accepted - by_verify, by_verify);
  EXPECT_GT(by_verify, 200);  // or the mutations don't reach our checks
}

// Well-formed files with wrong numbers: what the FlatBuffers verifier can't see.
TEST(Program, MutatedNumbersAreRefusedOrSound) {
  int accepted = 0;
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    auto p = small_program();
    std::vector<ValueId*> ids = {&p.inputs[0].value, &p.outputs[0].value, &p.states[0].before,
                                 &p.states[0].after, &p.states[0].blob,   &p.weights[0].value,
                                 &p.weights[0].blob, &p.weights[1].value, &p.regions[0].outputs[0]};
    const auto add = [&](KernelCall& c) {
      for (auto& id : c.inputs) ids.push_back(&id);
      for (auto& id : c.outputs) ids.push_back(&id);
      ids.push_back(&c.region);
    };
    Mutator m(seed);
    if (m.below(3) == 0) p.calls[m.below(3)].updates.push_back({m.below(3), m.below(3)});
    if (m.below(3) == 0) p.regions[0].calls[m.below(2)].updates.push_back({m.below(2), m.below(2)});
    if (m.below(4) == 0) p.regions[0].n_inputs = m.below(2) ? m.below(6) : ~0u;
    if (m.below(4) == 0) p.calls[m.below(3)].inputs.push_back(static_cast<ValueId>(m.below(8)));
    for (auto& c : p.calls) add(c);
    for (auto& c : p.regions[0].calls) add(c);
    for (uint32_t k = m.below(3); k-- > 0;) {
      const ValueId extremes[] = {-2, kAbsent, std::numeric_limits<ValueId>::max(),
                                  std::numeric_limits<ValueId>::min()};
      *ids[m.below(ids.size())] = m.below(4) ? static_cast<ValueId>(m.below(9)) : extremes[m.below(4)];
    }
    const auto loaded = load(serialize(p));
    ASSERT_EQ(loaded.ok(), verify(p).ok()) << "seed " << seed << ": " << loaded.status().text();
    accepted += loaded.ok();
    ASSERT_FALSE(print(p).empty());
  }
  std::printf("mutated numbers: %d of 5000 accepted\n", accepted);
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 3000);
}

TEST(Program, MutatedTablesAreRefusedOrSound) {
  const std::string good = serialize(small_program());
  const size_t blob_table = u64_at(good, 64 + 2 * 48 + 16);
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    std::string file = good;
    Mutator m(seed);
    if (m.below(3) == 0) {
      m.mutate(file, blob_table, blob_table + 96);
      put_hash(file, 64 + 2 * 48 + 32, blob_table, 96);
    } else {
      m.mutate(file, 10, 64 + 4 * 48);
    }
    if (m.below(2)) file[10 + m.below(4)] = 0;
    put_hash(file, 32, 64, 4 * 48);
    reseal_header(file);
    const auto loaded = load(file);
    ASSERT_TRUE(!loaded.ok() || verify(loaded.value()).ok()) << "seed " << seed;
  }
}

TEST(Program, SharedPartsCannotUnfoldWithoutBound) {
  flatbuffers::FlatBufferBuilder b;
  const auto name = b.CreateString(std::string(100000, 'n'));
  const auto port = fb::CreatePort(b, name, 0);
  const auto ports = b.CreateVector(std::vector<flatbuffers::Offset<fb::Port>>(10000, port));
  fb::PlanBuilder plan(b);
  plan.add_inputs(ports);
  fb::FinishPlanBuffer(b, plan.Finish());
  const std::string bytes(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
  EXPECT_NE(said(container_head(bytes, "", {})).find("plan: it unfolds to far more"), std::string::npos);
}

TEST(Program, UnknownAttributeKindIsRefused) {
  flatbuffers::FlatBufferBuilder b;
  const auto attr = fb::CreateAttr(b, b.CreateString("axis"), static_cast<fb::AttrKind>(77));
  const auto attrs = b.CreateVector(std::vector{attr});
  const auto call = fb::CreateCall(b, b.CreateString("op"), 1, attrs);
  const auto calls = b.CreateVector(std::vector{call});
  fb::PlanBuilder plan(b);
  plan.add_calls(calls);
  fb::FinishPlanBuffer(b, plan.Finish());
  const std::string bytes(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
  EXPECT_NE(said(container_head(bytes, "", {})).find("attribute axis is of kind 77"), std::string::npos);
}

TEST(Program, DimensionTextIsMeasuredBeforeItIsParsed) {
  const std::vector<Symbol> symbols = {{"rows", 1, 64}, {"huge", 0, int64_t{1} << 61}};
  std::string power = "(rows+huge+1)", deep(40, '('), sums = "rows+1";
  for (int i = 0; i < 60; ++i) power += "*(rows+huge+1)";
  std::string squares = "(rows+1)";
  for (int i = 0; i < 100; ++i) squares += "*(rows+1)";
  for (const std::string bad :
       {"", "-", "rows*", "cols", "rows//0", "rows//-1", "rows//rows", "huge*2", "huge*huge",
        "9223372036854775807", "-9223372036854775808", "99999999999999999999", "4611686018427387904+rows",
        "rows rows", "max(rows", "1,2", power.c_str(), squares.c_str(), deep.c_str()})
    EXPECT_FALSE(read_dim(bad, symbols).ok()) << bad;
  for (const std::string good :
       {"0", "-3", "rows*16", "max(7,rows)", "(rows+3)//4", "rows+rows*rows+1", "rows*(rows//2)"}) {
    auto d = read_dim(good, symbols);
    ASSERT_TRUE(d.ok()) << d.status().text();
    EXPECT_TRUE(*read_dim(d->text(), symbols) == *d) << good << " became " << d->text();
  }
  for (const std::string bad : {"f32", "f33[1]", "f32[1", "f32[1, ]", "f32[,]", "[1]", "f32[1,2]", "f32[1]]"})
    EXPECT_FALSE(read_type(bad, symbols).ok()) << bad;
  EXPECT_EQ(text(*read_type("bf16[]", symbols)), "bf16[]");
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
  EXPECT_EQ(said_of(missing),
            fmt::format("input/output: can't open '{}': No such file or directory", missing));
  std::ofstream(empty).flush();
  EXPECT_EQ(said_of(empty),
            fmt::format("corrupt: {}: header: 0 bytes are too few for a Weft program", empty));
  std::ofstream(other) << std::string(500, 'x');
  EXPECT_EQ(said_of(other),
            fmt::format("corrupt: {}: header: not a Weft program (the first 8 bytes differ)", other));
  EXPECT_NE(said_of(folder.path.string()).find("not a regular file"), std::string::npos);
  const auto pipe = folder.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_NE(said_of(pipe).find("not a regular file"), std::string::npos);
}

TEST(ProgramFile, FailedWriteLeavesTheOldFileAndNoOther) {
  const Folder folder;
  const auto p = small_program();
  EXPECT_NE(write_file(p, folder.file("none/p")).text().find("input/output: can't create"),
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
}  // namespace weft::program

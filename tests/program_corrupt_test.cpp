#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "base/dims.h"
#include "plan_generated.h"
#include "program/container.h"
#include "program/plan.h"
#include "small_program.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

// Files that are damaged or made by hand: each is refused in words, or is a program that holds what it must.
namespace weft::program::program_corrupt_test {
namespace {

std::string assemble(const std::string& plan, const CompiledProgram& p) {
  std::string out = container_head(plan, write_origin(p), p.blobs);
  for (size_t i = 0; i < p.blobs.size(); ++i) {
    out.append(reinterpret_cast<const char*>(p.blobs[i].data), p.blobs[i].size);
    out.append(blob_padding(p.blobs, i), '\0');
  }
  return out;
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

}  // namespace
}  // namespace weft::program::program_corrupt_test

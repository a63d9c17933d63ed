#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "base/dims.h"
#include "plan_generated.h"
#include "program/plan.h"
#include "program_bytes.h"

// Files that are damaged or made by hand: each is refused in words, or is a program that holds what it must.
namespace weft::program::program_corrupt_test {
namespace {

std::string assemble(const std::string& plan, const CompiledProgram& p, const std::string& tests = {}) {
  std::string out =
      container_head({{"plan", plan}, {"origin", write_origin(p)}, {"test vectors", tests}}, p.blobs);
  for (size_t i = 0; i < p.blobs.size(); ++i) {
    out.append(reinterpret_cast<const char*>(p.blobs[i].data), p.blobs[i].size);
    out.append(blob_padding(p.blobs, i), '\0');
  }
  return out;
}

// ---- integrity ----

TEST(Program, EveryFlippedBitIsRefusedByItsSection) {
  for (const std::string& file :
       {serialize(small_program()), serialize(tested_program()), serialize(coded_program()), compiled_file()})
    flip_every_bit(file, said);
}

TEST(Program, EveryTruncationIsRefused) {
  for (const std::string& file :
       {serialize(small_program()), serialize(tested_program()), serialize(coded_program()), compiled_file()})
    cut_everywhere(file, said);
}

/// The file with one section more, before the blob table.
std::string with_section(const std::string& file, const std::string& name, const std::string& bytes) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& s : sections(file)) all.emplace_back(s.name, file.substr(s.at, s.size));
  all.insert(all.end() - 2, {name, bytes});
  std::string out = file.substr(0, 64);
  const size_t end = 64 + all.size() * 48;
  out.resize(end);
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [title, body] = all[i];
    out.resize((out.size() + 63) / 64 * 64);
    const uint64_t place[] = {out.size(), body.size()};
    out += body;
    title.copy(out.data() + 64 + i * 48, 16);
    std::memcpy(out.data() + 64 + i * 48 + 16, place, sizeof place);
    if (title != "blobs") put_hash(out, 64 + i * 48 + 32, place[0], place[1]);
  }
  out[12] = static_cast<char>(all.size());
  const uint64_t whole = out.size();
  std::memcpy(out.data() + 24, &whole, 8);
  put_hash(out, 32, 64, end - 64);
  reseal_header(out);
  return out;
}

TEST(Program, UnknownSectionsAreSkippedWithAReason) {
  const std::string file = serialize(tested_program());
  const std::string more = with_section(file, "device abc", "compiled for one device");
  auto p = load(more);
  ASSERT_TRUE(p.ok()) << p.status().text();
  ASSERT_EQ(p->skipped.size(), 1u);
  EXPECT_EQ(p->skipped[0].name, "device abc");
  EXPECT_EQ(p->skipped[0].size, 23u);
  EXPECT_EQ(p->skipped[0].why, "this Weft does not know it");
  EXPECT_NE(print(*p).find("skipped section \"device abc\", 23 bytes: this Weft does not know it"),
            std::string::npos);
  EXPECT_EQ(serialize(*p), file) << "all else is as before";
  std::string bad = more;
  bad[section(more, "device abc").at] ^= 1;
  EXPECT_NE(said(bad).find("device abc: its hash differs"), std::string::npos) << said(bad);
}

// ---- tests in the file ----

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

TEST(Program, TestsMustFitThePorts) {
  const auto says = [](const std::function<void(TestVector&)>& change) {
    auto p = tested_program();
    change(p.tests[0]);
    return said(serialize(p));
  };
  EXPECT_EQ(says([](TestVector&) {}), "ok");
  const std::pair<std::function<void(TestVector&)>, const char*> all[] = {
      {[](auto& t) { t.inputs.clear(); }, "test 0: 0 inputs and 2 results; the program has 1 and 2"},
      {[](auto& t) { t.inputs[0].name = "z"; }, "'z' where 'x' was wanted"},
      {[](auto& t) { t.inputs[0].type.dtype = DType::i32; }, "x is f32[rows*16, 4], got i32[32, 4]"},
      {[](auto& t) { t.inputs[0].type.shape[0] = 33; }, "got f32[33, 4]"},
      {[](auto& t) { t.inputs[0].type.shape[0] = 0; }, "x is f32[rows*16, 4], got f32[0, 4]"},
      {[](auto& t) { t.inputs[0].type.shape[0] = 65 * 16; }, "got f32[1040, 4]"},
      {[](auto& t) { t.inputs[0].bytes.size -= 1; }, "x is f32[32, 4], got 511 bytes"},
      {[](auto& t) { t.wanted[0].type.shape[0] = 16; }, "y is f32[32, 4], got f32[16, 4]"},
      {[](auto& t) { t.wanted[1].bytes.size = 8; }, "counter is f32[3], got 8 bytes"},
      {[](auto& t) { t.allowed[0].size -= 4; }, "y has 128 elements, got 508 bytes of allowed errors"},
  };
  for (const auto& [change, words] : all) {
    EXPECT_NE(says(change).find("test vectors: "), std::string::npos) << says(change);
    EXPECT_NE(says(change).find(words), std::string::npos) << says(change);
  }
}

TEST(Program, MutatedTestsAreRefusedOrSound) {
  const auto p = tested_program();
  const std::string tests = write_tests(p);
  int accepted = 0;
  for (uint32_t seed = 0; seed < 5000; ++seed) {
    std::string bad = tests;
    Mutator m(seed);
    m.mutate(bad, 0, m.below(2) ? 80 : bad.size());
    if (m.below(4) == 0) bad.resize(m.below(bad.size()));
    const auto loaded = load(assemble(write_plan(p), p, bad));
    accepted += loaded.ok();
    if (loaded.ok())
      ASSERT_EQ(said(serialize(loaded.value())), "ok") << "seed " << seed;
    else
      ASSERT_NE(loaded.status().message().find("test vectors: "), std::string::npos)
          << loaded.status().text();
  }
  EXPECT_GT(accepted, 500) << "numbers may be any";
  EXPECT_LT(accepted, 4000);
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
    const auto words =
        said(container_head({{"plan", write_plan(CompiledProgram{})}, {"origin", origin}}, {}));
    EXPECT_NE(words.find("origin:"), std::string::npos) << words;
  }
}

// ---- a crafted plan ----

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
  EXPECT_NE(said(container_head({{"plan", bytes}, {"origin", ""}}, {})).find("plan: it unfolds to far more"),
            std::string::npos);
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
  EXPECT_NE(said(container_head({{"plan", bytes}, {"origin", ""}}, {})).find("attribute axis is of kind 77"),
            std::string::npos);
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

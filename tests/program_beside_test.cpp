#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "program/plan.h"
#include "program_bytes.h"
#include "run_command.h"

// A program whose weights are in a file beside it.
namespace weft::program::program_beside_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "small.weights";

std::string program_bytes(const CompiledProgram& p) { return write_head(p, write_beside(p, kName)); }
std::string weights_bytes(const CompiledProgram& p) {
  std::string out = container_head({{"weights", write_weights(p)}}, p.blobs, Holds::weights);
  for (size_t i = 0; i < p.blobs.size(); ++i) {
    out.append(reinterpret_cast<const char*>(p.blobs[i].data), p.blobs[i].size);
    out.append(blob_padding(p.blobs, i), '\0');
  }
  return out;
}

Result<CompiledProgram> both(const std::string& program, const std::string& weights) {
  return deserialize(Blob::copy_of(program.data(), program.size()),
                     [&](const std::string& name) -> Result<Blob> {
                       if (name != kName) return invalid("'{}' was asked for", name);
                       return Blob::copy_of(weights.data(), weights.size());
                     });
}
std::string said(const std::string& program, const std::string& weights) {
  const auto p = both(program, weights);
  return p.ok() ? "ok" : p.status().text();
}
/// What is said of the program beside the weights of another one, which `change` makes of it.
std::string with_weights_of(const std::function<void(CompiledProgram&)>& change) {
  auto other = tested_program();
  change(other);
  return said(program_bytes(tested_program()), weights_bytes(other));
}

TEST(ProgramBeside, IsTheSameProgram) {
  const auto p = tested_program();
  const auto read = both(program_bytes(p), weights_bytes(p));
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read.value().weights_file, kName);
  EXPECT_EQ(serialize(read.value()), serialize(p)) << "written again, its weights are inside";
  EXPECT_NE(print(read.value()).find("weights in small.weights\n"), std::string::npos);
  EXPECT_EQ(program_bytes(p), program_bytes(tested_program())) << "the same bytes";
  EXPECT_EQ(weights_bytes(p), weights_bytes(tested_program()));
}

TEST(ProgramBeside, WhatDiffersIsListedAtOnce) {
  EXPECT_EQ(with_weights_of([](auto&) {}), "ok");
  const std::string wrong = "corrupt: weights in small.weights: they are not those of the program: ";
  EXPECT_EQ(with_weights_of([](auto& p) { p.weights[0].name = "z"; }),
            wrong + "missing: weight 'w'; not of the program: weight 'z'");
  EXPECT_EQ(with_weights_of([](auto& p) {
              p.weights.pop_back();
              p.blobs.pop_back();
            }),
            wrong + "missing: weight 'packed'");
  EXPECT_EQ(with_weights_of([](auto& p) { p.blobs.push_back(p.blobs[0]); }),
            wrong + "not of the program: blob 3");
  EXPECT_EQ(with_weights_of([](auto& p) { p.values[1].type.shape = {2, 8}; }),
            wrong + "of another type: weight 'w' is f32[4, 4], there f32[2, 8]");
  EXPECT_EQ(with_weights_of([](auto& p) { p.values[1].type.dtype = DType::i32; }),
            wrong + "of another type: weight 'w' is f32[4, 4], there i32[4, 4]");
  const std::vector<float> others(16, 2.5f);
  EXPECT_EQ(with_weights_of([&](auto& p) {
              p.blobs[0] = Blob::copy_of(others.data(), 64);
              p.blobs[1] = Blob::copy_of(others.data(), 12);
            }),
            wrong + "changed since it was compiled: weight 'w', state 'counter'");
  EXPECT_EQ(with_weights_of([&](auto& p) { std::swap(p.weights[0].blob, p.states[0].blob); }),
            wrong + "changed since it was compiled: weight 'w', state 'counter'");
}

TEST(ProgramBeside, MessagesCutLongNames) {
  const std::string more(100'000, 'n');
  EXPECT_LT(with_weights_of([&](auto& p) { p.weights[0].name += more; }).size(), 500);
  std::string section;
  append_text(section, more);
  const fs::path path = fs::temp_directory_path() / fmt::format("weft_beside_names_{}", ::getpid());
  std::ofstream(path, std::ios::binary) << write_head(tested_program(), section);
  const Status s = read_file(path.string()).status();
  EXPECT_EQ(s.code(), Code::unavailable) << s.message().substr(0, 200);
  EXPECT_LT(s.message().size(), 1000);
  fs::remove(path);
}

TEST(ProgramBeside, OrderInTheFileDoesNotMatter) {
  EXPECT_EQ(with_weights_of([](auto& p) {
              std::swap(p.blobs[0], p.blobs[2]);
              std::swap(p.weights[0].blob, p.weights[1].blob);
            }),
            "ok");
}

TEST(ProgramBeside, EveryFlippedBitAndTruncationIsRefusedByItsSection) {
  const std::string program = program_bytes(tested_program()), weights = weights_bytes(tested_program());
  const Said of_program = [&](const std::string& file) { return said(file, weights); };
  const Said of_weights = [&](const std::string& file) { return said(program, file); };
  flip_every_bit(program, of_program), cut_everywhere(program, of_program);
  flip_every_bit(weights, of_weights), cut_everywhere(weights, of_weights);
  std::string bad = weights;
  bad.back() ^= 1;
  EXPECT_EQ(said(program, bad), "corrupt: weights in small.weights: blob 2: its hash differs");
}

/// Hashes are right, and what they are of is not.
TEST(ProgramBeside, SectionsThatLieAreRefused) {
  const auto p = tested_program();
  const std::string weights = weights_bytes(p);
  const auto beside = [&](const std::string& section) { return said(write_head(p, section), weights); };
  const auto named = [](const std::string& name) {
    std::string out;
    append_text(out, name);
    return out;
  };
  for (const std::string name : {"", ".", "..", "../small.weights", "/etc/passwd", "a\nb"})
    EXPECT_EQ(beside(named(name)), "corrupt: beside: it names no file of a folder");
  EXPECT_EQ(beside("abc"), "corrupt: beside: it ends inside a length");
  EXPECT_EQ(beside(named(kName) + "xyz"), "corrupt: beside: 3 bytes are not a multiple of 24");
  EXPECT_NE(beside(named(kName)).find("not of the program: "), std::string::npos);

  const auto names = [&](const std::string& section) {
    std::string file = container_head({{"weights", section}}, {}, Holds::weights);
    return said(program_bytes(p), file);
  };
  EXPECT_EQ(names("abc"), "corrupt: weights in small.weights: weights: it ends inside a length");
  EXPECT_NE(names(named("a") + named("f32[1]")).find("weights: 1 names for 0 blobs"), std::string::npos);
  EXPECT_NE(names(named("a") + named("f32[1]") + named("a") + named("f32[1]")).find("two have one name"),
            std::string::npos);
  EXPECT_NE(names("").find("missing: weight 'w', state 'counter', weight 'packed'"), std::string::npos);
  std::string both_features = program_bytes(p);
  both_features[16] = 3;
  reseal_header(both_features);
  EXPECT_EQ(said(both_features, weights), "corrupt: header: features 0 and 1 exclude each other");
}

TEST(ProgramBeside, AFileIsNotTakenForTheOther) {
  const auto p = tested_program();
  EXPECT_EQ(
      program::said(weights_bytes(p)),
      "invalid argument: header: it holds the weights of a program; load the program, which lies beside it");
  EXPECT_EQ(said(program_bytes(p), program_bytes(p)),
            "corrupt: weights in small.weights: header: it is a program, not a file of weights");
  EXPECT_EQ(program::said(program_bytes(p)),
            "unavailable: weights in small.weights: they lie in a file, so the program must be loaded from "
            "one, too");
}

TEST(ProgramBeside, FilesLieInOneFolder) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("weft_beside_{}", ::getpid());
  fs::create_directories(folder);
  const std::string path = (folder / "small.weft").string(), weights = (folder / kName).string();
  const auto p = tested_program();
  ASSERT_TRUE(write_file(p, path, kName).ok());
  EXPECT_EQ(serialize(value_or_raise(read_file(path))), serialize(p));
  EXPECT_LT(fs::file_size(path), serialize(p).size());
  EXPECT_NE(write_file(p, path, "small.weft").message().find("can't be the file of the weights, too"),
            std::string::npos);
  fs::rename(weights, folder / "elsewhere");
  EXPECT_EQ(read_file(path).status().text(), "unavailable: " + path +
                                                 ": weights in small.weights: can't read '" + weights +
                                                 "': there is no such file; check its name and folder");
  fs::remove_all(folder);
}

TEST(ProgramBeside, TheCommandLineWritesAndRunsIt) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("weft_beside_cli_{}", ::getpid());
  fs::create_directories(folder);
  const std::string model = WEFT_SOURCE_DIR "/conformance/data/import/mlp/",
                    out = (folder / "mlp.weft").string();
  const std::string compile =
      "compile " + model + "model_ir.json --weights " + model + "model.safetensors --out ";
  const auto made = weft_program(compile + out + " --weights-beside");
  EXPECT_EQ(made.status, 0) << made.text;
  EXPECT_NE(made.text.find("weights in mlp.weights"), std::string::npos) << made.text;
  const auto verified = weft_program("verify " + out + " --backend native");
  EXPECT_EQ(verified.status, 0) << verified.text;
  EXPECT_NE(weft_program("inspect " + out).text.find("weights in mlp.weights\n"), std::string::npos);
  EXPECT_EQ(weft_program(compile + "/dev/null --weights-beside").status, 2);
  fs::remove(folder / "mlp.weights");
  EXPECT_NE(weft_program("run " + out).text.find("weights in mlp.weights: can't read"), std::string::npos);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace weft::program::program_beside_test

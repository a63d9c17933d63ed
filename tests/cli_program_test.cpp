#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/compile.h"
#include "program/program.h"

// A program file on the command line: compiled, with the passes in sight; verified.
namespace weft {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Outcome {
  int status = 0;
  std::string text;  // standard output and error
};

Outcome weft_program(const std::string& arguments) {
  Outcome out;
  FILE* pipe = ::popen((std::string(WEFT_BINARY_DIR "/weft ") + arguments + " 2>&1").c_str(), "r");
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, pipe)) out.text.append(part, n);
  const int ended = ::pclose(pipe);
  out.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 1000 + WTERMSIG(ended);
  return out;
}

std::vector<json> objects(const std::string& lines) {
  std::vector<json> all;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
  return all;
}

/// A small checkpoint that all cases compile.
class CliProgram : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    fs::create_directories(folder());
    std::ofstream text(folder() / "text.txt");
    for (int i = 0; i < 300; ++i) text << "line " << i << " of a text that is long enough\n";
    text.close();
    const auto r = weft_program("train --backend reference --data " + at("text.txt") + " --out " + at("run") +
                                " --batch 2 --layers 1 --heads 2 --width 16 --context 16 --steps 2");
    ASSERT_EQ(r.status, 0) << r.text;
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }
  static fs::path folder() {
    return fs::temp_directory_path() / fmt::format("weft_cli_program_{}", ::getpid());
  }
  static std::string at(const std::string& name) { return (folder() / name).string(); }
  static std::string compile(const std::string& more) {
    const auto r = weft_program("compile --model " + at("run") + " --out " + at("p.weft") + " " + more);
    EXPECT_EQ(r.status, 0) << r.text;
    return r.text;
  }
};

TEST_F(CliProgram, PassesAreListedAndShown) {
  const auto listed = weft_program("compile --print-passes");
  std::string names;
  for (const auto& pass : compiler::pipeline()) names += pass.name + std::string("\n");
  EXPECT_EQ(listed.text, names);
  EXPECT_EQ(json::parse(weft_program("compile --print-passes --json").text)["passes"].size(),
            compiler::pipeline().size());

  const std::string first = compiler::pipeline().front().name, last = compiler::pipeline().back().name;
  EXPECT_EQ(compile("--dump-after " + first).find("fusion "), std::string::npos);
  const auto dump = compile("--dump-after " + last);
  EXPECT_NE(dump.find("input tokens %"), std::string::npos) << dump;
  EXPECT_NE(dump.find("\ngroup "), std::string::npos) << dump;
  EXPECT_EQ(weft_program("compile --dump-after nonsense").status, 2);

  for (const char* part : {"forward", "step"}) {
    const auto lines = objects(compile(std::string("--verify-passes --json --part ") + part));
    ASSERT_EQ(lines.size(), compiler::pipeline().size() + 2) << "before, each pass, and the file";
    for (size_t i = 0; i + 1 < lines.size(); ++i) {
      EXPECT_EQ(lines[i]["right"], true) << lines[i];
      EXPECT_EQ(lines[i]["after"], i ? compiler::pipeline()[i - 1].name : "");
    }
    EXPECT_LT(lines[lines.size() - 2]["calls"], lines[0]["calls"]);
  }
}

TEST_F(CliProgram, AFileCarriesTestsAndVerifyRunsThem) {
  EXPECT_NE(compile("--part step --tests 2").find(", 2 tests"), std::string::npos);
  for (const char* backend : {"reference", "native"}) {
    const auto r = weft_program("verify " + at("p.weft") + " --json --backend " + backend);
    EXPECT_EQ(r.status, 0) << r.text;
    const auto lines = objects(r.text);
    ASSERT_EQ(lines.size(), 2u) << r.text;
    EXPECT_EQ(lines[0]["backend"], backend);
    EXPECT_EQ(lines[0]["sizes"]["batch"], 1);
    EXPECT_EQ(lines[1]["sizes"]["batch"], 2);
  }
  EXPECT_NE(weft_program("verify " + at("p.weft")).text.find("test 1, batch = 2 on "), std::string::npos);

  auto p = value_or_raise(compiler::read_file(at("p.weft")));
  const auto& test = p.tests[0];
  EXPECT_EQ(test.inputs[0].name, "tokens");
  const auto* ids = reinterpret_cast<const int32_t*>(test.inputs[0].bytes.data);
  EXPECT_GT(*std::max_element(ids, ids + 16), 3) << "tokens that differ";

  auto& table = p.blobs[static_cast<size_t>(p.states[0].blob)];  // a weight of another value
  std::string bytes(reinterpret_cast<const char*>(table.data), table.size);
  bytes[table.size / 8 * 4 + 3] ^= 0x40;
  table = program::Blob::copy_of(bytes.data(), bytes.size());
  ASSERT_TRUE(program::write_file(p, at("wrong.weft")).ok());
  const auto wrong = weft_program("verify " + at("wrong.weft"));
  EXPECT_EQ(wrong.status, 1) << wrong.text;
  EXPECT_NE(wrong.text.find("test 0, batch = 1 on native: wrong: "), std::string::npos) << wrong.text;

  compile("--tests 0");
  const auto none = weft_program("verify " + at("p.weft"));
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.text.find("carries no tests; `weft compile --tests N` writes them"), std::string::npos);
}

}  // namespace
}  // namespace weft

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/element.h"
#include "compiler/compile.h"
#include "formats/safetensors.h"
#include "run_command.h"

// What `weft trace` prints is compiled, runs, and says what `weft run` says.
namespace weft::traced_source_test {
namespace {

namespace fs = std::filesystem;

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

class TracedSource : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { fs::create_directories(folder()); }
  static void TearDownTestSuite() { fs::remove_all(folder()); }
  static fs::path folder() {
    return fs::temp_directory_path() / fmt::format("weft_traced_source_{}", ::getpid());
  }
  static std::string at(const std::string& name) { return (folder() / name).string(); }

  static void weft(const std::string& arguments) {
    const auto r = weft_program(arguments);
    ASSERT_EQ(r.status, 0) << arguments << "\n" << r.text;
  }
  static void import(const std::string& model) {
    const std::string from = WEFT_SOURCE_DIR "/conformance/data/import/" + model;
    weft("compile " + from + "/model_ir.json --weights " + from + "/model.safetensors --tests 1 --out " +
         at(model));
  }

  /// The inputs of the file's own test, as a file.
  static void write_inputs(const program::CompiledProgram& p, const std::string& to) {
    std::vector<formats::TensorEntry> entries;
    for (const auto& t : p.tests.at(0).inputs) {
      formats::TensorEntry entry{t.name, t.type.dtype, {}, {t.bytes.data, t.bytes.size}};
      for (const Dim d : t.type.shape) entry.shape.push_back(d.value());
      entries.push_back(std::move(entry));
    }
    ASSERT_TRUE(formats::write_safetensors(to, entries, {}).ok());
  }

  /// Prints `program`, builds and runs that, and compares with the file's test and with `weft run`: both are
  /// within the bound of the test, and so of one another within twice that. Returns the text.
  static std::string check(const std::string& name) {
    const std::string program = at(name), text = at(name + ".cpp"), inputs = at(name + ".in");
    weft("trace " + program + " --out " + text);
    const auto built = run_command("c++ -O0 -Wall -Wextra -Werror " + text +
                                   " @" WEFT_BINARY_DIR "/generated/link_weft.txt -o " + at(name + ".bin"));
    EXPECT_EQ(built.status, 0) << built.text << slurp(text);
    const auto p = value_or_raise(compiler::read_file(program));
    write_inputs(p, inputs);
    const auto ran = run_command(at(name + ".bin") + " " + program + " " + inputs + " " + at(name + ".out") +
                                 (p.states.empty() ? "" : " " + at(name + ".states")));
    EXPECT_EQ(ran.status, 0) << ran.text;
    weft("run " + program + " --backend native --inputs " + inputs + " --out " + at(name + ".run"));
    compare(p, value_or_raise(formats::read_safetensors(at(name + ".out"))),
            value_or_raise(formats::read_safetensors(at(name + ".run"))));
    if (!p.states.empty()) compare_states(p, value_or_raise(formats::read_safetensors(at(name + ".states"))));
    return slurp(text);
  }

  /// Element by element within `times` the bound of what the test wants as result `k`.
  static void expect_near(const program::TestVector& test, size_t k, const formats::TensorEntry* mine,
                          int times, const formats::TensorEntry* other = nullptr) {
    const auto& wanted = test.wanted[k];
    ASSERT_TRUE(mine) << wanted.name;
    ASSERT_EQ(mine->bytes.size(), wanted.bytes.size) << wanted.name;
    ASSERT_EQ(mine->dtype, wanted.type.dtype);
    const std::byte* right = other ? other->bytes.data() : wanted.bytes.data;
    const auto* allowed = reinterpret_cast<const float*>(test.allowed[k].data);
    for (size_t i = 0; i < wanted.bytes.size / byte_size(wanted.type.dtype); ++i) {
      const double bound = test.allowed[k].size ? double{allowed[i]} : 0;
      const auto x = load_element<double>(wanted.type.dtype, mine->bytes.data(), i);
      ASSERT_LE(std::abs(x - load_element<double>(wanted.type.dtype, right, i)), times * bound)
          << wanted.name << " element " << i;
    }
  }
  static void compare(const program::CompiledProgram& p, const formats::Safetensors& printed,
                      const formats::Safetensors& run) {
    ASSERT_EQ(printed.tensors.size(), p.outputs.size());
    for (size_t k = 0; k < p.outputs.size(); ++k) {
      const auto *mine = printed.find(p.outputs[k].name), *other = run.find(p.outputs[k].name);
      ASSERT_TRUE(other) << p.outputs[k].name;
      expect_near(p.tests[0], k, mine, 1);
      expect_near(p.tests[0], k, mine, 2, other);
    }
  }
  static void compare_states(const program::CompiledProgram& p, const formats::Safetensors& printed) {
    for (size_t k = 0; k < p.states.size(); ++k)
      expect_near(p.tests[0], p.outputs.size() + k, printed.find(p.states[k].name), 1);
  }
};

// Layers that have a name with a number are a loop.
TEST_F(TracedSource, AModelOfWeftsReadsAsItWasWritten) {
  std::ofstream(at("text")) << std::string(40, 'a') + "line of a text" + std::string(9000, 'b');
  weft("train --backend native --data " + at("text") + " --out " + at("run") +
       " --batch 2 --layers 3 --heads 2 --width 16 --context 16 --steps 2");
  weft("compile --model " + at("run") + " --out " + at("forward"));
  const auto text = check("forward");
  EXPECT_EQ(count(text, "for (int i = 0; i < 3; ++i)"), 1u) << text;
  EXPECT_NE(text.find("const Tensor query = linear(norm1, layer(\"attention.query.weight\"),"), text.npos)
      << text;
  EXPECT_EQ(count(text, " attention("), 1u);
  EXPECT_LT(count(text, "\n"), 70u) << "short";
  EXPECT_NE(text.find("const Dim batch = tokens.dim(0);"), text.npos);

  weft("compile --model " + at("run") + " --part step --out " + at("step"));
  const auto step = check("step");
  EXPECT_GE(count(step, "for (int i = "), 4u) << step;
  EXPECT_EQ(count(step, "for (int i = 2; i > 0; --i)"), 1u) << "gradients, last layer first";
  EXPECT_NE(step.find("layer_norm_grad(all_linear[i],"), step.npos) << "of what the layer has kept";
  EXPECT_LT(count(step, " adamw_step("), 40u) << "of 52 parameters, those of a layer are in a loop";
}

// Nodes of PyTorch's have flat names: layers are found by what they say.
TEST_F(TracedSource, ImportedModelsAreLoopsToo) {
  import("bert");
  const auto bert = check("bert");
  EXPECT_NE(bert.find("const std::string at = \"model.encoder.layer.\" + std::to_string(i) + \".\";"),
            bert.npos)
      << bert;
  import("llama");
  const auto llama = check("llama");
  EXPECT_EQ(count(llama, "for (int i = 0; i < 2; ++i)"), 1u) << llama;
  EXPECT_EQ(count(llama, "self_attn.q_proj.weight"), 1u) << llama;
}

// Symbols, nodes with many operands, and layers that are not alike.
TEST_F(TracedSource, OtherModels) {
  for (const std::string model : {"symbols", "resnet"}) {
    import(model);
    const auto text = check(model);
    EXPECT_GT(count(text, "\n"), 20u) << text;
  }
  const auto r = run_command(at("symbols.bin") + " " + at("not_there") + " in out");
  EXPECT_EQ(r.status, 1) << "the printed program ends with its error";
  EXPECT_NE(r.text.find("not_there"), std::string::npos) << r.text;
}

TEST_F(TracedSource, WhatItRefuses) {
  const auto r = weft_program("trace " + at("no_such_file"));
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.text.find("no_such_file"), std::string::npos);
  fs::copy_file(WEFT_SOURCE_DIR "/tests/golden/version_1_1.weft", at("golden"));
  EXPECT_NE(weft_program("trace " + at("golden") + " --out " + at("golden")).text.find("would overwrite"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::traced_source_test

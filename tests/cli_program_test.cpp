#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "browser.h"
#include "compiler/compile.h"
#include "conformance/noise.h"
#include "program/program.h"
#include "run_command.h"
#include "test_backends.h"
#include "weft/checkpoint.h"
#include "weft/jit.h"
#include "weft/safetensors.h"
#include "weft/trace.h"

// A program file on the command line: compiled, with the passes in sight; verified.
namespace weft::cli_program_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<json> objects(const std::string& lines) {
  std::vector<json> all;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
  return all;
}

/// A small checkpoint that all cases compile.
class CliProgram : public ::testing::Test {
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

// Op by op and as a file, whatever text a model has learned; each within what rounding allows.
TEST_F(CliProgram, ATrainedModelSaysTheSameCompiled) {
  compile("--tests 0");
  set_default_backend("reference");
  std::vector<int32_t> ids(48);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i * 7 % 19);
  const int64_t shape[] = {3, 16};
  const Tensor tokens = Tensor::of(std::span<const int32_t>(ids), shape, DType::i32);
  io::write_safetensors(at("in.safetensors"), {{"tokens", tokens}});
  const auto reference = nn::load_trained(at("run"));
  const Traced traced =
      trace([&](const std::vector<Tensor>& in) { return std::vector{(*reference.model)(in[0])}; },
            {{"tokens", tokens.type()}});
  std::vector<conformance::Array> numbers = {conformance::from_tensor(tokens)};
  for (const Tensor& w : traced.weights) numbers.push_back(conformance::from_tensor(w));
  const auto bound = value_or_raise(conformance::noise_bound(*traced.graph, numbers));
  const NoGrad off;
  for (const auto& backend : testing::backends({"reference", "native", "openmp", "opencl"})) {
    SCOPED_TRACE(backend);
    const auto run = weft_program("run " + at("p.weft") + " --inputs " + at("in.safetensors") + " --out " +
                                  at("out.safetensors") + " --backend " + backend);
    ASSERT_EQ(run.status, 0) << run.text;
    const auto expect_within = [&](const Tensor& logits) {
      const auto verdict = conformance::judge(conformance::from_tensor(logits), bound[0]);
      EXPECT_TRUE(verdict.ok) << verdict.reason;
    };
    expect_within(io::Safetensors::map(at("out.safetensors")).read("logits"));
    if (backend == "opencl") continue;  // compiling each op takes seconds
    set_default_backend(backend);
    expect_within((*nn::load_trained(at("run")).model)(tokens.to(backend)));
  }
  set_default_backend("native");
}

// Its weights lie in a file that is mapped.
TEST_F(CliProgram, AnImportedModelCarriesTestsToo) {
  const std::string model = WEFT_SOURCE_DIR "/conformance/data/import/mlp/";
  const auto made = weft_program("compile " + model + "model_ir.json --weights " + model +
                                 "model.safetensors --verify-passes --out " + at("mlp.weft"));
  EXPECT_EQ(made.status, 0) << made.text;
  EXPECT_NE(made.text.find(", 1 tests"), std::string::npos) << made.text;
  const auto verified = weft_program("verify " + at("mlp.weft") + " --backend native");
  EXPECT_EQ(verified.status, 0) << verified.text;
}

TEST_F(CliProgram, ATraceNamesWhereTheTimeGoes) {
  compile("--tests 0");
  const auto r = weft_program("run " + at("p.weft") +
                              " --backend native --size batch=16 --repeat 20 --ledger --json --trace " +
                              at("trace.json"));
  ASSERT_EQ(r.status, 0) << r.text;
  std::set<std::string> ran, traced;
  const auto said = json::parse(r.text);
  for (const auto& row : said["ledger"]) ran.insert(row["kernel"].get<std::string>());
  const auto trace = json::parse(slurp(at("trace.json")));
  const double wall = trace["otherData"]["microseconds"];
  const auto& events = trace["traceEvents"];
  size_t runs = 0;
  double named = 0;  // by events that hold no others
  for (size_t i = 0; i < events.size(); ++i) {
    const auto& e = events[i];
    const double start = e["ts"], end = start + e["dur"].get<double>();
    EXPECT_EQ(e["ph"], "X");
    EXPECT_GE(e["dur"].get<double>(), 0);
    EXPECT_LE(end, wall + 1);
    if (i + 1 == events.size() || events[i + 1]["ts"].get<double>() >= end) named += end - start;
    runs += e["cat"] == "run";
    if (e["cat"] != "kernel") continue;
    traced.insert(e["name"].get<std::string>());
    EXPECT_TRUE(e["args"]["node"].is_string());
  }
  EXPECT_EQ(runs, 20u);
  for (const auto& kernel : traced) EXPECT_TRUE(ran.contains(kernel)) << kernel;  // others ran at load
  EXPECT_GT(traced.size(), 4u);
  EXPECT_GE(named / wall, 0.95) << r.text;
  EXPECT_NEAR(trace["otherData"]["share_of_time_with_a_name"], named / wall, 1e-3);
  std::printf("%.1f %% of the time of 20 runs has a name\n", 100 * named / wall);
}

// x + x, with these numbers as x.
void write_sum(const std::string& program, const std::string& inputs, std::vector<float> x) {
  const auto n = static_cast<int64_t>(x.size());
  weft::compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[0]}; },
                {{"x", {DType::f32, {n}}}})
      .save(program);
  io::write_safetensors(inputs, {{"x", Tensor::of(std::span<const float>(x), std::vector{n}, DType::f32)}});
}

TEST_F(CliProgram, RunPrintsNumbersThatAreNotFinite) {
  write_sum(at("sum.weft"), at("x"), {NAN, INFINITY, -INFINITY, 1.5f});
  const std::string run = "run " + at("sum.weft") + " --backend reference --inputs " + at("x");
  const auto text = weft_program(run);
  EXPECT_NE(text.text.find(" [nan,inf,-inf,3.0]\n"), std::string::npos) << text.text;
  const auto printed = json::parse(weft_program(run + " --json").text);
  EXPECT_EQ(printed["outputs"][0]["first"], (json{"nan", "inf", "-inf", 3.0})) << printed;
}

TEST_F(CliProgram, InputsHaveTheNamesOfTheProgram) {
  write_sum(at("sum.weft"), at("x"), {1, 2});
  const Tensor x = Tensor::scalar(1.f);
  const auto refused = [&](const std::map<std::string, Tensor>& given) {
    io::write_safetensors(at("other"), given);
    const auto r = weft_program("run " + at("sum.weft") + " --inputs " + at("other"));
    EXPECT_EQ(r.status, 1) << r.text;
    const std::string where = "--inputs " + at("other") + ": ";
    const size_t from = r.text.find(where);
    return from == r.text.npos ? r.text : r.text.substr(from + where.size());
  };
  const std::string inputs = "; the inputs of " + value_or_raise(program::read_file(at("sum.weft"))).name;
  EXPECT_EQ(refused({{"x", x}, {"y", x}, {"z", x}}),
            "it has 'y', 'z', which the program has no input for" + inputs + " are 'x'\n");
  EXPECT_EQ(refused({{"X", x}}),
            "it has 'X', which the program has no input for; it has no 'x'" + inputs + " are 'x'\n");
  EXPECT_EQ(refused({}), "it has no 'x'" + inputs + " are 'x'\n");
}

TEST_F(CliProgram, AMissingFolderIsNotMade) {
  compile("--tests 0");
  const std::string program = at("p.weft"), out = at("no_folder/file");
  for (const std::string& command :
       {"compile --model " + at("run") + " --out ", "run " + program + " --out ",
        "run " + program + " --trace ", "inspect " + program + " --html ", "trace " + program + " --out ",
        "tokenize --tokenizer bytes --data " + at("text.txt") + " --out ",
        std::string("completion bash --out "), std::string("check reference --only nothing --keep "),
        std::string("check reference --only nothing --matrix ")}) {
    const auto r = weft_program(command + out);
    EXPECT_EQ(r.status, 1) << command;
    EXPECT_EQ(r.text, "weft: input/output: can't write '" + out + "': there is no folder '" +
                          at("no_folder") + "'; make it, or name another one\n")
        << command;
    EXPECT_FALSE(fs::exists(at("no_folder"))) << command;
  }
}

// Programs, inputs, weights and graphs: one wording.
TEST_F(CliProgram, AMissingFileIsToldInOneWay) {
  compile("--tests 0");
  const std::string missing = at("no such"), program = at("p.weft");
  for (const std::string& command :
       {"run '" + missing + "'", "verify '" + missing + "'", "inspect '" + missing + "'",
        "trace '" + missing + "'", "bench '" + missing + "'", "embed '" + missing + "' text",
        "run " + program + " --inputs '" + missing + "'", "compile '" + missing + "' --out " + at("made"),
        std::string("compile ") + WEFT_SOURCE_DIR "/conformance/data/import/mlp/model_ir.json --weights '" +
            missing + "' --out " + at("made")}) {
    const auto r = weft_program(command);
    EXPECT_EQ(r.status, 1) << command;
    EXPECT_EQ(r.text, "weft: unavailable: can't read '" + missing +
                          "': there is no such file; check its name and folder\n")
        << command;
  }
  const auto folder = weft_program("run " + at("run"));
  EXPECT_EQ(folder.text, "weft: unavailable: can't read '" + at("run") + "': it is a folder; name a file\n");
}

TEST_F(CliProgram, BenchMeasures) {
  compile("--tests 0");
  const auto r = weft_program("bench " + at("p.weft") + " --size batch=4 --seconds 0.1 --warm-up 1 --json");
  ASSERT_EQ(r.status, 0) << r.text;
  const auto all = json::parse(r.text.substr(r.text.find('{')));
  EXPECT_EQ(all["program"], "language_model_forward");
  EXPECT_EQ(all["sizes"]["batch"], 4);
  EXPECT_GE(all["runs"], 20);
  EXPECT_GE(all["warm_up_runs"], 2);
  const auto& s = all["seconds"];
  EXPECT_GT(s["least"], 0);
  EXPECT_TRUE(s["least"] <= s["p10"] && s["p10"] <= s["median"] && s["median"] <= s["p90"] &&
              s["p90"] <= s["p99"])
      << s;
  EXPECT_EQ(weft_program("bench " + at("p.weft") + " --seconds nan").status, 2);
}

// ---- the page of the graph

TEST_F(CliProgram, APageShowsTheGraph) {
  compile("--tests 0 --part step");
  const auto r = weft_program("inspect " + at("p.weft") + " --backend native --html " + at("page.html"));
  ASSERT_EQ(r.status, 0) << r.text;
  const std::string page = slurp(at("page.html"));
  EXPECT_EQ(page.find("http"), page.npos) << "it needs nothing else";
  EXPECT_EQ(page.find("@DATA@"), page.npos);
  const size_t from = page.find("id=\"data\">") + 10;
  const auto data = json::parse(page.substr(from, page.find("</script>", from) - from));
  const auto p = value_or_raise(compiler::read_file(at("p.weft")));
  ASSERT_EQ(data["calls"].size(), p.calls.size());
  size_t with_kernels = 0, fused = 0;
  for (const auto& c : data["calls"]) with_kernels += !c["kernels"].empty(), fused += c["pattern"] != "";
  EXPECT_GT(with_kernels, p.calls.size() / 2);
  EXPECT_GT(fused, 3u);
  EXPECT_EQ(data["sizes"], "batch = 1 (1 to 65536)");
  EXPECT_GT(data["plan"]["slots"].size(), 10u);
  EXPECT_GE(data["plan"]["arena"], data["plan"]["peak"]);

  if (!has_browser()) GTEST_SKIP() << "chromium is not installed: the page is not drawn";
  const std::string dom = in_browser(at("page.html"));
  const size_t nodes = p.calls.size() + p.inputs.size() + p.outputs.size() + p.states.size();
  EXPECT_NE(dom.find("data-drawn=\"" + std::to_string(nodes) + "\""), dom.npos) << dom.substr(0, 2000);
  EXPECT_EQ(count(dom, "<g class=\"node"), nodes);
  EXPECT_EQ(count(dom, "<rect class=\"slot"), data["plan"]["slots"].size());
  EXPECT_GT(count(dom, "<path class=\"edge"), nodes / 2);
  EXPECT_NE(dom.find("call 0: "), dom.npos) << "the first call is chosen";
}

}  // namespace
}  // namespace weft::cli_program_test

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/safetensors.h"
#include "run_command.h"
#include "weft/trainer.h"

// train, generate and compare as users run them: the built program, its exit status and output, and the
// shared checkpoint.
namespace weft::cli_models_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A folder with a text and a small checkpoint.
class CliModels : public ::testing::Test {
 protected:
  void SetUp() override {
    set_default_backend("reference");
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream text(folder_ / "text.txt");
    for (int i = 0; i < 900; ++i) text << "line " << i << " of a text that is long enough\n";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string train(const std::string& more) const {
    return "train --data " + at("text.txt") + " --out " + at("run") +
           " --batch 4 --layers 1 --heads 2 --width 16 --context 16 " + more;
  }
  void make_checkpoint() const {
    const auto r = weft_program(train("--steps 5"));
    ASSERT_EQ(r.status, 0) << r.text;
  }
  fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_cli_models_{}", ::getpid());
};

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_F(CliModels, TrainGenerateCompare) {
  const auto trained = weft_program(train("--steps 40 --json"));
  ASSERT_EQ(trained.status, 0) << trained.text;
  std::istringstream lines(trained.text);
  json last;
  for (std::string line; std::getline(lines, line);) last = json::parse(line);  // each line is an object
  EXPECT_EQ(last["step"], 40);
  EXPECT_TRUE(last["validation_loss"].is_number());
  EXPECT_TRUE(last["perplexity"].is_number());
  // The curves are in a self-contained page, and in a log.
  const std::string page = slurp(at("run/training.html")), log = slurp(at("run/log.jsonl"));
  EXPECT_EQ(page.find("http"), std::string::npos);  // it needs nothing else
  EXPECT_NE(page.find("<path d=\"M"), std::string::npos);
  std::vector<int> logged;
  std::istringstream log_lines(log);
  for (std::string line; std::getline(log_lines, line);)
    if (const json l = json::parse(line); l.contains("loss")) logged.push_back(l["step"]);
  EXPECT_EQ(logged.front(), 1);
  EXPECT_EQ(logged.back(), 40) << "the last step is in the log, however soon it came";
  EXPECT_EQ(std::ranges::count(logged, 40), 1);
  const auto made = weft_program("generate --model " + at("run") + " --prompt line --length 30 --json");
  ASSERT_EQ(made.status, 0) << made.text;
  const size_t answer = made.text.find('{');
  EXPECT_NE(made.text.find("weft: note: text 1 outgrew the model's context"), std::string::npos) << made.text;
  ASSERT_NE(answer, std::string::npos) << made.text;
  EXPECT_EQ(json::parse(made.text.substr(answer))["text"].get<std::string>().size(), 30u);
  const auto again = [&] {
    return json::parse(
        weft_program("generate --model " + at("run") + " --length 12 --seed 5 --json").text)["text"];
  };
  EXPECT_EQ(again(), again());
  const auto compared = weft_program("compare --model " + at("run") + " --data " + at("text.txt"));
  EXPECT_EQ(compared.status, 0) << compared.text;
  EXPECT_NE(compared.text.find("reference.matmul.shared"), std::string::npos) << compared.text;
  EXPECT_EQ(compared.text.find("null"), std::string::npos);
}

TEST_F(CliModels, TheLastStepIsPrintedOnce) {
  const auto one = weft_program(train("--steps 1"));
  ASSERT_EQ(one.status, 0) << one.text;
  const size_t at = one.text.find("step      1   mean loss");
  ASSERT_NE(at, std::string::npos) << one.text;
  EXPECT_EQ(one.text.find("step      1   mean loss", at + 1), std::string::npos) << one.text;
}

// The tokens of a file are exactly the file's: no added line ends, nothing lost.
TEST_F(CliModels, TokenizingKeepsEveryByte) {
  const std::string bytes = "\xef\xbb\xbfone\r\ntwo\rthree, no end";
  spill(at("odd.txt"), bytes);
  for (const char* tokenizer : {"bytes", "characters", "bpe --vocabulary 300"}) {
    const auto made = weft_program(fmt::format("tokenize --data {} --tokenizer {} --out {}", at("odd.txt"),
                                               tokenizer, at("odd.tokens")));
    ASSERT_EQ(made.status, 0) << made.text;
    const auto tokens = io::Tokens::map(at("odd.tokens"));
    if (tokens.tokenizer().unknown()) continue;  // characters that are there once are not learnt
    EXPECT_EQ(tokens.tokenizer().decode(tokens.ids()), bytes) << tokenizer;
  }
}

TEST_F(CliModels, TokenFilesAndStandardInput) {
  const std::string sizes = " --batch 4 --layers 1 --heads 2 --width 16 --context 16 --steps 3 --json --out ";
  const auto made = weft_program("tokenize --data " + at("text.txt") + " --vocabulary 300 --json --out " +
                                 at("bpe.tokens"));
  ASSERT_EQ(made.status, 0) << made.text;
  EXPECT_EQ(json::parse(made.text)["vocabulary"], 300);
  const auto twice =
      weft_program("train --data " + at("bpe.tokens") + sizes + at("bpe") + " --tokenizer bytes");
  EXPECT_NE(twice.text.find("it has its tokenizer: leave --tokenizer out"), std::string::npos) << twice.text;
  const auto trained = weft_program("train --data " + at("bpe.tokens") + sizes + at("bpe"));
  ASSERT_EQ(trained.status, 0) << trained.text;
  const auto figures = [&](const std::string& arguments) {
    const auto r = weft_program("evaluate --json --model " + arguments);
    return r.status == 0 ? json::parse(r.text) : json(r.text);
  };
  // The same text, mapped as tokens or read anew.
  const json mapped = figures(at("bpe") + " --data " + at("bpe.tokens")),
             read = figures(at("bpe") + " --data " + at("text.txt"));
  EXPECT_EQ(mapped, read);
  EXPECT_NEAR(mapped["perplexity"].get<double>(), std::exp(mapped["loss"].get<double>()), 1e-9);
  EXPECT_GT(mapped["bits_per_byte"].get<double>(), 0);
  EXPECT_EQ(mapped["tokens"].get<int64_t>() + 1, json::parse(made.text)["tokens"]);

  const auto piped = ::popen((std::string(WEFT_BINARY_DIR "/weft train --data -") + sizes + at("piped") +
                              " <" + at("text.txt") + " >" + at("log"))
                                 .c_str(),
                             "r");
  EXPECT_EQ(::pclose(piped), 0) << slurp(at("log"));
  const auto mismatched = figures(at("piped") + " --data " + at("bpe.tokens"));
  EXPECT_NE(mismatched.get<std::string>().find("was made by another tokenizer than the model's"),
            std::string::npos);
  const auto resumed = weft_program("train --resume --data " + at("bpe.tokens") + sizes + at("piped"));
  EXPECT_EQ(resumed.status, 1);
  EXPECT_NE(resumed.text.find("was made by another tokenizer"), std::string::npos) << resumed.text;
}

// A backend that computes nothing must not pass as one that agrees.
TEST_F(CliModels, CompareFindsWhatIsWrong) {
  make_checkpoint();
  const auto r = weft_program("compare --model " + at("run") + " --backend null");
  EXPECT_EQ(r.status, 1) << r.text;
  EXPECT_NE(r.text.find("disagrees in the"), std::string::npos) << r.text;
}

TEST_F(CliModels, BadInputSaysOneThing) {
  make_checkpoint();
  spill(at("empty.txt"), "");
  spill(at("short.txt"), "too short");
  spill(at("binary"), std::string(100, '\0'));
  const std::string before = slurp(at("run/model.safetensors"));
  const struct {
    std::string arguments, words;
  } all[] = {
      {"train --nonsense", "no option or subcommand '--nonsense'"},
      {train("--nonsense 3 --fresh"), "no option or subcommand '--nonsense'"},
      {"nonsense", "no option or subcommand 'nonsense'"},
      {train("--backend nonsense --fresh"), "nonsense"},
      {train("--policy perhaps --fresh"), "--policy"},
      {train("--deterministic perhaps --fresh"), "--deterministic"},
      {train("--precision half --fresh"), "--precision"},
      {train("--steps 0 --fresh"), "--steps: must be a whole number from 1 to 1099511627776, got 0"},
      {train("--steps 99999999999999999999 --fresh"), "got 99999999999999999999"},
      {train("--seed 18446744073709551616 --steps 1 --fresh"), "--seed: must be a whole number from 0 to"},
      {train("--seed -1 --steps 1 --fresh"), "got -1"},
      {"train --data " + at("text.txt") + " --out " + at("x") + " --context 40960",
       "too few for a context of 40960, which wants 81922 at least"},
      {"train --data " + at("text.txt") + " --out " + at("x") + " --layers 1000 --heads 1 --width 65536",
       "bytes of memory, there are"},
      {"train --data " + at("text.txt") + " --out " + at("x") + " --heads 3",
       "3 heads don't divide a width of 128"},
      {"train --data " + at("text.txt") + " --out " + at("x") + " --tokenizer /no/such",
       "--tokenizer /no/such: no such file, nor one of characters, bytes and bpe"},
      {"train --data " + at("text.txt") + " --out " + at("x") + " --tokenizer " + at("text.txt"), "text.txt"},
      {"evaluate --backend null --data " + at("text.txt") + " --model " + at("run"),
       "backend null computes nothing"},
      {"generate --backend null --model " + at("run"), "backend null computes nothing"},
      {"generate --hf " + at("run"), "a checkpoint of Weft's is read with --model"},
      {"generate --model ''", "must not be empty"},
      {"man --out " + at("text.txt/pages"), "can't make the folder"},
      {train("--backend null --fresh"), "backend null computes nothing"},
      {train("--rate nan --fresh"), "--rate"},
      {train("--batch 0 --fresh"), "--batch"},
      {train("--steps 3 --seconds 3 --fresh"), "excludes"},
      {train("--steps 3"), "is there already; go on with --resume"},
      {"train --data " + at("text.txt") + " --out " + at("run") + " --resume --width 24 --steps 9",
       "field 'width' is 16, --width asks for 24"},
      {"train --data " + at("text.txt") + " --out " + at("run") + " --resume --tokenizer bytes",
       "the tokenizer stays what it is; leave --tokenizer out"},
      {"train --data " + at("text.txt") + " --out " + at("x") + " --model llama --dropout 0.1",
       "--dropout is for --model gpt"},
      {"train --data /no/such --out " + at("x"), "no file or folder /no/such"},
      {"train --data " + at("empty.txt") + " --out " + at("x"), "is empty"},
      {"train --data " + at("binary") + " --out " + at("x"), "is binary"},
      {"train --data " + at("short.txt") + " --out " + at("x"),
       "the text has 9 tokens: too few for a context of 64, which wants 130 at least"},
      {"train --data " + at("text.txt") + " --out /proc/no/such --steps 1",
       "can't make the folder /proc/no/such"},
      {"train --data " + at("text.txt") + " --out " + at("x") + " --resume",
       "can't read '" + at("x/model.safetensors") + "'"},
      {"generate --model " + at("x"), "can't read"},
      {"generate --model " + at("run") + " --temperature nan", "temperature"},
      {"generate --model " + at("run") + " --backend nonsense", "nonsense"},
      {"compare --model " + at("run") + " --data /no/such", "no file or folder"},
      {"compare --model " + at("run") + " --data " + at("short.txt"), "too few for a context of 16"},
      {"compile --model " + at("run") + " --out " + at("run/model.safetensors"),
       "would overwrite the checkpoint"},
  };
  for (const auto& bad : all) {
    const auto r = weft_program(bad.arguments);
    EXPECT_TRUE(r.status > 0 && r.status < 128) << bad.arguments << ": " << r.status << "\n" << r.text;
    EXPECT_NE(r.text.find(bad.words), std::string::npos) << bad.arguments << "\n" << r.text;
    EXPECT_LE(std::count(r.text.begin(), r.text.end(), '\n'), 2) << bad.arguments << "\n" << r.text;
  }
  EXPECT_EQ(slurp(at("run/model.safetensors")), before);  // nothing lost
}

TEST_F(CliModels, AWrongCommandLineExitsWithTwoAndNamesTheHelp) {
  const std::pair<const char*, const char*> all[] = {
      {"", "weft: A subcommand is required; see weft --help\n"},
      {"train --data x", "weft: --out is required; see weft train --help\n"},
      {"run", "weft: program is required; see weft run --help\n"},
      {"ops --nonsense", "weft: there is no option or subcommand '--nonsense' here; see weft ops --help\n"},
      {"backends --threads 5000",
       "weft: --threads: Value 5000 not in range 0 to 1024; see weft backends --help\n"},
  };
  for (const auto& [arguments, text] : all) {
    const auto r = weft_program(arguments);
    EXPECT_EQ(r.status, 2) << arguments;
    EXPECT_EQ(r.text, text);
  }
  EXPECT_EQ(weft_program("run --help").status, 0);
  EXPECT_NE(weft_program("--help").text.find("Exit status: 0 success"), std::string::npos);
}

TEST_F(CliModels, ALevelOfDeterminismIsGivenOrAnError) {
  make_checkpoint();
  const auto text = [&](const std::string& level) {
    return weft_program("generate --model " + at("run") + " --length 8 --deterministic " + level);
  };
  EXPECT_EQ(text("threads").status, 0);
  const auto r = text("devices");
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.text.find("determinism level 4 is wanted, it gives 3"), std::string::npos) << r.text;
}

TEST_F(CliModels, ARunThatIsOverSaysSo) {
  make_checkpoint();
  const auto r = weft_program(train("--resume --steps 5"));
  EXPECT_EQ(r.status, 0);
  EXPECT_NE(r.text.find("is at step 5 of 5, counted from the first: nothing is left to do"),
            std::string::npos)
      << r.text;
}

TEST_F(CliModels, CompileAndRunSpeakJsonAndOverwriteNothingTheyRead) {
  make_checkpoint();
  const std::string compile = "compile --model " + at("run") + " --out " + at("p.weft");
  EXPECT_NE(weft_program(compile).text.find("language_model_forward in " + at("p.weft")), std::string::npos);
  const auto made = json::parse(weft_program(compile + " --json").text);
  EXPECT_EQ(made["name"], "language_model_forward");
  EXPECT_EQ(made["file"], at("p.weft"));
  EXPECT_EQ(made["bytes"], fs::file_size(at("p.weft")));
  EXPECT_EQ(made["inputs"], 1);
  EXPECT_EQ(made["states"], 0);
  EXPECT_GT(made["calls"], 3);
  const std::string run = "run " + at("p.weft") + " --size batch=2 --json ";
  const auto ran = json::parse(weft_program(run + "--plan --ledger --out " + at("out")).text);
  EXPECT_GT(ran["plan"].size(), 3u);
  EXPECT_TRUE(ran["plan"][0].is_string());
  EXPECT_TRUE(ran["ledger"][0]["kernel"].is_string());
  EXPECT_FALSE(json::parse(weft_program(run).text).contains("plan"));

  const auto shadowed = json::parse(weft_program(run + "--shadow=reference").text)["shadow"];
  EXPECT_EQ(shadowed["agrees"], true) << shadowed;
  EXPECT_EQ(shadowed["calls"], made["calls"]);
  const auto parted = weft_program("bisect " + at("p.weft") + " --size batch=1 --a native --b reference");
  EXPECT_EQ(parted.status, 0) << parted.text;
  EXPECT_NE(parted.text.find("the two agree"), std::string::npos) << parted.text;

  // Standard output is the file: nothing else goes there.
  const auto redirected =
      weft_program("compile --model " + at("run") + " --out /dev/stdout > " + at("q.weft"));
  EXPECT_EQ(redirected.status, 0) << redirected.text;
  EXPECT_EQ(slurp(at("q.weft")), slurp(at("p.weft")));

  const std::string before = slurp(at("p.weft"));
  fs::create_symlink("p.weft", at("link"));
  const auto over_program = weft_program(run + "--out " + at("link"));
  EXPECT_EQ(over_program.status, 1);
  EXPECT_NE(over_program.text.find("would overwrite the program " + at("p.weft")), std::string::npos)
      << over_program.text;
  const auto over_inputs =
      weft_program("run " + at("p.weft") + " --inputs " + at("out") + " --out " + at("out"));
  EXPECT_NE(over_inputs.text.find("would overwrite --inputs " + at("out")), std::string::npos)
      << over_inputs.text;
  EXPECT_EQ(slurp(at("p.weft")), before);
}

TEST_F(CliModels, ADamagedCheckpointNamesTheField) {
  make_checkpoint();
  const std::string path = at("run/model.safetensors");
  const std::string whole = slurp(path);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    auto s = whole;
    const auto where = s.find(from);
    EXPECT_NE(where, std::string::npos) << from;
    return s.replace(where, from.size(), to);  // of one length: the header's length stays true
  };
  auto flipped = whole;
  flipped[flipped.size() - 9] ^= 4;
  const struct {
    std::string bytes, words;
  } all[] = {
      {whole.substr(0, 5), "too few for a header"},
      {whole.substr(0, whole.size() / 2), "data_offsets"},
      {flipped, "field 'hash'"},
      {replaced("language_model", "language_modem"),
       "field 'kind' is \"language_modem\", wanted \"language_model\""},
      {replaced("\\\"width\\\":16", "\\\"width\\\":18"), "the model wants f32["},
      {replaced("\\\"heads\\\":2", "\\\"heads\\\":0"), "field 'heads' is 0, wanted 1 to"},
      {replaced("\\\"heads\\\":2", "\\\"headz\\\":2"), "field 'heads' is missing"},
      {replaced("\\\"gpt\\\"", "\\\"gpu\\\""), "field 'model' is \"gpu\", wanted gpt or llama"},
      {replaced("\\\"step\\\":5", "\\\"step\\\":6"), "field 'hash'"},
      {replaced("\"positions.weight\"", "\"positions.weighs\""), "tensor 'positions.weight' is missing"},
      {replaced("\"weft\":", "\"weff\":"), "not a Weft checkpoint"},
  };
  for (const auto& bad : all) {
    spill(path, bad.bytes);
    for (const std::string& command : {"generate --model " + at("run"), train("--resume --steps 9")}) {
      const auto r = weft_program(command);
      EXPECT_EQ(r.status, 1) << bad.words << "\n" << r.text;
      EXPECT_NE(r.text.find(bad.words), std::string::npos) << bad.words << "\n" << r.text;
      EXPECT_EQ(std::count(r.text.begin(), r.text.end(), '\n'), 1) << r.text;
    }
    EXPECT_EQ(slurp(path), bad.bytes);
  }
}

TEST_F(CliModels, CtrlCLeavesACheckpointToGoOnFrom) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);  // a shell ignores it for what runs in the background, and weft then too
    if (!std::freopen("/dev/null", "w", stdout)) ::_exit(1);
    ::execl(WEFT_BINARY_DIR "/weft", "weft", "train", "--data", at("text.txt").c_str(), "--out",
            at("run").c_str(), "--layers", "1", "--width", "16", "--seconds", "600", nullptr);
    ::_exit(1);
  }
  // The handler is in place soon after the first checkpoint, which is written before the first step.
  for (int i = 0; i < 1000 && !nn::has_checkpoint(at("run")); ++i) ::usleep(20'000);
  ::usleep(300'000);
  ::kill(child, SIGINT);
  int ended = 0;
  ::waitpid(child, &ended, 0);
  EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 130) << ended;
  const auto run = nn::load_checkpoint(at("run"));
  EXPECT_GT(run.info.step, 0);
  const auto more = weft_program("train --data " + at("text.txt") + " --out " + at("run") +
                                 " --resume --steps " + std::to_string(run.info.step + 2));
  EXPECT_EQ(more.status, 0) << more.text;
  EXPECT_EQ(nn::load_checkpoint(at("run")).info.step, run.info.step + 2);
}

TEST_F(CliModels, AFolderTakesOneTrainingRunAtATime) {
  make_checkpoint();
  const std::string before = slurp(nn::checkpoint_path(at("run")));
  {
    const nn::FolderLock held(at("run"));
    spill(at("run/model.safetensors.tmp.77.0"), "what a killed run has left");
    const auto r = weft_program(train("--fresh --steps 1"));
    EXPECT_EQ(r.status, 1) << r.text;
    EXPECT_NE(r.text.find("another training run writes here"), std::string::npos) << r.text;
  }
  EXPECT_EQ(slurp(nn::checkpoint_path(at("run"))), before);
  EXPECT_TRUE(fs::exists(at("run/model.safetensors.tmp.77.0")));  // it may be in the making
  EXPECT_EQ(weft_program(train("--fresh --steps 1")).status, 0);
  EXPECT_FALSE(fs::exists(at("run/model.safetensors.tmp.77.0")));
}

// Options that may change when a run continues, and unknown characters.
TEST_F(CliModels, ResumeTakesAnotherRateAndSaysWhatIsUnknown) {
  make_checkpoint();
  spill(at("other.txt"), std::string(200, 'Q') + slurp(at("text.txt")));
  const auto r = weft_program("train --resume --steps 7 --rate 0.5 --schedule constant --data " +
                              at("other.txt") + " --out " + at("run"));
  EXPECT_EQ(r.status, 0) << r.text;
  EXPECT_NE(r.text.find("200 of "), std::string::npos) << r.text;
  EXPECT_NE(r.text.find("the tokenizer does not know"), std::string::npos) << r.text;
  EXPECT_EQ(nn::load_checkpoint(at("run")).info.settings.schedule.rate, 0.5);
  const std::string before = slurp(at("run/model.safetensors"));
  EXPECT_EQ(weft_program("train --resume --steps 3 --data " + at("text.txt") + " --out " + at("run")).status,
            0);
  EXPECT_EQ(slurp(at("run/model.safetensors")), before);  // it is further already
}

// The step and the first tensor are named, whether the step ran eagerly or as a program.
TEST_F(CliModels, ALossThatIsLostNamesItsStepAndTensor) {
  for (const char* how : {"", " --compile"}) {
    const auto r =
        weft_program(train(fmt::format("--fresh --steps 200 --rate 1e30 --clip 0 --warmup 0{}", how)));
    EXPECT_EQ(r.status, 1);
    EXPECT_NE(r.text.find(" at step "), std::string::npos) << r.text;
    EXPECT_TRUE(r.text.find("the first NaN is in ") != std::string::npos ||
                r.text.find("the first infinity is in ") != std::string::npos)
        << r.text;
    const auto kept = nn::load_checkpoint(at("run"));  // that of the beginning
    EXPECT_EQ(kept.info.step, 0);
    for (const auto& t : nn::parameters(*kept.model))
      for (const double v : t.to_vector<double>()) ASSERT_TRUE(std::isfinite(v)) << t.name();
  }
}

// Into a program file that runs by itself; what is wrong is said, and no file is left.
TEST_F(CliModels, CompilesWhatPyTorchExported) {
  const std::string folder = WEFT_SOURCE_DIR "/conformance/data/import/mlp/",
                    graph = folder + "model_ir.json";
  const std::string weights = " --weights " + folder + "model.safetensors", out = " --out " + at("p.weft");
  const auto made = weft_program("compile " + graph + weights + out + " --json");
  ASSERT_EQ(made.status, 0) << made.text;
  EXPECT_EQ(json::parse(made.text)["name"], "Mlp");
  const auto answers = value_or_raise(formats::read_safetensors(folder + "answers.safetensors"));
  formats::TensorEntry x = *answers.find("in.x");
  x.name = "x";
  raise_if(formats::write_safetensors(at("in.safetensors"), {&x, 1}, {}));
  const auto ran = weft_program("run " + at("p.weft") + " --backend reference --inputs " +
                                at("in.safetensors") + " --out " + at("out.safetensors"));
  ASSERT_EQ(ran.status, 0) << ran.text;
  const auto got = value_or_raise(formats::read_safetensors(at("out.safetensors"))).tensors[0];
  const auto* want = answers.find("out." + got.name);
  ASSERT_TRUE(want != nullptr) << got.name;
  for (size_t i = 0; i < 15; ++i) {
    float y;
    double right;
    std::memcpy(&y, got.bytes.data() + i * sizeof y, sizeof y);
    std::memcpy(&right, want->bytes.data() + i * sizeof right, sizeof right);
    EXPECT_NEAR(y, right, 1e-6);
  }

  fs::remove(at("p.weft"));
  const auto without = weft_program("compile " + graph + out);
  EXPECT_EQ(without.status, 1);
  EXPECT_NE(without.text.find("weight 'first.weight' (f32[16, 8]) is in none of the files"),
            std::string::npos);
  EXPECT_EQ(weft_program("compile " + graph + weights + out + " --tie nothing").status, 2);
  EXPECT_EQ(weft_program("compile --model " + at("run") + " " + graph + out).status, 2);
  EXPECT_EQ(weft_program("compile" + out).status, 2);
  EXPECT_FALSE(fs::exists(at("p.weft")));
}

}  // namespace
}  // namespace weft::cli_models_test

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "weft/jit.h"
#include "weft/ops.h"

// Help, manual pages and completion of the command line.
namespace weft::cli_face_test {
namespace {

namespace fs = std::filesystem;
constexpr const char* kWeft = WEFT_BINARY_DIR "/weft";

struct Output {
  int status = 0;
  std::string text;  // standard output and error
};
Output shell(const std::string& command) {
  Output out;
  FILE* pipe = ::popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, pipe)) out.text.append(part, n);
  const int ended = ::pclose(pipe);
  out.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 1000 + WTERMSIG(ended);
  return out;
}
std::string weft_says(const std::string& arguments) {
  const auto out = shell(std::string(kWeft) + " " + arguments);
  EXPECT_EQ(out.status, 0) << arguments << "\n" << out.text;
  return out.text;
}
std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}
std::vector<std::string> subcommands() {
  std::vector<std::string> names;
  bool there = false;
  for (const auto& line : lines(weft_says("--help"))) {
    if (there && line.size() > 2 && line[0] == ' ' && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    there |= line == "Subcommands:";
  }
  return names;
}

class CliFace : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_ / "a folder"); }
  void TearDown() override { fs::remove_all(folder_); }
  const fs::path folder_ = fs::temp_directory_path() / ("weft_cli_face_" + std::to_string(::getpid()));
};

// An interrupted check prints where it was; and invalid options are reported before anything runs.
TEST(CliCheck, SaysWhereItWasEnded) {
  std::string ended = "before the first case";
  for (int seconds = 2; seconds <= 32 && ended.find("before the first case") != ended.npos; seconds *= 2)
    ended = shell(fmt::format("timeout --signal=INT {} {} check reference --threads 1", seconds, kWeft)).text;
  EXPECT_NE(ended.find("weft check: the process was interrupted in this case\n"
                       "  repeat: weft check reference --threads 1 --seed "),
            std::string::npos)
      << ended;
  const std::pair<const char*, const char*> senseless[] = {
      {"check native --policy allow", "what another device answers proves nothing of native"},
      {"check native --drawn 3", "--drawn says how many --liars are drawn"},
      {"check native --liars --keep x", "--liars excludes --keep"},
      {"check null", "null computes nothing"},
      {"check native --expect /tmp", "can't read '/tmp': it is a folder"},
      {"check native --keep /tmp", "can't write '/tmp'"},
      {"check native --only nothing", "no case was executed"},
      {"run x.weft --shadow reference --out /dev/stdout", "--shadow prints what it finds"},
      {"run x.weft --shadow null", "null computes nothing"},
  };
  for (const auto& [arguments, words] : senseless) {
    const auto said = shell(std::string(kWeft) + " " + arguments);
    EXPECT_NE(said.status, 0) << arguments;
    EXPECT_NE(said.text.find(words), std::string::npos) << arguments << ": " << said.text;
  }
}

std::string check_of_habits(const std::string& arguments) {
  return shell(std::string(kWeft) + " check " WEFT_BINARY_DIR "/plugins/bad_habits.so " + arguments).text;
}
void expect_said(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "no '" << words << "' in\n" << text;
}

// tests/plugins/bad_habits.cpp: sums are wrong when a difference of empty tensors has run before.
TEST(CliCheck, FindsWhatAFailureDependsOn) {
  const auto text = check_of_habits("--only candidates/sub --only ops/add");
  expect_said(text, "again     ops/add ");
  expect_said(text, ": passes alone: depends on what ran before\n  repeat: weft check ");
  // One case before it is enough, and the line that is printed repeats it.
  const auto at = text.find("depends on what ran before\n  repeat: weft check "),
             begin = text.find("--only", at);
  const auto line = text.substr(begin, text.find('\n', begin) - begin);
  EXPECT_EQ(line.find("--only", line.find("--only", line.find("--only") + 1) + 1), std::string::npos) << line;
  expect_said(line, "--only 'ops/add ");
  const auto repeated = check_of_habits(line + " --again 0");
  expect_said(repeated, "FAILED  ops/add ");
  expect_said(repeated, "bad_habits: 2 cases executed, 0 refused with a reason, 1 failed (--seed ");
}

TEST(CliCheck, TakesSeveralSelections) {
  const auto text = check_of_habits(
      "--only ops/add --only aligns_memory --skip 'ops/add f' --skip 'ops/add u' --skip ops/add\\ i --skip "
      "'ops/add b'");
  expect_said(text, "bad_habits: 9 cases executed");
  expect_said(text, "\nbad_habits:1: the checks that take long were asked of bad_habits (");
  expect_said(text, "bad_habits:1: 9 cases executed");
  expect_said(text, "left out  device 2: there is one device, number 0\n");
  const auto second = shell(std::string(kWeft) + " check " WEFT_BINARY_DIR
                                                 "/plugins/bad_habits.so:1 --only edges/sub --limit 20")
                          .text;
  expect_said(second, "edges  ");
  EXPECT_EQ(second.find("bad_habits: "), std::string::npos) << second;
  expect_said(check_of_habits("--only ops/add --only ops/nothing --skip edges/sub"),
              "weft: note: --only ops/nothing matches no case; `weft check --list` names the checks\n");
  expect_said(check_of_habits("--only ''"), "weft: --only: must not be empty; see weft check --help\n");
  const auto first = check_of_habits("--only candidates/sub --only ops/add --stop-at-first --again 0");
  expect_said(first, "0 refused with a reason, 1 failed (--seed ");
  expect_said(shell(std::string(kWeft) + " check reference:1 --only ops/add").text,
              "'reference:1': reference has 1 device, numbered from 0");
  expect_said(shell(std::string(kWeft) + " check " WEFT_BINARY_DIR "/CMakeCache.txt").text, "CMakeCache.txt");
  expect_said(
      shell(std::string(kWeft) + " check " WEFT_BINARY_DIR "/plugins/far.so:0 --only aligns_memory").text,
      "left out  aligns_memory/any size");
}

// Hanging cases, and cases that exit.
TEST(CliCheck, SaysWhereACaseHangsOrEnds) {
  const auto hangs = check_of_habits("--only ops/mul --limit 1");
  expect_said(hangs, "weft check: the process was not done after 1 s in this case\n  repeat: weft check ");
  expect_said(hangs, "--limit 1 --only 'ops/mul f64 [0, 3]");
  const auto ends = check_of_habits("--only ops/div");
  expect_said(ends, "touched memory that is not there (SIGSEGV) in this case");
}

// Measured in one process, taken in another.
TEST_F(CliFace, WhatTuneKeepsRunGoesBy) {
  const auto file = (folder_ / "small.weft").string(), cache = (folder_ / "cache").string();
  compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0])}; },
          {{"x", {DType::f32, {64, 64}}}}, {.backend = "reference", .fuse = false})
      .save(file);
  const std::string weft = "env WEFT_CACHE_DIR='" + cache + "' WEFT_MEASURED=1 " + kWeft + " ";
  const std::string plugin = " --backend good_provider --plugin " WEFT_BINARY_DIR "/plugins/good_provider.so";
  const auto dry = shell(weft + "tune '" + file + "' --seconds 0.05 --dry-run" + plugin);
  EXPECT_EQ(dry.status, 1) << "a kernel of the plug-in is wrong\n" << dry.text;
  EXPECT_NE(dry.text.find("! good_provider.exp.wrong"), std::string::npos) << dry.text;
  EXPECT_NE(dry.text.find("nothing was kept"), std::string::npos) << dry.text;
  EXPECT_FALSE(fs::exists(cache));
  const auto before = shell(weft + "run '" + file + "' --ledger" + plugin);
  EXPECT_NE(before.text.find("good_provider.exp.slow"), std::string::npos) << before.text;
  const auto tuned = shell(weft + "tune '" + file + "' --seconds 0.05 --json" + plugin);
  for (const char* part :
       {"\"kept\":1", "\"fastest\":\"", "\"judged_by\":\"the oracle's bound\"", "\"count\":1"})
    EXPECT_NE(tuned.text.find(part), std::string::npos) << part << "\n" << tuned.text;
  const auto after = shell(weft + "run '" + file + "' --ledger" + plugin);
  EXPECT_EQ(after.status, 0);
  EXPECT_EQ(after.text.find("good_provider.exp.slow  "), std::string::npos) << after.text;
  EXPECT_NE(after.text.find("times as fast as good_provider.exp.slow"), std::string::npos) << after.text;
}

// Highway's shared library measures its timer for milliseconds when a program starts.
TEST_F(CliFace, NoHighwayIsLoadedAtTheStart) {
  const auto libraries = shell(std::string("ldd ") + kWeft);
  EXPECT_NE(libraries.text.find("libstdc++"), std::string::npos) << libraries.text;
  EXPECT_EQ(libraries.text.find("libhwy"), std::string::npos) << libraries.text;
}

TEST_F(CliFace, HelpFitsAScreen) {
  const auto help = lines(weft_says("--help"));
  EXPECT_EQ(help.size(), subcommands().size() + 7);  // a line for each
  EXPECT_EQ(help[1], "Usage: weft [--help] [--version] SUBCOMMAND");
  const auto names = subcommands();
  ASSERT_GE(names.size(), 10u);
  for (const auto& name : names) {
    const auto text = weft_says(name + " --help");
    for (const auto& line : lines(text)) EXPECT_LE(line.size(), 80u) << name << ": " << line;
    EXPECT_NE(text.find("Usage: weft " + name + " [OPTIONS]"), std::string::npos) << text;
    EXPECT_NE(text.find("--policy forbid|warn|allow"), std::string::npos) << text;
  }
  EXPECT_NE(
      weft_says("inspect --help").find("Usage: weft inspect [OPTIONS] program\n\nArguments:\n  program"),
      std::string::npos);
}

// The completions of bash at the end of a command line.
TEST_F(CliFace, BashCompletes) {
  std::ofstream(folder_ / "step.weft") << "x";
  const struct {
    const char *words, *offered;  // the last word is being typed; what is offered, or some of it with ...
  } all[] = {
      {"weft tr", "trace train"},
      {"weft co", "compare compile completion"},
      {"weft --ver", "--version"},
      {"weft train --see", "--seed"},
      {"weft train --policy ''", "allow forbid warn"},
      {"weft train --policy = a", "allow"},
      {"weft train --policy = ", "allow forbid warn"},
      {"weft train --seed ''", ""},
      {"weft train --seed 3 --res", "--resume"},
      {"weft train ''", "--data ..."},
      {"weft train --out ''", "a folder"},
      {"weft train --data ''", "a folder step.weft"},
      {"weft train --data step.weft s", "step.weft"},
      {"weft train --data step.weft --ou", "--out"},
      {"weft run --json s", "step.weft"},
      {"weft run step.weft ''", "--inputs ..."},
      {"weft run --backend ref", "reference"},
      {"weft ops soft", "softmax softmax_grad softplus"},
      {"weft completion ''", "bash fish zsh"},
      {"weft man comp", "compare compile completion"},
      {"weft backends nonsense --js", "--json"},
  };
  std::ofstream script(folder_ / "script");
  script << "cd '" << folder_.string() << "'; rm script; source <(" << kWeft << " completion bash)\n"
         << "offer() { COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1)); COMP_WORDS[0]=" << kWeft
         << "; _weft; printf '%s\\n' \"${COMPREPLY[@]}\" | LC_ALL=C sort | paste -sd ' '; }\n";
  for (const auto& c : all) {
    std::string words = c.words;
    if (words.ends_with("= ")) words.pop_back();
    script << "offer " << words << "\n";
  }
  script.close();
  const auto out = shell("bash --norc --noprofile " + (folder_ / "script").string());
  const auto got = lines(out.text);
  ASSERT_EQ(got.size(), std::size(all)) << out.text;
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string want = all[i].offered;
    if (want.ends_with("..."))
      EXPECT_NE((got[i] + " ").find(want.substr(0, want.size() - 3)), std::string::npos)
          << all[i].words << ": " << got[i];
    else
      EXPECT_EQ(got[i], want) << all[i].words;
  }
}

// A person at a terminal presses the tabulator.
TEST_F(CliFace, BashCompletesWhatIsTyped) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setenv("PS1", "$ ", 1), ::setenv("TERM", "dumb", 1);
    ::execlp("bash", "bash", "--norc", "--noprofile", "-i", nullptr);
    ::_exit(127);
  }
  const std::string typed = std::string("source <(") + kWeft +
                            " completion bash); weft() { echo \"<$*>\"; }\n"
                            "weft trai\t --see\t3 --pol\twa\t\nexit\n";
  ASSERT_EQ(::write(terminal, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
  std::string seen;
  char part[4096];
  for (ssize_t n; (n = ::read(terminal, part, sizeof part)) > 0;) seen.append(part, static_cast<size_t>(n));
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_NE(seen.find("<train --seed 3 --policy warn>"), std::string::npos) << seen;
}

bool there_is(const char* program) { return shell(std::string("command -v ") + program).status == 0; }

TEST_F(CliFace, ZshAndFishTakeTheirScripts) {
  for (const auto& [program, check] : {std::pair("zsh", "zsh -n"), std::pair("fish", "fish --no-execute")}) {
    const auto path = (folder_ / program).string();
    weft_says(std::string("completion ") + program + " --out " + path);
    EXPECT_GT(fs::file_size(path), 1000u);
    if (!there_is(program)) continue;
    const auto out = shell(std::string(check) + " " + path);
    EXPECT_EQ(out.status, 0) << out.text;
    EXPECT_EQ(out.text, "");
  }
}

TEST_F(CliFace, ManualPagesAreWhole) {
  weft_says("man --out " + folder_.string());
  const auto names = subcommands();
  std::vector<std::string> pages = {"weft"};
  for (const auto& name : names) pages.push_back("weft-" + name);
  for (const auto& page : pages) {
    const auto path = (folder_ / (page + ".1")).string();
    ASSERT_TRUE(fs::exists(path)) << path;
    if (there_is("man")) {
      const auto out = shell("MANWIDTH=80 man --warnings -l " + path);
      EXPECT_EQ(out.status, 0) << out.text;
      EXPECT_EQ(out.text.find("warning"), std::string::npos) << out.text;
      for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"})
        EXPECT_NE(out.text.find(section), std::string::npos) << page << " has no " << section;
      EXPECT_NE(out.text.find("--help"), std::string::npos) << out.text;
    }
    if (there_is("mandoc")) {
      const auto out = shell("mandoc -T lint -W warning " + path);
      EXPECT_EQ(out.text, "") << page;
    }
  }
  EXPECT_EQ(weft_says("man train"),
            (std::ostringstream() << std::ifstream(folder_ / "weft-train.1").rdbuf()).str());
  EXPECT_EQ(shell(std::string(kWeft) + " man nonsense").status, 2);
}

// A program's names are bytes; JSON is UTF-8.
TEST(CommandLine, JsonShowsNamesOfAnyBytes) {
  const auto path = (fs::temp_directory_path() / fmt::format("weft_names_{}", ::getpid())).string();
  compile([](const std::vector<Tensor>& x) { return std::vector{relu(x[0])}; },
          {{"in\xff", {DType::f32, {2}}}}, {.name = "any\xfe", .backend = "native"})
      .save(path);
  for (const std::string command : {"inspect --json ", "run --json --backend native "})
    EXPECT_NE(weft_says(command + path).find("\"any\xef\xbf\xbd\""), std::string::npos) << command;
  fs::remove(path);
}

}  // namespace
}  // namespace weft::cli_face_test

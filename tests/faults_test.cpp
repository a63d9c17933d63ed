#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/thread_pool.h"
#include "host_memory.h"
#include "seam/registry.h"
#include "seam_watchers.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"
#include "weft/trainer.h"

// Machine faults: device or host out of memory, a full disk, a killed process, fewer cores than threads.
// Nothing is lost, nothing hangs. WEFT_FULL=1 runs everything, the default a part.

namespace weft::testing::faults_test {
namespace {

namespace fs = std::filesystem;

/// Prints and flushes, so that forked children don't print it again.
template <class... A>
void tell(fmt::format_string<A...> form, A&&... a) {
  fmt::print("[faults] {}\n", fmt::format(form, std::forward<A>(a)...));
  std::fflush(stdout);
}

bool full() { return std::getenv("WEFT_FULL") != nullptr; }

/// Draws that a message can name.
uint64_t seed() {
  static const uint64_t one = [] {
    const char* given = std::getenv("WEFT_SEED");
    const uint64_t s = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    tell("WEFT_SEED={}", s);
    return s;
  }();
  return one;
}

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Outcome {
  int status = 0;
  std::string text;  // standard output and error
};
/// Runs the built program; kills it after two minutes, with 137.
Outcome weft_program(const std::string& arguments, const std::string& environment = "") {
  Outcome out;
  const std::string command =
      "env " + environment + " timeout -s KILL 120 " WEFT_BINARY_DIR "/weft " + arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  char part[4096];
  while (const size_t n = std::fread(part, 1, sizeof part, pipe)) out.text.append(part, n);
  const int ended = ::pclose(pipe);
  out.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 1000 + WTERMSIG(ended);
  return out;
}

/// The exit status of a child; kills it after `seconds`.
int wait_for(pid_t child, int seconds) {
  int status = 0;
  for (int i = 0; i < seconds * 200; ++i) {
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    ::usleep(5000);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return status;
}

class Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream text(folder_ / "text.txt");
    for (int i = 0; i < 300; ++i) text << "line " << i << " of a text that is long enough\n";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string train(const std::string& out, const std::string& more) const {
    return "train --backend reference --data " + at("text.txt") + " --out " + at(out) +
           " --batch 2 --layers 1 --heads 2 --width 8 --context 8 --dropout 0.1 --sample-every 0 " + more;
  }
  /// Files in a folder that should not be left there.
  std::vector<std::string> unfinished(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder_ / folder))
      if (file.path().string().find(".tmp.") != std::string::npos) names.push_back(file.path().string());
    return names;
  }

  const fs::path folder_ =
      fs::canonical(fs::temp_directory_path()) / fmt::format("weft_faults_{}", ::getpid());
};
using FaultsOfPrograms = Faults;  // those that run `weft`

// ---- memory of the device ----

nn::RunInfo small_run(const io::Tokenizer& tokenizer, bool compile) {
  return {.settings = {.model = nn::GPTConfig{.vocabulary = tokenizer.size(),
                                              .context = 4,
                                              .layers = 1,
                                              .heads = 1,
                                              .width = 4,
                                              .dropout = 0.1},
                       .schedule = {.rate = 1e-2, .warmup = 0},
                       .steps = 4,
                       .batch = 2,
                       .compile = compile},
          .tokenizer = tokenizer};
}

// A run that is out of memory at any point says so; its checkpoint exists, and training continues from it
// unchanged.
TEST_F(Faults, TrainingWithoutDeviceMemorySaysSoAndGoesOnFromItsCheckpoint) {
  const OnBackend on(starving().name());
  auto& device = *value_or_raise(seam::registry().open(starving().name()));
  const auto tokenizer = io::Tokenizer::train_characters(slurp(folder_ / "text.txt"));
  const io::TokenData data({tokenizer.encode(slurp(folder_ / "text.txt")), tokenizer}, 4, 1);
  const auto two_steps = [&] {
    auto run = nn::load_checkpoint(at("run"));
    nn::Trainer trainer(run, data);
    const double first = trainer.step(), second = trainer.step();
    trainer.sync();
    nn::save_checkpoint(at("after"), run);
    return std::pair(first, second);
  };
  for (const bool compile : {false, true}) {
    nn::save_checkpoint(at("run"), nn::begin_run(small_run(tokenizer, compile)));
    const auto begun = slurp(nn::checkpoint_path(at("run")));
    const auto expected = two_steps();
    const auto after = slurp(nn::checkpoint_path(at("after")));
    device.trim();
    const uint64_t at_rest = device.live_bytes();
    starving().allow(UINT64_MAX);
    EXPECT_EQ(two_steps(), expected);
    const uint64_t needed = UINT64_MAX - starving().left();
    ASSERT_GT(needed, 20u);
    // Under a sanitizer each takes fifty times as long.
    const uint64_t sites = full() ? needed : WEFT_WATCHES_HOST_MEMORY ? 16 : 4;
    const uint64_t stride = std::max<uint64_t>(1, needed / sites);
    uint64_t failures = 0;
    for (uint64_t k = seed() % stride; k < needed; k += stride, ++failures) {
      device.trim();
      starving().allow(k);
      const auto said = error_of([&] { (void)two_steps(); });
      starving().allow(UINT64_MAX);
      EXPECT_NE(said.find("watch_starving: allocating "), std::string::npos) << k << ": " << said;
      EXPECT_EQ(slurp(nn::checkpoint_path(at("run"))), begun) << k;
      EXPECT_EQ(two_steps(), expected) << "after failure " << k;
      EXPECT_EQ(slurp(nn::checkpoint_path(at("after"))), after) << "after failure " << k;
      device.trim();
      EXPECT_EQ(device.live_bytes(), at_rest) << "failure " << k << " left memory behind";
    }
    tell("device memory, {}: {} of {} allocations refused", compile ? "compiled" : "eager", failures, needed);
  }
}

// ---- memory of the host ----

#if WEFT_WATCHES_HOST_MEMORY

/// Compiles, writes, reads, runs.
std::vector<float> compiled_and_run(const std::string& file) {
  const auto f = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{softmax(matmul(in[0], in[0]), 1) + exp(in[0])};
  };
  const Dim n = Dim::symbol("faults_n", 1, 8);
  auto made = compile(f, {{"x", {DType::f32, {n, n}}}}, {.backend = "reference"});
  made.save(file);
  auto loaded = load_program(file, {.backend = "reference"});
  const auto x = Tensor::of({1, 2, 3, 4}, {2, 2});
  auto out = made({x})[0].to_vector<float>();
  const auto again = loaded({x})[0].to_vector<float>();
  out.insert(out.end(), again.begin(), again.end());
  return out;
}

/// One number that a child and its parent see.
class SharedNumber {
 public:
  SharedNumber()
      : at_(static_cast<int64_t*>(
            ::mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedNumber() { ::munmap(at_, sizeof(int64_t)); }
  SharedNumber(const SharedNumber&) = delete;
  int64_t& operator*() { return *at_; }

 private:
  int64_t* at_;
};

// The n-th allocation of the host fails, for each n: an error is raised, and the next run works. In a child,
// since a fault here would crash the process.
TEST_F(Faults, WithoutHostMemoryAnErrorLeavesAndAllGoesOn) {
  set_thread_count(1);  // a child has no other threads
  const auto expected = compiled_and_run(at("p"));
  const int64_t before = host_allocations();
  (void)compiled_and_run(at("p"));
  const int64_t needed = host_allocations() - before;
  const int64_t stride = full() ? 1 : std::max<int64_t>(1, needed / 150);
  const auto first = static_cast<int64_t>(seed() % static_cast<uint64_t>(stride));
  SharedNumber now;
  const pid_t child = ::fork();
  if (child == 0) {
    for (int64_t n = first; n < needed; n += stride) {
      *now = n;
      refuse_host_allocation_after(n);
      try {
        (void)compiled_and_run(at("p"));  // it may do without that memory
      } catch (const std::bad_alloc&) {
      } catch (const Error&) {
      }
      refuse_host_allocation_after(-1);
      if (compiled_and_run(at("p")) != expected) ::_exit(2);
    }
    ::_exit(0);
  }
  const int status = wait_for(child, full() ? 1200 : 120);
  set_thread_count(0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "allocation " << *now << " of " << needed << ": status " << status;
  tell("host memory: {} of {} allocations refused", (needed - first + stride - 1) / stride, needed);
}

#endif

// ---- a disk that is full ----

/// The environment in which a file's k-th write in `folder` finds the disk full.
std::string full_disk(const std::string& folder, int k) {
  return fmt::format("LD_PRELOAD={}/plugins/bad_disk.so WEFT_FULL_DISK={} WEFT_FULL_DISK_AT={}",
                     WEFT_BINARY_DIR, folder, k);
}
bool disk_was_full(const Outcome& o) { return o.text.find("the disk is full\n") != std::string::npos; }

// A checkpoint is the old one or the new one; a run continued from it ends as one without a full disk.
TEST_F(FaultsOfPrograms, AFullDiskLeavesTheCheckpointThatWasThere) {
  const auto run = [&](const std::string& out, int steps, const std::string& more,
                       const std::string& environment = "") {
    return weft_program(train(out, fmt::format("--steps {} {}", steps, more)), environment);
  };
  ASSERT_EQ(run("whole", 2, "").status, 0);
  fs::copy(folder_ / "whole", folder_ / "old");
  ASSERT_EQ(run("whole", 4, "--resume").status, 0);
  const std::string fresh = slurp(nn::checkpoint_path(at("whole")));
  int k = 0, refused = 0;
  for (;; ++k) {
    fs::remove_all(folder_ / "run");
    fs::copy(folder_ / "old", folder_ / "run");
    const auto r = run("run", 4, "--resume", full_disk(at("run"), k));
    EXPECT_TRUE(r.status == 0 || r.status == 1) << k << ": " << r.status << "\n" << r.text;
    EXPECT_EQ(unfinished("run"), std::vector<std::string>()) << k;
    const auto kept = nn::load_checkpoint(at("run"));
    EXPECT_EQ(kept.info.step, r.status == 0 ? 4 : 2) << k << "\n" << r.text;
    EXPECT_EQ(r.status == 0, slurp(nn::checkpoint_path(at("run"))) == fresh) << k;
    if (!disk_was_full(r)) break;
    if (r.status == 1) {
      ++refused;
      EXPECT_NE(r.text.find("No space left on device"), std::string::npos) << k << "\n" << r.text;
    } else {
      EXPECT_NE(r.text.find("note: "), std::string::npos) << k << "\n" << r.text;  // a log, or a page
    }
    ASSERT_EQ(run("run", 4, "--resume").status, 0) << k;
    EXPECT_EQ(slurp(nn::checkpoint_path(at("run"))), fresh) << k;
    ASSERT_LT(k, 200);
  }
  EXPECT_GE(refused, 2);  // the first checkpoint and the last
  EXPECT_GT(k, refused);  // the log and the page
  tell("full disk: {} writes of a training run failed", k);
}

// Tokens and programs: the old file stays, without leftovers.
TEST_F(FaultsOfPrograms, AFullDiskLeavesTheFileThatWasThere) {
  ASSERT_EQ(weft_program(train("model", "--steps 1")).status, 0);
  fs::create_directories(folder_ / "out");
  const std::string commands[] = {
      "tokenize --data " + at("text.txt") + " --tokenizer bytes --out " + at("out/file"),
      "compile --model " + at("model") + " --out " + at("out/file"),
      "man --out " + at("out/man"),
  };
  for (const auto& command : commands) {
    int k = 0;
    for (;; ++k) {
      std::ofstream(folder_ / "out/file") << "old";
      const auto r = weft_program(command, full_disk(at("out"), k));
      EXPECT_EQ(unfinished("out"), std::vector<std::string>()) << command << k;
      if (!disk_was_full(r)) {
        EXPECT_EQ(r.status, 0) << r.text;
        break;
      }
      EXPECT_EQ(r.status, 1) << command << k << "\n" << r.text;
      EXPECT_NE(r.text.find("No space left on device"), std::string::npos) << command << k << "\n" << r.text;
      EXPECT_EQ(slurp(folder_ / "out/file"), "old") << command << k;
      ASSERT_LT(k, 200);
    }
    EXPECT_GE(k, 1) << command;
  }
}

// ---- kill -9 ----

// What a killed run had begun to write is removed by the next one: its checkpoint, its log, its page.
TEST_F(FaultsOfPrograms, AKilledRunLeavesNothingBehind) {
  ASSERT_EQ(weft_program(train("run", "--steps 1")).status, 0);
  const std::string own[] = {"model.safetensors", "log.jsonl", "training.html"};
  for (const std::string& name : own) std::ofstream(folder_ / "run" / (name + ".tmp.12345.7")) << "half";
  std::ofstream(folder_ / "run/notes.txt.tmp.12345.7") << "of somebody else";
  ASSERT_EQ(weft_program(train("run", "--steps 2 --resume")).status, 0);
  EXPECT_EQ(unfinished("run"), std::vector{at("run/notes.txt.tmp.12345.7")});
}

// A run is killed at random moments and continued: the checkpoint always loads, and the final one equals that
// of an uninterrupted run, bit for bit.
TEST_F(FaultsOfPrograms, KilledAtAnyMomentARunGoesOnFromItsCheckpoint) {
  const int kills = full() ? 100 : 10;
  const std::string how = "--steps 30 --save-every 0.001 --seed 5";
  ASSERT_EQ(weft_program(train("whole", how)).status, 0);
  const std::string whole = slurp(nn::checkpoint_path(at("whole")));
  std::mt19937_64 draw(seed());
  int killed = 0, whole_runs = 0, taken_up = 0;
  while (killed < kills) {
    const bool there = nn::has_checkpoint(at("run"));
    taken_up += there;
    const pid_t child = ::fork();
    if (child == 0) {
      if (!std::freopen("/dev/null", "w", stdout) || !std::freopen("/dev/null", "w", stderr)) ::_exit(9);
      const std::string command =
          "exec " WEFT_BINARY_DIR "/weft " + train("run", how + (there ? " --resume" : ""));
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(9);
    }
    const auto moment = static_cast<useconds_t>(draw() % 150'000);
    ::usleep(moment);
    ::kill(child, SIGKILL);
    const int status = wait_for(child, 60);
    if (WIFEXITED(status)) {  // it was done before
      ASSERT_EQ(WEXITSTATUS(status), 0);
      EXPECT_EQ(slurp(nn::checkpoint_path(at("run"))), whole);
      fs::remove_all(folder_ / "run");
      ++whole_runs;
      continue;
    }
    ++killed;
    SCOPED_TRACE(fmt::format("kill {} after {} us, WEFT_SEED={}", killed, moment, seed()));
    if (!nn::has_checkpoint(at("run"))) continue;  // there was none yet
    const auto kept = nn::load_checkpoint(at("run"));
    EXPECT_LE(kept.info.step, 30);
  }
  const auto last = weft_program(train("run", how + (nn::has_checkpoint(at("run")) ? " --resume" : "")));
  ASSERT_EQ(last.status, 0) << last.text;
  EXPECT_EQ(slurp(nn::checkpoint_path(at("run"))), whole);
  EXPECT_EQ(unfinished("run"), std::vector<std::string>());
  tell("{} kills, {} runs taken up, {} ran to their end meanwhile", killed, taken_up, whole_runs);
}

// ---- threads ----

TEST_F(FaultsOfPrograms, MoreThreadsThanCoresGiveTheSame) {
  for (const char* threads : {"1", "64"})
    ASSERT_EQ(weft_program(train(threads, fmt::format("--steps 3 --threads {}", threads))).status, 0)
        << threads;
  EXPECT_EQ(slurp(nn::checkpoint_path(at("1"))), slurp(nn::checkpoint_path(at("64"))));
}

}  // namespace
}  // namespace weft::testing::faults_test

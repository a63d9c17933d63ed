#include "cli/checking/last_words.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "cli/show.h"

// Signal handlers may call few functions, so their message is prepared.
namespace weft::cli {
namespace {

struct Ending {
  int signal;
  const char* words;
};
constexpr Ending kEndings[] = {
    {SIGSEGV, "touched memory that is not there (SIGSEGV)"},
    {SIGBUS, "touched memory that is not there (SIGBUS)"},
    {SIGFPE, "divided by zero (SIGFPE)"},
    {SIGILL, "ran an instruction that this CPU lacks (SIGILL)"},
    {SIGABRT, "aborted (SIGABRT)"},
    {SIGINT, "was interrupted"},
    {SIGTERM, "was told to end (SIGTERM)"},
};

volatile pid_t owner = 0;  // 0: inactive
std::array<char, 1024> repeat;
std::array<struct sigaction, std::size(kEndings)> before;
std::array<char, 1 << 16> stack;  // for handlers after a stack overflow

void say(const char* words) {
  [[maybe_unused]] const auto n = ::write(STDERR_FILENO, words, std::strlen(words));
}

void tell(const char* words) {
  say("\nweft check: the process ");
  say(words);
  if (!repeat[0]) return say(" before the first case\n");
  say(" in this case\n  repeat: ");
  say(repeat.data());
  say("\n");
}

void on_signal(int signal) {
  const bool mine = ::getpid() == owner;
  owner = 0;
  for (const auto& ending : kEndings)
    if (mine && ending.signal == signal) tell(ending.words);
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void at_exit() {
  if (::getpid() != owner) return;
  tell("was ended by a call of exit");
  ::_exit(1);
}

std::atomic<uint64_t> cases{0};  // started so far

// Polls four times a second whether another case has started. Counts polls, not seconds of the clock: a
// suspended machine is not a hanging case.
void watch_over(const std::stop_token& stop, double limit) {
  constexpr int kLooks = 4;  // a second
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  uint64_t last = 0, looks = 0;
  while (!woken.wait_for(lock, stop, std::chrono::milliseconds(1000 / kLooks),
                         [&] { return stop.stop_requested(); })) {
    const uint64_t now = cases;
    looks = now == last ? looks + 1 : 0, last = now;
    if (static_cast<double>(looks) < limit * kLooks) continue;
    owner = 0;
    tell(fmt::format("was not done after {} s", limit).c_str());
    ::_exit(1);
  }
}

}  // namespace

LastWords::LastWords(double limit) {
  static const int once = std::atexit(at_exit);
  (void)once;
  owner = ::getpid();
  const stack_t own{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&own, nullptr);
  struct sigaction action{};
  action.sa_handler = on_signal, action.sa_flags = SA_ONSTACK;
  // Blocks further signals: `timeout` sends its signal twice, and the second one would cut off the message.
  for (const auto& ending : kEndings) ::sigaddset(&action.sa_mask, ending.signal);
  for (size_t i = 0; i < std::size(kEndings); ++i) ::sigaction(kEndings[i].signal, &action, &before[i]);
  watch_ = std::jthread([limit](const std::stop_token& stop) { watch_over(stop, limit); });
}
LastWords::~LastWords() {
  owner = 0;
  for (size_t i = 0; i < std::size(kEndings); ++i) ::sigaction(kEndings[i].signal, &before[i], nullptr);
}

void LastWords::at(const std::string& command) {
  const size_t n = std::min(command.size(), repeat.size() - 1);
  std::memcpy(repeat.data(), command.data(), n);
  repeat[n] = 0;
  ++cases;
}

}  // namespace weft::cli

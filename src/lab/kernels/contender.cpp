#include "lab/kernels/contender.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "lab/kernels/call_json.h"
#include "lab/kernels/process_facts.h"
#include "weft/random.h"

namespace weft::lab {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

const std::string kForbids =
    ": it wanted to start a process or a program, to reach the network, other processes or the system's "
    "shared memory, or to set its priority or its processors";

Status failed(const char* what) {
  return fail(Code::io, "a kernel's process can't be had: {}: {}", what, std::strerror(errno));
}

// The counter and the clock at one time: of several readings the one in which the least passed, since this
// thread may lose its processor between the two.
struct Moment {
  uint64_t ticks = 0;
  Clock::time_point time;
};
Moment moment() {
  Moment best;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 16; ++i) {
    const uint64_t before = ticks();
    const auto time = Clock::now();
    const uint64_t passed = ticks() - before;
    if (passed >= least) continue;
    least = passed, best = {before + passed / 2, time};
  }
  return best;
}

// How long a tick of the processor's counter is.
double seconds_per_tick() {
  static const double found = [] {
    const auto first = moment();
    while (Clock::now() - first.time < std::chrono::milliseconds(20)) {
    }
    const auto last = moment();
    return std::chrono::duration<double>(last.time - first.time).count() /
           static_cast<double>(last.ticks - first.ticks);
  }();
  return found;
}

// While it lives, what this thread starts runs on these processors.
class Pinned {
 public:
  explicit Pinned(const std::vector<int>& processors) {
    if (processors.empty() || ::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (const int p : processors) CPU_SET(p, &wanted);
    changed_ = ::sched_setaffinity(0, sizeof wanted, &wanted) == 0;
  }
  ~Pinned() {
    if (changed_) ::sched_setaffinity(0, sizeof before_, &before_);
  }
  Pinned(const Pinned&) = delete;

 private:
  cpu_set_t before_;
  bool changed_ = false;
};

int start(const Process& process, const std::string& folder, int socket, int memory, int output) {
  std::vector<std::string> words = process.command;
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  // By way of high numbers: one of the two may be 3 or 4 itself.
  for (const auto& [from, to] :
       {std::pair{socket, 103}, {memory, 104}, {103, kSocket}, {104, kMemory}, {output, 1}, {output, 2}})
    ::posix_spawn_file_actions_adddup2(&files, from, to);
  for (const int copy : {103, 104}) ::posix_spawn_file_actions_addclose(&files, copy);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // a group of its own
  pid_t child = -1;
  const Pinned pinned(process.processors);
  const int error = ::posix_spawn(&child, argv[0], &files, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  errno = error;
  return error ? -1 : child;
}

// Kernels' processes of this one.
class Running {
 public:
  void add(int pid) {
    const std::lock_guard lock(mutex_);
    pids_.insert(pid);
  }
  // `pid` has ended. Other children of this process than these are what ended ones have left.
  void end_orphans_but(int pid) {
    const std::lock_guard lock(mutex_);
    pids_.erase(pid);
    if (!adopts_) return;
    for (const int child : children_of(::getpid())) {
      if (pids_.contains(child)) continue;
      for (const int below : descendants_of(child)) ::kill(below, SIGKILL);
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  void adopt(bool adopt) {
    const std::lock_guard lock(mutex_);
    adopts_ = ::prctl(PR_SET_CHILD_SUBREAPER, adopt) == 0 && adopt;
  }

 private:
  std::mutex mutex_;
  std::set<int> pids_;
  bool adopts_ = false;
};

Running& running() {
  static Running all;
  return all;
}

}  // namespace

void adopt_orphans(bool adopt) { running().adopt(adopt); }

double Contender::Turn::seconds() const {
  return static_cast<double>(ticks) * seconds_per_tick() + 1e-9 * static_cast<double>(nanoseconds);
}
double Contender::Turn::seconds_outside() const { return static_cast<double>(outside) * seconds_per_tick(); }

Contender::Contender(std::string name, const Process& process, SharedMemory memory)
    : name_(std::move(name)), process_(process), memory_(std::move(memory)) {
  std::random_device device;
  drawn_from_ = uint64_t{device()} << 32 | device();
}

Result<std::unique_ptr<Contender>> Contender::start(std::string name, const Process& process) {
  WEFT_TRY(auto memory, SharedMemory::create(process.memory_bytes));
  std::unique_ptr<Contender> c(new Contender(std::move(name), process, std::move(memory)));
  WEFT_CHECK(c->spawn());
  return c;
}

Status Contender::spawn() {
  std::string folder = (std::filesystem::temp_directory_path() / "weft-lab-XXXXXX").string();
  if (!::mkdtemp(folder.data())) return failed("its folder");
  folder_ = folder;
  int sockets[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return failed("a socket");
  socket_ = sockets[0];
  if (::pipe2(pipe, O_CLOEXEC | O_NONBLOCK) != 0) return ::close(sockets[1]), failed("a pipe");
  output_ = pipe[0];
  pid_ = lab::start(process_, folder_, sockets[1], memory_.descriptor(), pipe[1]);
  if ((group_ = pid_) > 0) running().add(pid_);
  const Status status = pid_ < 0 ? failed(process_.command[0].c_str()) : Status();
  ::close(sockets[1]), ::close(pipe[1]);
  return status;
}

Contender::~Contender() {
  if (pid_ > 0) {
    end_processes();
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (group_ > 0) running().end_orphans_but(group_);
  if (socket_ >= 0) ::close(socket_);
  if (output_ >= 0) ::close(output_);
  std::error_code ignored;  // what is left of a temporary folder harms nobody
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

// Its process stands still, and starts no others; those below it may, until they are all ended.
void Contender::end_processes() {
  ::kill(pid_, SIGSTOP);
  for (int i = 0; i < 100; ++i) {
    const auto below = descendants_of(pid_);
    if (below.empty()) break;
    for (const int process : below) ::kill(process, SIGKILL);
  }
  ::kill(-group_, SIGKILL);  // and itself
}

Status Contender::take_output() {
  char part[4096];
  for (ssize_t n; (n = ::read(output_, part, sizeof part)) > 0;) {
    printed_bytes_ += static_cast<uint64_t>(n);
    printed_.append(part, static_cast<size_t>(n));
    if (printed_.size() > 8192) printed_.erase(0, printed_.size() - 4096);
    if (printed_bytes_ > process_.output_bytes)
      return fail(Code::device, "it printed more than {} bytes; the last: {}", process_.output_bytes,
                  printed());
  }
  return {};
}

Status Contender::ended() {
  WEFT_CHECK(take_output());
  // It has closed its socket; it may live on all the same.
  siginfo_t about{};
  for (int i = 0; i < 200 && about.si_pid == 0; ++i) {
    ::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOWAIT | WNOHANG);
    if (about.si_pid == 0) ::poll(nullptr, 0, 5);
  }
  end_processes();  // while its number and that of its group are its own
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  const auto words = printed();
  return fail(Code::device, "its process ended {}{}",
              WIFSIGNALED(status)
                  ? fmt::format("by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                  : fmt::format("with status {}", WEXITSTATUS(status)),
              (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? kForbids : "") +
                  (words.empty() ? "" : "; it had printed: " + words));
}

Result<std::string> Contender::receive(double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  int output = output_;
  for (;;) {
    pollfd ready[] = {{.fd = socket_, .events = POLLIN, .revents = 0},
                      {.fd = output, .events = POLLIN, .revents = 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    const int n = left > 0 ? ::poll(ready, 2, static_cast<int>(left)) : 0;
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return fail(Code::device, "it did not answer for {} seconds: it hangs", seconds);
    if (ready[0].revents) {
      std::string text(1 << 16, '\0');
      const ssize_t bytes = ::recv(socket_, text.data(), text.size(), 0);
      if (bytes <= 0) return ended();
      text.resize(static_cast<size_t>(bytes));
      return text;
    }
    WEFT_CHECK(take_output());
    if (ready[1].revents & POLLHUP) output = -1;  // it has closed it
  }
}

namespace {

// A kernel's process may answer anything.
template <class T>
T member(const json& answer, const char* name, T otherwise) {
  const auto at = answer.find(name);
  const bool fits =
      at != answer.end() && (std::is_same_v<T, std::string> ? at->is_string() : at->is_number());
  return fits ? at->get<T>() : otherwise;
}

}  // namespace

Result<json> Contender::ask(json request, uint64_t* outside) {
  if (pid_ < 0) return fail(Code::device, "its process has ended");
  const uint64_t number = random_word(drawn_from_, asked_++);
  request["number"] = number;
  const auto text = request.dump();
  pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, 0) != 0 && !(waiting.revents & POLLHUP))
    return fail(Code::device, "its process answers what it was not asked");
  ::kill(pid_, SIGCONT);
  const uint64_t began = ticks();
  if (::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) < 0) return ended();
  const bool opens = request.value("do", "") == "open";
  auto answer = receive(opens ? std::max(process_.seconds, process_.open_seconds) : process_.seconds);
  if (outside) *outside = ticks() - began;
  if (pid_ > 0) ::kill(pid_, SIGSTOP);
  if (!answer.ok()) return answer.take_status();
  auto parsed = json::parse(*answer, nullptr, false);
  if (!parsed.is_object())
    return fail(Code::device, "its process answers with something else than JSON: {}",
                answer->substr(0, 200));
  if (member(parsed, "number", uint64_t{0}) != number)
    return fail(Code::device, "its process answers what it was not asked: {}", answer->substr(0, 200));
  if (parsed.contains("refused"))
    return fail(Code::unsupported, "{}", member<std::string>(parsed, "refused", ""));
  if (parsed.contains("failed")) return fail(Code::device, "{}", member<std::string>(parsed, "failed", ""));
  return parsed;
}

Result<Contender::Opened> Contender::open(const conformance::Ask& call) {
  const auto began = Clock::now();
  WEFT_TRY(const auto answer, ask({{"do", "open"}, {"contender", name_}, {"call", to_json(call)}}));
  return Opened{member<std::string>(answer, "kernel", ""),
                member<std::string>(answer, "identity", ""),
                member(answer, "resident_before", uint64_t{0}),
                std::chrono::duration<double>(Clock::now() - began).count(),
                member(answer, "compile_seconds", 0.0),
                member<std::string>(answer, "device", "")};
}

Result<uint64_t> Contender::set_up(bool cold) {
  const uint64_t before = memory_of(pid_).resident;
  WEFT_CHECK(ask({{"do", "set up"}, {"cold", cold}}).take_status());
  const uint64_t after = memory_of(pid_).resident;
  return after - std::min(before, after);
}

Status Contender::place(std::span<const uint64_t> inputs, std::span<const uint64_t> outputs) {
  return ask({{"do", "place"},
              {"inputs", std::vector<uint64_t>(inputs.begin(), inputs.end())},
              {"outputs", std::vector<uint64_t>(outputs.begin(), outputs.end())}})
      .take_status();
}

Result<Contender::Turn> Contender::run(const Launches& l) {
  Turn turn;
  const double before = cpu_seconds();
  WEFT_TRY(const auto answer, ask({{"do", "run"},
                                   {"launches", l.count},
                                   {"edits", l.edits_at},
                                   {"edits_each", l.edits_each},
                                   {"apart", l.apart || l.cold},
                                   {"cold", l.cold}},
                                  &turn.outside));
  turn.cpu = cpu_seconds() - before;
  turn.clock = member(answer, "chain_rate", 0.0),
  turn.device_bytes = member(answer, "device_bytes", uint64_t{0});
  if (const uint64_t chain = member(answer, "chain_ticks", uint64_t{0}))
    turn.clock = static_cast<double>(kChain) / (1e9 * seconds_per_tick() * static_cast<double>(chain));
  for (const auto& [name, time] : {std::pair{"ticks", &turn.ticks}, {"nanoseconds", &turn.nanoseconds}})
    if (const auto found = answer.find(name); found != answer.end() && found->is_number_unsigned())
      return *time = found->get<uint64_t>(), turn;
  return fail(Code::device, "its process answers with no time: {}", answer.dump().substr(0, 200));
}

int Contender::idle(double seconds) {
  ::kill(pid_, SIGCONT);
  ::poll(nullptr, 0, static_cast<int>(1e3 * seconds));
  const int runnable = runnable_threads(pid_);
  ::kill(pid_, SIGSTOP);
  return runnable;
}

double Contender::cpu_seconds() const {
  clockid_t clock{};
  timespec t{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::string Contender::files_left() const {
  std::string names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    names += (names.empty() ? "" : ", ") + entry.path().filename().string();
  return names;
}

std::string Contender::printed() const {
  const auto end = printed_.find_last_not_of(" \n");
  return end == std::string::npos ? "" : printed_.substr(0, end + 1);
}

}  // namespace weft::lab

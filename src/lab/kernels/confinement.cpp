#include "lab/kernels/confinement.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <vector>

namespace weft::lab {
namespace {

Status no_limit(const char* what) {
  return fail(Code::internal, "{} of a kernel's process can't be limited: {}", what, std::strerror(errno));
}

Status limit(__rlimit_resource resource, uint64_t most, const char* what) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return no_limit(what);
  const rlimit wanted{std::min<rlim_t>(now.rlim_cur, most), std::min<rlim_t>(now.rlim_max, most)};
  return ::setrlimit(resource, &wanted) == 0 ? Status() : no_limit(what);
}

// What the process has reserved already, which a sanitizer makes terabytes.
uint64_t reserved_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t pages[6] = {};  // the last: data and stack
  for (uint64_t& n : pages) file >> n;
  return pages[5] * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t machine_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// linux/landlock.h of an older system lacks the newer names; the numbers are the system's interface.
struct Ruleset {
  uint64_t files = 0, network = 0, scopes = 0;
};
struct Beneath {
  uint64_t allowed = 0;
  int32_t parent = -1;
} __attribute__((packed));

constexpr uint64_t kWrite = 1u << 1, kRemoveAndMake = 0x1ff0, kRefer = 1u << 13, kTruncate = 1u << 14;
constexpr uint64_t kConnect = 3, kAbstractSocketsAndSignals = 3;
constexpr int kVersionWithRefer = 2, kVersionWithTruncate = 3, kVersionWithNetwork = 4,
              kVersionWithScopes = 6;

Status allow_writes_below(const char* path, int ruleset, uint64_t rights) {
  const int parent = ::open(path, O_PATH | O_CLOEXEC);
  if (parent < 0) return no_limit(path);
  const Beneath rule{rights, parent};
  const long done = ::syscall(SYS_landlock_add_rule, ruleset, 1, &rule, 0);
  const int why = errno;
  ::close(parent);
  errno = why;
  return done == 0 ? Status() : no_limit("writing of files");
}

Status keep_files_in() {
  const int version = landlock_version();
  if (version == 0) return {};
  Ruleset rules{.files = kWrite | kRemoveAndMake};
  if (version >= kVersionWithRefer) rules.files |= kRefer;
  if (version >= kVersionWithTruncate) rules.files |= kTruncate;
  if (version >= kVersionWithNetwork) rules.network = kConnect;
  if (version >= kVersionWithScopes) rules.scopes = kAbstractSocketsAndSignals;
  const size_t size = version >= kVersionWithScopes ? 24 : version >= kVersionWithNetwork ? 16 : 8;
  const auto ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size, 0));
  if (ruleset < 0) return no_limit("writing of files");
  Status status = allow_writes_below(".", ruleset, rules.files);
  const uint64_t to_a_file = rules.files & (kWrite | kTruncate);
  if (status.ok()) status = allow_writes_below("/dev/null", ruleset, to_a_file);
  if (status.ok() && ::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
    status = no_limit("writing of files");
  ::close(ruleset);
  return status;
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr long kStarts[] = {SYS_fork, SYS_vfork};
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr std::array<long, 0> kStarts{};  // they are clone
#endif

// The last six: it would be timed with more of the machine than the others. Processes of Python have no
// filter: libraries of theirs start programs, and OpenMP of Intel's and of LLVM sets the processors of its
// threads when it is loaded. The lab looks whether a process's own have changed.
constexpr long kForbidden[] = {SYS_execve,
                               SYS_execveat,
                               SYS_ptrace,
                               SYS_process_vm_readv,
                               SYS_process_vm_writev,
                               SYS_shmget,
                               SYS_msgget,
                               SYS_semget,
                               SYS_io_uring_setup,
                               SYS_setpriority,
                               SYS_sched_setscheduler,
                               SYS_sched_setparam,
                               SYS_sched_setattr,
                               SYS_sched_setaffinity,
                               SYS_ioprio_set};

constexpr uint32_t kArgument = offsetof(seccomp_data, args);  // the lower half of the first

std::vector<sock_filter> forbidding_filter() {
  const auto load = [](uint32_t at) { return sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)); };
  const auto equal = [](uint32_t value, uint8_t yes, uint8_t no) {
    return sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no));
  };
  const auto answer = [](uint32_t value) { return sock_filter(BPF_STMT(BPF_RET | BPF_K, value)); };
  const auto kill = answer(SECCOMP_RET_KILL_PROCESS), allow = answer(SECCOMP_RET_ALLOW);
  std::vector<sock_filter> f = {load(offsetof(seccomp_data, arch)), equal(kArchitecture, 1, 0), kill,
                                load(offsetof(seccomp_data, nr))};
  for (const long call : kStarts) f.insert(f.end(), {equal(static_cast<uint32_t>(call), 0, 1), kill});
  for (const long call : kForbidden) f.insert(f.end(), {equal(static_cast<uint32_t>(call), 0, 1), kill});
  // Threads are made by clone, too; clone3 hides its flags in memory, and the C library then takes clone.
  f.insert(f.end(), {equal(SYS_clone3, 0, 1), answer(SECCOMP_RET_ERRNO | ENOSYS), equal(SYS_clone, 0, 4),
                     load(kArgument), sock_filter(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1)),
                     allow, kill});
  f.insert(f.end(), {equal(SYS_socket, 0, 4), load(kArgument), equal(AF_UNIX, 0, 1), allow, kill});
#if defined(__x86_64__)
  f.insert(f.end(), {sock_filter(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1)), kill});  // x32
#endif
  f.push_back(allow);
  return f;
}

}  // namespace

int landlock_version() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  return version > 0 ? static_cast<int>(version) : 0;
}

Status limit_resources() {
  WEFT_CHECK(limit(RLIMIT_CORE, 0, "core files"));
  WEFT_CHECK(limit(RLIMIT_NOFILE, 4096, "open files"));
  return limit(RLIMIT_DATA, reserved_bytes() + machine_bytes() / 2, "memory");
}

Status confine() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return no_limit("rights");
  WEFT_CHECK(keep_files_in());
  auto filter = forbidding_filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? Status() : no_limit("calls");
}

}  // namespace weft::lab

#pragma once
#include <cstdint>
#include <string>
#include <vector>

// What the kernel of the machine says of a process, its own or another one.
namespace weft::lab {

/// Memory of a process that is not shared memory, so without the operands and results of a call, in bytes.
struct ProcessMemory {
  uint64_t resident = 0;   ///< now, with the code that it has loaded
  uint64_t anonymous = 0;  ///< now, without it: what it allocated and touched
  uint64_t peak = 0;       ///< the most that was resident
};
/// Of process `pid`; zeros where it has ended.
ProcessMemory memory_of(int pid);

/// Processors that it may run on: "0-1".
std::string processors_of(int pid);

/// How many of its threads compute, or wait for a processor to do so.
int runnable_threads(int pid);

/// Processes that it started, or whose parents have ended and left them to it, and that still run.
std::vector<int> children_of(int pid);
/// These, and theirs.
std::vector<int> descendants_of(int pid);

/// How the calling thread's processor rounds, and whether it flushes denormal numbers.
uint64_t float_mode();

}  // namespace weft::lab

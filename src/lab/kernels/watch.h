#pragma once
#include "lab/kernels/process_facts.h"
#include "lab/kernels/seat.h"

// What a kernel may not do beside giving wrong results: each function says what it did, or nothing.
namespace weft::lab {

/// A kernel's process when its timed turns begin.
struct Watch {
  ProcessMemory memory;
  std::string processors;
};
Watch watch(const Contender& contender);

/// Whether its memory has grown since, its processors are others, or it has processes of its own. `launches`:
/// since then.
std::string meddled(const Contender& contender, const Watch& begun, double launches, bool on_host);

/// Whether threads of it compute while nothing is asked: for half a second, so pools may spin a while.
std::string goes_on(Contender& contender);

/// Whether launches take much longer where many numbers changed before each of them than where one did: then
/// it remembers results, and computes what changed. Turns of at most this many launches.
Result<std::string> remembers(Seat& seat, const Operation& operation, uint64_t launches, uint64_t seed);

}  // namespace weft::lab

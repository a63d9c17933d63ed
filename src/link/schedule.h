#pragma once
#include <array>

#include "program/program.h"
#include "seam/prepared_kernel.h"

// Program + devices → resolved schedule: every call has a kernel, every value a place. docs/design.md
// section 8.
namespace weft::link {

/// Where a value lives. Arena slots share one buffer a device; states and weights have their own; an external
/// slot is memory that each run is given, for an input or an output.
struct BufferAllocation {
  enum class Kind : uint8_t { arena, state, weight, external } kind = Kind::arena;
  uint32_t device = 0;   // index into Schedule::devices
  uint64_t offset = 0;   // in the arena
  int32_t index = -1;    // of the state, weight or port: inputs are counted first, then outputs
  int32_t packed = -1;   // of a weight: which of Schedule::packed this is; -1: as it is in the program
  int32_t same_as = -1;  // the slot in whose bytes these lie: a view, a piece, or what is written over it
  uint64_t within = 0;   // where they begin there
  int32_t value = -1;    // what it holds: slots with one number hold the same value, or parts of it
  seam::ConcreteType type;
  uint32_t first_step = 0, last_step = 0;  // steps between which an arena slot holds its value
};

/// One launch, or one copy between slots (schedule is null then).
struct Step {
  std::shared_ptr<seam::PreparedKernel> prepared;  // steps whose calls are equal share one
  std::vector<int32_t> inputs, outputs;            // slots; -1 where absent
  std::vector<int32_t> onto;  // slots whose values its results are added to, where it does that
  int32_t workspace = -1;
  uint32_t device = 0;
  uint32_t lane = 0;            // a hint: steps of one lane follow each other anyway
  std::vector<uint32_t> after;  // the earlier steps that it must follow; what those follow is left out
  std::string where;
};

/// What became of a call, in the order in which calls are met: its kernel, or none where it was opened.
struct Choice {
  const weft_kernel* kernel = nullptr;
  uint32_t device = 0;
  uint64_t workspace = 0;
  std::vector<std::pair<uint32_t, uint32_t>> reuses;  ///< output, and the operand whose memory it takes over
  uint64_t adds = 0;                                  ///< results that are added to a value which is there
};

struct ArenaSize {
  uint64_t bytes = 0;
  uint64_t live_peak = 0;  // largest sum of live slots: what no schedule can go below
};

/// A weight as a kernel wants it: `schedule` names the packing of its input `input`, and its kernel makes it.
struct PackedWeight {
  int32_t weight = -1;
  uint32_t device = 0;
  std::shared_ptr<seam::PreparedKernel> prepared;
  uint32_t input = 0;
  const weft_packing& packing() const { return *prepared->plan.packings[input]; }
};

/// Ready to run for one set of symbol values. Holds no memory itself; a session does.
struct Schedule {
  std::vector<seam::Device*> devices;
  std::vector<BufferAllocation> slots;
  std::vector<Step> steps;
  std::vector<PackedWeight> packed;
  std::vector<ArenaSize> arenas;         // one per device
  uint32_t lanes = 1;                    // that memory keeps apart
  std::vector<int32_t> inputs, outputs;  // external slots, in the order of the program's ports
  std::vector<Choice> choices;
  std::vector<uint32_t> order;  // of the calls, where they were put in another one than they were met in
};

/// The ids of the packings that there are of a weight on a device; nothing where it may not be packed.
using Packings = std::function<std::optional<std::vector<std::string>>(int32_t weight, uint32_t device)>;

/// Do values share memory, and results take that of operands? By themselves only to compare with.
enum class Sharing : uint8_t { all, none };

/// Asks every call's kernels on devices[0]: by name, then as a region; expands what is refused; turns to the
/// other devices as far as `policy` allows, with the copies as steps; plans memory. A refusal that nothing
/// can serve is an error that lists every answer and the node. Weights are packed as far as `packings`
/// allows.
Result<Schedule> link(const program::CompiledProgram& program, const Bindings& bindings,
                      std::span<seam::Device* const> devices, const Policy& policy,
                      const Packings& packings = {}, Sharing sharing = Sharing::all);

/// The schedule for smaller sizes in the same memory: the kernels that `roof` has, prepared for these sizes,
/// with every slot where it is there. Code::unsupported where a kernel does not take them, or something needs
/// more.
Result<Schedule> resize(const Schedule& roof, const program::CompiledProgram& program,
                        const Bindings& bindings, const Policy& policy, const Packings& packings = {});

/// Fills in the steps between which each slot holds its value. Steps count from 1; inputs arrive at 0 and
/// outputs are read one past the last.
void set_lifetimes(Schedule& schedule);

/// By lane: how many of the schedule's steps have passed when all that matters in that lane has.
inline constexpr uint32_t kMostLanes = 4;
using Clock = std::array<uint32_t, kMostLanes>;

/// What comes before the first use of a slot, and its last uses. One begins after another where every step
/// that touches the one comes before every step that touches the other.
struct Lifetime {
  Clock begin{}, end{};
  bool begins_after(const Lifetime& other) const {
    for (uint32_t l = 0; l < kMostLanes; ++l)
      if (other.end[l] > begin[l]) return false;
    return true;
  }
};

/// What the offset of every slot is a multiple of.
uint64_t alignment_of(const seam::Device& device);

/// Gives arena slots their offsets and returns what each arena needs. Two slots share bytes only if one
/// begins after the other: by `lifetimes`, one a slot, or in the order of steps where there are none. Up to
/// kMostBySize slots of a device are fitted by size, which comes closest to the live peak and takes quadratic
/// time; more of them in the order of steps.
inline constexpr size_t kMostBySize = 4096;
std::vector<ArenaSize> plan_memory(std::vector<BufferAllocation>& slots,
                                   std::span<seam::Device* const> devices,
                                   std::span<const Lifetime> lifetimes = {});

/// Fills in the steps that each must follow: from the bytes that they read and write or, before memory is
/// planned, from the values alone.
enum class Conflicts : uint8_t { bytes, values };
void set_dependencies(Schedule& schedule, Conflicts what = Conflicts::bytes);
/// Is the order of every two steps, where one writes what the other touches, given by `after`, and is what a
/// step reads still the value that it is to read? The error names the steps: two that may race, one that
/// waits for a later one, one that overwrites a value which another still reads, or its own operand, unless
/// its kernel was asked for that. Looks at bytes and at nothing that planned them.
Status check_dependencies(const Schedule& schedule);

/// The schedule as text: step, kernel, slots, offsets, and who refused before.
std::string print(const Schedule& schedule);

}  // namespace weft::link

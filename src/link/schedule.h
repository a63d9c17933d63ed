#pragma once
#include <array>
#include <functional>

#include "program/program.h"
#include "seam/prepared_kernel.h"

// Program + devices → schedule: every call has a kernel, every value a place. docs/design.md section 6.
namespace weft::link {

/// Where a value lives. Arena slots share one buffer a device; states and weights have their own; an external
/// slot is memory that each run is given, for an input or an output.
struct BufferAllocation {
  enum class Kind : uint8_t { arena, state, weight, external } kind = Kind::arena;
  uint32_t device = 0;   // index into Schedule::devices
  uint64_t offset = 0;   // in the arena
  int32_t index = -1;    // of the state, weight or port: inputs are counted first, then outputs
  int32_t packed = -1;   // of a weight: which of Schedule::packed this is; -1: as it is in the program
  int32_t same_as = -1;  // the slot whose bytes this one uses: a view, a piece, or a result written over it
  uint64_t within = 0;   // offset in those bytes
  int32_t value = -1;    // what it holds: slots with one number hold the same value, or parts of it
  seam::ConcreteType type;
  uint32_t first_step = 0, last_step = 0;  // steps between which an arena slot holds its value
};

/// One launch, or one copy between slots (`prepared` is null then).
struct Step {
  std::shared_ptr<seam::PreparedKernel> prepared;  // steps whose calls are equal share one
  std::vector<int32_t> inputs, outputs;            // slots; -1 where absent
  std::vector<int32_t> onto;  // slots that its results are added to; empty where it overwrites
  int32_t workspace = -1;
  uint32_t device = 0;
  uint32_t lane = 0;            // a hint: steps of one lane run one after another
  std::vector<uint32_t> after;  // the earlier steps that it must follow; steps implied by those are left out
  std::string where, from;      // as in program::KernelCall
};

/// The decision for one call, in the order of placement: its kernel, or none where its body replaced it.
struct Choice {
  bool view = false;  ///< its result is a view of its operand: there is no more to decide
  const weft_kernel* kernel = nullptr;
  uint32_t device = 0;
  uint64_t workspace = 0;
  std::vector<std::pair<uint32_t, uint32_t>> reuses;  ///< output, and the operand whose memory it reuses
  uint64_t adds = 0;                                  ///< bit k: result k is added to an existing value
};

struct ArenaSize {
  uint64_t bytes = 0;
  uint64_t live_peak = 0;  // largest sum of live slots: a lower bound for any schedule
};

/// A weight as a kernel wants it: `prepared` names the packing of its input `input`, and its kernel packs it.
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
  uint32_t lanes = 1;                    // that share no memory
  std::vector<int32_t> inputs, outputs;  // external slots, in the order of the program's ports
  std::vector<Choice> choices;
  std::vector<uint32_t> order;  // of the calls, where it differs from the program's
};

/// The ids of the existing packings of a weight on a device; nothing where it may not be packed.
using Packings = std::function<std::optional<std::vector<std::string>>(int32_t weight, uint32_t device)>;

/// Whether values share memory and results reuse that of operands. `none` is for comparisons.
enum class Sharing : uint8_t { all, none };

/// Selects a kernel for each call on devices[0]: by name, then as a region. Replaces refused calls by their
/// bodies, falls back to the other devices as far as `policy` allows, adds copies as steps, and plans memory.
/// A call that nothing serves is an error that lists every refusal and the node. Weights are packed as far as
/// `packings` allows.
Result<Schedule> link(const program::CompiledProgram& program, const Bindings& bindings,
                      std::span<seam::Device* const> devices, const Policy& policy,
                      const Packings& packings = {}, Sharing sharing = Sharing::all);

/// The schedule for smaller sizes in the same memory: the kernels of `roof`, prepared for these sizes, and
/// its slots. Code::unsupported where a kernel refuses these sizes, or anything needs more memory than there.
Result<Schedule> resize(const Schedule& roof, const program::CompiledProgram& program,
                        const Bindings& bindings, const Policy& policy, const Packings& packings = {});

/// Fills in the steps between which each slot holds its value. Steps count from 1; inputs arrive at 0 and
/// outputs are read one past the last.
void set_lifetimes(Schedule& schedule);
/// Steps that may run as a part of one behind them (WEFT_KERNEL_JOINS) read their operands then: these are
/// kept until that step, where they are small.
void each_kept(const Schedule& schedule, const std::function<void(int32_t slot, uint32_t step)>& keep);

/// By lane: how many of its steps must have run.
inline constexpr uint32_t kMostLanes = 4;
using Clock = std::array<uint32_t, kMostLanes>;

/// The steps before the first use of a slot, and those of its last uses. A lifetime begins after another one
/// where every step that touches the first comes before every step that touches the second.
struct Lifetime {
  Clock begin{}, end{};
  bool begins_after(const Lifetime& other) const {
    for (uint32_t l = 0; l < kMostLanes; ++l)
      if (other.end[l] > begin[l]) return false;
    return true;
  }
};

/// The alignment of every slot's offset.
uint64_t alignment_of(const seam::Device& device);

/// Gives arena slots their offsets and returns what each arena needs. Two slots share bytes only if one
/// begins after the other: by `lifetimes`, one a slot, or in the order of steps where there are none. Up to
/// kMostBySize slots of a device are fitted by size, which comes closest to the live peak and takes quadratic
/// time; more of them in the order of steps.
inline constexpr size_t kMostBySize = 4096;
std::vector<ArenaSize> plan_memory(std::vector<BufferAllocation>& slots,
                                   std::span<seam::Device* const> devices,
                                   std::span<const Lifetime> lifetimes = {});

/// Fills in the steps that each must follow: from the bytes that they touch or, before memory is planned,
/// from the values alone.
enum class Conflicts : uint8_t { bytes, values };
void set_dependencies(Schedule& schedule, Conflicts what = Conflicts::bytes);
/// Checks that `after` orders every two steps of which one writes bytes that the other touches, and that each
/// step reads the value that it should. The error names the steps: a race, a cycle, a value overwritten
/// before its last read, or an operand overwritten by a kernel that was not asked to. Looks at bytes alone,
/// and at nothing of the code that planned them.
Status check_dependencies(const Schedule& schedule);

/// The schedule as text: step, kernel, slots, offsets, and who refused before.
std::string print(const Schedule& schedule);

}  // namespace weft::link

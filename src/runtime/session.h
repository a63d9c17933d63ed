#pragma once
#include <deque>
#include <functional>
#include <map>

#include "runtime/bound_schedule.h"
#include "runtime/trace.h"
#include "runtime/weights.h"
#include "seam/artefacts.h"

namespace weft::runtime {

/// An array in host memory: an input or output of a run.
struct HostTensor {
  seam::ConcreteType type;
  std::vector<std::byte> bytes;
};

/// The same, in memory of the caller.
struct HostView {
  seam::ConcreteType type;
  std::span<const std::byte> bytes;
};

/// An array in memory of the session's first device, row-major, from the start of the buffer.
struct DeviceArray {
  seam::ConcreteType type;
  seam::BufferRef buffer;
};

/// Existing memory of a weight or state on a device, by name; null where the session must allocate it.
using Present = std::function<seam::BufferRef(const std::string& name, const seam::Device& device)>;

/// The code of devices that the program carries and none of `devices` can use, with the reason: it is
/// compiled anew.
std::vector<program::SkippedSection> unused_code(const program::CompiledProgram& program,
                                                 std::span<seam::Device* const> devices);

/// A program ready to run: memory, states and weights on its devices, and a schedule for each set of symbol
/// values, made on first use and cached (a bounded number). The program is linked for powers of two of the
/// symbol with the widest range; the schedule for a value is that of the next power, resized to the value, so
/// nothing is padded. One run at a time; a second thread gets an error, not a race. Sessions share the
/// program, what `present` gives, and weights of equal bytes (weight_store.h).
class Session {
 public:
  /// `devices[0]` is where the program runs; the others are where `policy` may turn to.
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const program::CompiledProgram> program,
                                                 std::vector<seam::Device*> devices, const Policy& policy,
                                                 const Present& present = {});
  /// The same without a recipe (link/recipe.h): every run runs every call.
  static Result<std::unique_ptr<Session>> create_whole(
      std::shared_ptr<const program::CompiledProgram> program, std::vector<seam::Device*> devices,
      const Policy& policy);
  ~Session();

  /// Runs once. `inputs` in the order of the program's; their sizes give the symbols' values. Returns the
  /// outputs; states keep what the run left in them.
  Result<std::vector<HostTensor>> run(std::span<const HostTensor> inputs);

  /// The same, with the outputs written into the caller's memory, but for those without memory. A run whose
  /// inputs have the sizes of the last one allocates nothing, nor does the device.
  Status run_into(std::span<const HostView> inputs, std::span<const std::span<std::byte>> outputs);
  /// Copies an output of the last run_into().
  Status fetch(size_t output, std::span<std::byte> to);

  /// The same on device memory: nothing is copied. Outputs come from the device's pool. Returns when the run
  /// is enqueued; eager ops on the arrays are ordered after it. The next wait() reports a failure.
  Result<std::vector<DeviceArray>> run_on(std::span<const DeviceArray> inputs);
  /// Waits for all runs. Returns the first error of a device since the last call.
  Status wait();

  /// The types of the outputs for inputs of these types.
  Result<std::vector<seam::ConcreteType>> output_types(std::span<const HostView> inputs);

  /// The parts of run(), for callers that run many times on equal inputs, such as benchmarks.
  Status set_inputs(std::span<const HostTensor> inputs);
  Status execute();  ///< enqueues every step; waits for nothing
  Result<std::vector<HostTensor>> outputs();

  Result<HostTensor> state(std::string_view name);
  Status set_state(std::string_view name, const HostTensor& value);
  /// The program with the states' present values as its first ones.
  Result<program::CompiledProgram> snapshot();

  /// `see` gets each new schedule before memory is bound to it, and may change it: for tests that plant
  /// faults.
  void on_schedule(std::function<void(link::Schedule&)> see) { see_schedule_ = std::move(see); }

  /// What later runs do, by name and time, goes to `to`, until it is null. Each step is waited for, and none
  /// is recorded as part of a sequence, so that a step's time is its own.
  void trace_to(Trace* to) { trace_ = to; }

  /// The memory of a state, for a session that goes on with it; null for another name. The two must not run
  /// at one time.
  seam::BufferRef state_memory(std::string_view name) const;
  /// Is this the memory of one of its states or weights?
  bool holds(const void* buffer) const;
  const program::CompiledProgram& program() const { return *program_; }
  /// The schedule of the last set_inputs.
  const link::Schedule& schedule() const { return current_->schedule(); }
  const link::Schedule* schedule_or_null() const { return current_ ? &current_->schedule() : nullptr; }
  /// How often the program was linked: once for each power of two, and for sizes that such a schedule could
  /// not be resized to.
  size_t links() const { return links_; }
  /// How many of its steps run as sequences of their devices, which are recorded when it runs again.
  size_t recorded_steps() const { return current_ ? current_->recorded() : 0; }
  /// The device that the program runs on, and its name.
  seam::Device& device() const { return *devices_[0]; }
  const std::string& backend() const { return devices_[0]->name(); }

 private:
  struct Bound {
    Bindings bindings;
    std::unique_ptr<BoundSchedule> schedule;
  };

  Session(std::shared_ptr<const program::CompiledProgram> program, std::vector<seam::Device*> devices,
          const Policy& policy);
  Status load(const Present& present, bool whole);
  Status make_constants(const std::vector<seam::BufferRef>& given);
  Result<Bindings> bind(std::span<const seam::ConcreteType* const> inputs) const;
  bool same_sizes(
      std::span<const seam::ConcreteType* const> inputs) const;  // as those of the present schedule
  Status choose_schedule(std::span<const seam::ConcreteType* const> inputs);
  Status check_bytes(std::span<const HostView> inputs) const;
  Status use_own_ports();
  Status enqueue_in_turn(std::span<const seam::BufferRef> ports);
  Status follow_eager(std::span<const seam::BufferRef> ports);
  Status leave_to_eager(std::span<const seam::BufferRef> ports);
  const link::BufferAllocation& slot(int32_t i) const { return schedule().slots[static_cast<size_t>(i)]; }
  // The parts of a run; the caller has marked the session as busy.
  Status check_output(size_t i, size_t bytes) const;
  Status copy_output(size_t i, std::span<std::byte> to);
  Status put(std::span<const HostView> inputs);
  Status enqueue();
  Result<std::vector<HostTensor>> take();
  Result<HostTensor> read_state(size_t i);
  Result<BoundSchedule*> bound_for(const Bindings& bindings);
  Bindings roof_of(const Bindings& bindings) const;
  Result<const link::Schedule*> roof_for(const Bindings& roof);
  Result<link::Schedule> schedule_for(const Bindings& bindings);
  Result<link::Schedule> link_exactly(const Bindings& bindings);
  // The schedule, with its weights and arenas.
  Result<link::Schedule> schedule_with_room(const Bindings& bindings, bool exact);
  Status make_room(const link::Schedule& schedule);
  Status run_steps();
  Status pack_staged();
  // Memory of a state, with its initial value.
  Result<seam::BufferRef> first_memory(const program::StateSpec& state);
  link::Packings packings();
  BoundSchedule::Home home_of(std::vector<link::PackedWeight> packed) const;
  Status synchronize();

  std::shared_ptr<const program::CompiledProgram> program_;
  std::vector<seam::Device*> devices_;
  Policy policy_;
  std::vector<std::unique_ptr<seam::Queue>> queues_;  // by device
  std::vector<seam::BufferRef> states_;
  std::vector<seam::BufferRef> shared_;                   // states and weights in memory of the caller
  std::shared_ptr<const program::CompiledProgram> rest_;  // the program without its recipe
  std::optional<Weights> weights_;                        // of `rest_`
  std::vector<seam::BufferRef> arenas_;  // by device; of all schedules, one of which runs at a time
  std::map<std::vector<std::pair<std::string, int64_t>>, link::Schedule> roofs_;  // by their bindings
  std::deque<Bound> bound_;                                                       // newest use first
  BoundSchedule* current_ = nullptr;
  size_t links_ = 0;
  bool ran_ = false;                                 // or began to
  bool may_stage_ = true;                            // the packed weights of the one schedule that is bound
  std::unique_ptr<seam::OfferedArtefacts> offered_;  // what the file has for these devices
  std::function<void(link::Schedule&)> see_schedule_;
  Trace* trace_ = nullptr;
  std::atomic<bool> busy_{false};
};

/// How many sets of symbol values keep their schedule and memory.
inline constexpr size_t kMostSchedules = 8;
/// How many schedules for powers of two are kept.
inline constexpr size_t kMostRoofs = 64;

}  // namespace weft::runtime

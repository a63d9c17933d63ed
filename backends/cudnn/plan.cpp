#include "plan.h"

#include <algorithm>

namespace weft::cudnn {

using backend::Launch;
using backend::Outcome;
using From = Graph::Operand::From;

namespace {

constexpr uint64_t kOperandAlignment = 16;

uint64_t round_up(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

Descriptor graph_of(const Graph& graph, const Target& target) {
  std::vector<cudnnBackendDescriptor_t> all;
  for (const Descriptor& operation : graph.operations()) all.push_back(operation.get());
  Descriptor made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle) made.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  made.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(all.size()),
           all.data());
  made.finalize();
  return made;
}

/// cuDNN's proposals, the best first.
std::vector<Descriptor> configs_of(const Descriptor& graph, cudnnBackendHeurMode_t mode,
                                   const Target& target) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (target.properties) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  heuristics.finalize();
  int64_t n = 0;
  WEFT_CUDNN_TRY(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, nullptr));
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < n; ++i)
    raw.push_back(configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  if (n > 0)
    WEFT_CUDNN_TRY(cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, n, &n, raw.data()));
  configs.erase(configs.begin() + n, configs.end());
  return configs;
}

std::vector<int32_t> notes_of(const Descriptor& config) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  int64_t n = 0;
  WEFT_CUDNN_TRY(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &raw));
  return engine.notes(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                      CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
}

/// Why the engine's results will not do; null if they will. Sums in halves, operands that are rounded first,
/// and transforms of Winograd and Fourier have errors that no bound on the order of a sum covers.
const char* forbidden(const std::vector<int32_t>& notes, const Rules& rules) {
  for (const int32_t note : notes) switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        if (!rules.tensor_cores) return "uses tensor cores";
        break;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
        if (rules.repeatable) return "gives other bits in each run";
        break;
      case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP: break;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS: return "rounds its operands";
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return "adds in halves";
      default: return "transforms its operands";
    }
  return nullptr;
}

}  // namespace

Plan::Plan(Graph graph, const Target& target) : graph_(std::move(graph)) {
  operations_ = graph_of(graph_, target);
  choose(target);
  bytes_ = round_up(of_engine_, kAlignment);
  for (const auto& o : graph_.operands())
    if (o.from == From::scratch) bytes_ += round_up(static_cast<uint64_t>(o.which), kAlignment);
}

void Plan::choose(const Target& target) {
  std::string why;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    try {
      for (const Descriptor& config : configs_of(*operations_, mode, target))
        if (take(config, target, why)) return;
    } catch (const Failure& failure) {
      why = failure.outcome.text;  // cuDNN has no proposals for such a graph
    }
  }
  throw Failure{Outcome::fail(WEFT_UNSUPPORTED, "cuDNN has no engine for it: {}",
                              why.empty() ? "it proposes none" : why)};
}

bool Plan::take(const Descriptor& config, const Target& target, std::string& why) {
  try {
    const auto notes = notes_of(config);
    if (const char* no = forbidden(notes, graph_.rules)) {
      why = backend::format("one {}", no);
      return false;
    }
    Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (target.handle) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
    if (target.properties) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config).finalize();
    of_engine_ = static_cast<uint64_t>(plan.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
    tensor_cores_ = std::ranges::find(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes.end();
    plan_ = std::move(plan);
    return true;
  } catch (const Failure& failure) {
    why = failure.outcome.text;
    return false;
  }
}

namespace {

cudaError_t check(cudaError_t got, const char* what) {
  if (got != cudaSuccess) throw Failure{Outcome::fail(WEFT_DEVICE, "{}: {}", what, cudaGetErrorString(got))};
  return got;
}

/// An operand where the plan wants it. Nearly all memory is aligned; what is not (a view of the memory of
/// others) is copied to memory that is, and back.
class Aligned {
 public:
  Aligned(backend::TensorView t, bool written, cudaStream_t stream)
      : at_(t.data<void>()),
        from_(at_),
        bytes_(static_cast<size_t>(t.bytes())),
        stream_(stream),
        written_(written) {
    if (reinterpret_cast<uintptr_t>(from_) % kOperandAlignment == 0 || bytes_ == 0) return;
    check(cudaMallocAsync(&at_, bytes_, stream), "cudaMallocAsync");
    if (!written) copy(at_, from_);
  }
  Aligned(Aligned&& o) noexcept
      : at_(o.at_),
        from_(std::exchange(o.from_, o.at_)),
        bytes_(o.bytes_),
        stream_(o.stream_),
        written_(o.written_) {}
  ~Aligned() {
    if (at_ != from_) cudaFreeAsync(at_, stream_);
  }
  void* at() const { return at_; }
  void put_back() const {
    if (at_ != from_ && written_) copy(from_, at_);
  }

 private:
  void copy(void* to, const void* from) const {
    check(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
  }
  void *at_, *from_;
  size_t bytes_;
  cudaStream_t stream_;
  bool written_;
};

}  // namespace

void Plan::run(cudnnHandle_t handle, cudaStream_t stream, const Launch& l) const {
  std::vector<int64_t> ids;
  std::vector<void*> at;
  std::vector<Aligned> tensors;
  std::deque<int32_t> values;
  const auto base = l.workspace().has() ? reinterpret_cast<uintptr_t>(l.workspace().data<void>()) : 0;
  uintptr_t free = round_up(base, kAlignment);
  void* const of_engine = reinterpret_cast<void*>(free);
  free += round_up(of_engine_, kAlignment);
  for (const auto& o : graph_.operands()) {
    ids.push_back(o.id);
    if (o.from == From::value) {
      at.push_back(&values.emplace_back(static_cast<int32_t>(o.which)));
    } else if (o.from == From::scratch) {
      at.push_back(reinterpret_cast<void*>(free));
      free += round_up(static_cast<uint64_t>(o.which), kAlignment);
    } else {
      const bool written = o.from == From::output;
      tensors.emplace_back(written ? l.output(o.which) : l.input(o.which), written, stream);
      at.push_back(tensors.back().at());
    }
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, at)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, of_engine)
      .finalize();
  WEFT_CUDNN_TRY(cudnnBackendExecute(handle, plan_->get(), pack.get()));
  for (const Aligned& t : tensors) t.put_back();
}

}  // namespace weft::cudnn

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "chain.hpp"

// Sequences: the steps are captured into a graph for each set of bindings, and the last few graphs are kept.
// So a library's kernels may derive whatever they like from the pointers.
namespace weft::cuda {

using backend::LaunchCopy;
using Handles = std::vector<void*>;

namespace {

constexpr size_t kMostGraphs = 4;
constexpr size_t kStreams = 4;                // lanes share them
constexpr uint64_t kShortResult = 512 << 10;  // bytes

struct Step {
  std::unique_ptr<LaunchCopy> launch;  // null for a copy
  weft_copy copy{};
  std::vector<uint32_t> after;
  size_t stream = 0;
  bool is_waited_for = false;  // by a step in another stream
};

void* bound(uint32_t binding, void* fixed, const Handles& handles) {
  return binding ? handles[binding - 1] : fixed;
}

// "a sequence of 12 steps from cuda.softmax.rows"
std::string name_of(const weft_sequence_desc& desc) {
  std::string name = backend::format("a sequence of {} steps", desc.n_steps);
  for (uint32_t i = 0; i < desc.n_steps; ++i)
    if (const weft_launch* l = desc.steps[i]->launch) return name + " from " + l->plan->kernel->id;
  return name;
}

// Where a step that is captured ends in its stream.
struct End {
  bool collected = false;  // It waits in its queue, or did so,
  uint64_t settled = 0;    // until work of this number is launched.
  bool recorded = false;   // Its event is there.
};

struct Graph {
  Handles handles;
  gpu::GraphExec exec;
  std::unique_ptr<Chain> chain;  // what its kernels read
  gpu::Event ran = nullptr;      // of its last run, where it has a chain
};

}  // namespace

/// Streams and events for captures, which record nothing outside of them.
class Sequence {
 public:
  Sequence(Device& device, const weft_sequence_desc& desc)
      : device_(device), streams_wanted_(are_short(desc) ? 1 : kStreams) {
    for (uint32_t i = 0; i < desc.n_steps; ++i) add(*desc.steps[i]);
    name_ = name_of(desc);
    for (size_t i = 0; i < steps_.size(); ++i)
      for (const uint32_t earlier : steps_[i].after)
        if (steps_[earlier].stream != steps_[i].stream) steps_[earlier].is_waited_for = true;
  }
  Sequence(const Sequence&) = delete;
  ~Sequence() {
    if (device_.failed) return;
    (void)make_current(device_);
    for (const Graph& g : graphs_) {
      gpu::destroy_executable(g.exec);
      if (g.ran) gpu::destroy_event(g.ran);
    }
    for (const gpu::Event e : events_) gpu::destroy_event(e);
    for (const gpu::Stream s : streams_) gpu::destroy_stream(s);
    if (partials_) device_.blocks.release(partials_);
  }

  Outcome prepare() {
    size_t streams = 1;
    for (const Step& s : steps_) streams = std::max(streams, s.stream + 1);
    streams_.resize(streams);
    for (gpu::Stream& s : streams_) WEFT_GPU_TRY(gpu::create_stream(&s, gpu::kUnordered));
    if (auto made = allocate_partials(device_, streams, &partials_); !made.good()) return made;
    events_.resize(steps_.size() + streams + 1);
    for (gpu::Event& e : events_) WEFT_GPU_TRY(gpu::create_event(&e, gpu::kWithoutTime));
    return Outcome::ok();
  }

  Outcome run(Queue& queue, const Handles& handles) {
    if (auto settled = settle(queue); !settled.good()) return settled;
    if (auto found = find_graph(handles); !found.good()) return found;
    Graph& graph = graphs_.front();
    note(queue, name_);
    WEFT_GPU_TRY(gpu::launch_graph(graph.exec, queue.stream));
    if (graph.chain) WEFT_GPU_TRY(gpu::record_event(graph.ran, queue.stream));
    return launched(queue);
  }

 private:
  // Steps with small results, as those of decoding, end sooner than streams wait for each other; one after
  // another, each may start while the one before it ends, and products of one x join. A sequence is short
  // where three of four results are small: decoding has few large ones, as logits, but a training step has
  // many small ones too, of norms and biases, and is faster in several streams.
  static bool are_short(const weft_sequence_desc& desc) {
    std::vector<uint64_t> results;
    for (uint32_t i = 0; i < desc.n_steps; ++i) {
      const weft_launch* l = desc.steps[i]->launch;
      if (!l || l->plan->call->updates) continue;
      uint64_t bytes = 0;
      for (uint32_t o = 0; o < l->plan->call->n_outputs; ++o)
        bytes += static_cast<uint64_t>(backend::TensorView(l->outputs[o]).bytes());
      results.push_back(bytes);
    }
    if (results.empty()) return false;
    const auto third_quarter = results.begin() + static_cast<ptrdiff_t>((results.size() - 1) * 3 / 4);
    std::ranges::nth_element(results, third_quarter);
    return *third_quarter <= kShortResult;
  }

  void add(const weft_sequence_step& from) {
    Step& step = steps_.emplace_back();
    step.after.assign(from.after, from.after + from.n_after);
    step.stream = from.lane % streams_wanted_;
    if (from.copy)
      step.copy = *from.copy;
    else
      step.launch = std::make_unique<LaunchCopy>(from.launch, [](const weft_tensor& t) { return t.dl.data; });
  }

  // The first of the graphs is the one for these bindings then.
  Outcome find_graph(const Handles& handles) {
    const auto at = std::ranges::find(graphs_, handles, &Graph::handles);
    if (at != graphs_.end()) {
      std::rotate(graphs_.begin(), at, at + 1);
      return Outcome::ok();
    }
    gpu::Graph graph = nullptr;
    if (auto captured = capture(handles, &graph); !captured.good()) return captured;
    auto made = instantiate(graph, handles);
    gpu::destroy_graph(graph);
    if (made.good() && graphs_.front().chain && !graphs_.front().ran)
      WEFT_GPU_TRY(gpu::create_event(&graphs_.front().ran, gpu::kWithoutTime));
    return made;
  }

  // Before a graph's chain goes: a run that is pending reads its memory.
  Outcome wait_for(const Graph& graph) {
    using namespace std::chrono;
    const auto begin = steady_clock::now();
    while (graph.chain && graph.ran && gpu::query_event(graph.ran) == gpu::kNotReady) {
      const duration<double> waited = steady_clock::now() - begin;
      if (time_limit() > 0 && waited.count() > time_limit()) return overdue(device_);
      std::this_thread::sleep_for(microseconds(5));
    }
    return Outcome::ok();
  }

  // Updating the oldest graph is cheaper than instantiating a new one.
  Outcome instantiate(gpu::Graph graph, const Handles& handles) {
    if (graphs_.size() == kMostGraphs) {
      Graph& oldest = graphs_.back();
      if (auto ended = wait_for(oldest); !ended.good()) return ended;
      if (gpu::update(oldest.exec, graph) == gpu::kSuccess) {
        oldest.handles = handles, oldest.chain = std::move(chain_);
        std::rotate(graphs_.begin(), graphs_.end() - 1, graphs_.end());
        return Outcome::ok();
      }
      gpu::get_last_error();
      gpu::destroy_executable(oldest.exec);  // a pending one is freed after it has run
      if (oldest.ran) gpu::destroy_event(oldest.ran);
      graphs_.pop_back();
    }
    gpu::GraphExec exec = nullptr;
    WEFT_GPU_TRY(gpu::instantiate_graph(&exec, graph, 0));
    graphs_.push_front({handles, exec, std::move(chain_)});
    return Outcome::ok();
  }

  Outcome capture(const Handles& handles, gpu::Graph* graph) {
    chain_ = streams_.size() == 1 ? make_chain(device_, steps_.size()) : nullptr;
    WEFT_GPU_TRY(gpu::begin_capture(streams_[0], gpu::kCaptureOfThread));
    const auto captured = capture_steps(handles);
    const auto ended = outcome(gpu::end_capture(streams_[0], graph), "ending a capture");
    Outcome finished = captured.good() && ended.good() && chain_ ? chain_->finish() : Outcome::ok();
    if (chain_ && !chain_->launched()) chain_.reset();
    if (captured.good() && finished.good()) return ended;
    if (*graph) gpu::destroy_graph(*graph);
    return captured.good() ? std::move(finished) : captured;
  }

  Outcome capture_steps(const Handles& handles) {
    ends_.assign(steps_.size(), {});
    written_ = {};
    const size_t fork = steps_.size();  // its event follows those of the steps
    WEFT_GPU_TRY(gpu::record_event(events_[fork], streams_[0]));
    for (size_t s = 1; s < streams_.size(); ++s)
      WEFT_GPU_TRY(gpu::wait_for_event(streams_[s], events_[fork], 0));
    std::deque<Queue> queues;
    for (size_t i = 0; i < streams_.size(); ++i) {
      Queue& q = queues.emplace_back(device_, streams_[i]);
      q.partials = partials_ + i * kQueueMemory, q.captured = true, q.written = &written_;
      q.chain = chain_.get();
    }
    for (size_t i = 0; i < steps_.size(); ++i)
      if (auto step = capture_step(i, handles, queues); !step.good()) return step;
    for (Queue& q : queues)
      if (auto settled = settle(q); !settled.good()) return settled;
    for (size_t s = 1; s < streams_.size(); ++s) {
      WEFT_GPU_TRY(gpu::record_event(events_[fork + s], streams_[s]));
      WEFT_GPU_TRY(gpu::wait_for_event(streams_[0], events_[fork + s], 0));
    }
    return Outcome::ok();
  }

  Outcome capture_step(size_t i, const Handles& handles, std::deque<Queue>& queues) {
    const Step& step = steps_[i];
    Queue& queue = queues[step.stream];
    const gpu::Stream stream = queue.stream;
    for (const uint32_t earlier : step.after) {  // a stream keeps its order by itself
      if (steps_[earlier].stream == step.stream) continue;
      if (auto ended = record_end(earlier, queues[steps_[earlier].stream]); !ended.good()) return ended;
      WEFT_GPU_TRY(gpu::wait_for_event(stream, events_[earlier], 0));
    }
    if (!step.launch) {
      weft_copy c = step.copy;
      c.source = bound(c.source_binding, c.source, handles);
      c.target = bound(c.target_binding, c.target, handles);
      if (auto settled = settle(queue); !settled.good()) return settled;
      if (auto copied = enqueue_copy(c, stream); !copied.good()) return copied;
      auto* const to = static_cast<const char*>(c.target) + c.target_offset;
      written_.add({to, to + c.bytes});
    } else {
      const LaunchCopy launch(step.launch->get(),
                              [&](const weft_tensor& t) { return bound(t.binding, t.dl.data, handles); });
      weft_launch l = *launch.get();
      l.queue = reinterpret_cast<weft_queue>(&queue);
      weft_error error{.size = sizeof error};
      if (const weft_code code = l.plan->kernel->launch(&l, &error); code != WEFT_OK)
        return Outcome::fail(code, "{}: {}", l.plan->kernel->id, error.text);
      add_written(l);
    }
    // What was collected ends when somebody needs it, so that more may join until then.
    ends_[i] = {.collected = !queue.collected.empty(), .settled = queue.settled};
    return step.is_waited_for && queue.collected.empty() ? record_end(i, queue) : Outcome::ok();
  }

  void add_written(const weft_launch& l) {
    for (uint32_t o = 0; o < l.plan->call->n_outputs; ++o)
      written_.add(range_of(backend::TensorView(l.outputs[o])));
    if (l.workspace) written_.add(range_of(backend::TensorView(l.workspace)));
  }

  // The event of a step that another stream waits for, if it is not there yet.
  Outcome record_end(size_t i, Queue& queue) {
    End& end = ends_[i];
    if (end.recorded) return Outcome::ok();
    if (end.collected && end.settled == queue.settled)
      if (auto settled = settle(queue); !settled.good()) return settled;
    end.recorded = true;
    return outcome(gpu::record_event(events_[i], queue.stream), "recording an event");
  }

  Device& device_;
  size_t streams_wanted_;
  std::string name_;  // for the text of an error
  std::vector<Step> steps_;
  std::vector<gpu::Stream> streams_;
  float* partials_ = nullptr;       // of each stream's queue
  std::vector<gpu::Event> events_;  // of the steps, of the fork, of the other streams' ends
  std::vector<End> ends_;           // of each step, while they are captured
  Bytes written_;                   // by the steps that are captured so far
  std::unique_ptr<Chain> chain_;    // of the graph that is captured
  std::deque<Graph> graphs_;        // most recently used first
};

weft_code make_sequence(weft_device d, const weft_sequence_desc* desc, weft_sequence* out, uint32_t* refused,
                        weft_error* error) {
  return on_device(*device_of(d), error, [&]() -> Outcome {
    *refused = desc->n_steps;
    if (blocking()) return Outcome::fail(WEFT_UNSUPPORTED, "each launch is waited for");
    auto s = std::make_unique<Sequence>(*device_of(d), *desc);
    if (auto ready = s->prepare(); !ready.good()) return ready;
    *out = reinterpret_cast<weft_sequence>(s.release());
    return Outcome::ok();
  });
}

weft_code run_sequence(weft_sequence s, weft_queue q, void* const* handles, uint32_t n, weft_error* error) {
  return on_device(queue_of(q)->device, error, [&] {
    return reinterpret_cast<Sequence*>(s)->run(*queue_of(q), Handles(handles, handles + n));
  });
}

void free_sequence(weft_sequence s) { delete reinterpret_cast<Sequence*>(s); }

}  // namespace weft::cuda

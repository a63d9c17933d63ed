#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "faults.hpp"
#include "graph.hpp"

// Streams as threads, events as what they signal, and captures.
namespace weft::gpu {

namespace {

/// Whether an event's last record has been reached.
struct Signal {
  std::mutex mutex;
  std::condition_variable changed;
  bool given = false;
  std::chrono::steady_clock::time_point when;  // it was given

  void give() {
    const std::lock_guard lock(mutex);
    given = true, when = std::chrono::steady_clock::now();
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return given; });
  }
  bool is_given() {
    const std::lock_guard lock(mutex);
    return given;
  }
};

/// A capture that a stream takes part in.
struct Capture {
  std::shared_ptr<CapturedGraph> graph;
  std::vector<size_t> last;  // what comes next in the stream waits for these

  bool goes_on() {
    if (graph && graph->ended) *this = {};
    return graph != nullptr;
  }
};

/// The work of a stream.
struct Line {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Work> waiting;
  bool busy = false, closing = false;
  std::string error;                  // of a function of the host that failed, until somebody has been told
  static thread_local Line* running;  // whose thread this is

  bool idle() const { return waiting.empty() && !busy; }
  void run() {
    running = this;
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return closing || !waiting.empty(); });
      if (waiting.empty()) return;
      const Work work = std::move(waiting.front());
      waiting.pop_front();
      const auto begin = work.begin && !waiting.empty() ? waiting.front().begin : nullptr;
      busy = true;
      lock.unlock();
      if (begin) begin();
      work.run();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};
thread_local Line* Line::running = nullptr;

}  // namespace

struct StreamOfThread {
  Line line;
  std::thread thread{[this] { line.run(); }};
  int device = current_device();
  Capture capture;
};
struct EventOfStream {
  std::shared_ptr<Signal> signal;  // null: never recorded
  Capture capture;                 // where it was recorded into one
};

namespace {

Error enqueue(Stream s, Work work) {
  if (failed(s->device)) return Error::fault;
  if (s->capture.goes_on()) {
    s->capture.last = {s->capture.graph->add(std::move(work), s->capture.last)};
    return Error::success;
  }
  const std::lock_guard lock(s->line.mutex);
  s->line.waiting.push_back(std::move(work));
  s->line.changed.notify_all();
  return Error::success;
}

}  // namespace

Error create_stream(Stream* out, unsigned) {
  if (failed(current_device())) return Error::fault;
  *out = new StreamOfThread;
  return Error::success;
}

Error destroy_stream(Stream s) {
  {
    const std::lock_guard lock(s->line.mutex);
    s->line.closing = true;
    s->line.changed.notify_all();
  }
  s->thread.join();
  delete s;
  return Error::success;
}

Error query_stream(Stream s) {
  const std::lock_guard lock(s->line.mutex);
  if (failed(s->device)) return Error::fault;
  if (!s->line.idle()) return Error::not_ready;
  if (s->line.error.empty()) return Error::success;
  set_error_text(std::exchange(s->line.error, {}));
  return Error::function_failed;
}

Error synchronize_stream(Stream s) {
  {
    std::unique_lock lock(s->line.mutex);
    s->line.changed.wait(lock, [s] { return s->line.idle(); });
  }
  return query_stream(s);
}

Error device_of_stream(Stream s, int* device) {
  *device = s->device;
  return Error::success;
}

Error create_event(Event* out, unsigned) {
  *out = new EventOfStream;
  return Error::success;
}
Error destroy_event(Event e) {
  delete e;
  return Error::success;
}

Error record_event(Event e, Stream s) {
  if (s->capture.goes_on()) {
    e->capture = s->capture;
    return Error::success;
  }
  e->capture = {};
  e->signal = std::make_shared<Signal>();
  return enqueue(s, {[signal = e->signal] { signal->give(); }});
}

Error query_event(Event e) {
  if (failed(current_device())) return Error::fault;
  return !e->signal || e->signal->is_given() ? Error::success : Error::not_ready;
}

Error milliseconds_between(float* milliseconds, Event first, Event second) {
  if (!first->signal || !second->signal) return Error::invalid_value;
  if (!first->signal->is_given() || !second->signal->is_given()) return Error::not_ready;
  *milliseconds =
      std::chrono::duration<float, std::milli>(second->signal->when - first->signal->when).count();
  return Error::success;
}

Error wait_for_event(Stream s, Event e, unsigned) {
  if (e->capture.goes_on()) {  // the stream takes part in that capture from now on
    if (s->capture.goes_on() && s->capture.graph != e->capture.graph) return Error::invalid_value;
    s->capture.graph = e->capture.graph;
    auto& last = s->capture.last;
    for (const size_t i : e->capture.last)
      if (std::ranges::find(last, i) == last.end()) last.push_back(i);
    return Error::success;
  }
  if (!e->signal) return Error::success;
  return enqueue(s, {[signal = e->signal] { signal->wait(); }});
}

Error begin_capture(Stream s, int) {
  if (s->capture.goes_on()) return Error::invalid_value;
  s->capture = {std::make_shared<CapturedGraph>(), {}};
  return Error::success;
}

Error end_capture(Stream s, Graph* out) {
  const Capture ended = std::exchange(s->capture, {});
  *out = nullptr;
  if (!ended.graph) return Error::invalid_value;
  ended.graph->ended = true;
  if (!ended.graph->all_before(ended.last)) return Error::unjoined;
  *out = new CapturedGraph(*ended.graph);
  return Error::success;
}

Error destroy_graph(Graph g) {
  delete g;
  return Error::success;
}
Error instantiate_graph(GraphExec* out, Graph g, unsigned) {
  *out = new CapturedGraph(*g);
  return Error::success;
}
Error destroy_executable(GraphExec g) { return destroy_graph(g); }

Error update(GraphExec to, Graph from) {
  const auto same = [](const CapturedGraph::Node& a, const CapturedGraph::Node& b) {
    return a.after == b.after;
  };
  if (!std::ranges::equal(to->nodes, from->nodes, same)) return Error::invalid_value;
  *to = *from;
  return Error::success;
}

Error launch_graph(GraphExec g, Stream s) {
  return enqueue(s, {[graph = *g] {  // a copy: the executable may be updated while a run of it is pending
                   static uint64_t random = 0x9E3779B97F4A7C15u;
                   uint64_t own = random++;
                   graph.run(own);
                 }});
}

Error copy_async(void* to, const void* from, size_t bytes, int, Stream s) {
  return enqueue(s, {[=, device = s->device] {
                   if (!failed(device)) copy_bytes(to, from, bytes);
                 }});
}

Error enqueue_kernel(Stream s, std::string_view name, std::function<std::string()> kernel,
                     std::function<void()> begin) {
  return enqueue(
      s, {.run = [=, kernel = std::move(kernel), device = s->device] { run_kernel(device, name, kernel); },
          .begin = std::move(begin)});
}

// The stream that runs it is told, not the one that a capture recorded it from, which may be gone by then.
Error enqueue_function(Stream s, std::function<std::string()> function) {
  return enqueue(s, {[function = std::move(function), device = s->device] {
                   std::string why = failed(device) ? "" : function();
                   Line& line = *Line::running;
                   const std::lock_guard lock(line.mutex);
                   if (line.error.empty()) line.error = std::move(why);
                 }});
}

}  // namespace weft::gpu

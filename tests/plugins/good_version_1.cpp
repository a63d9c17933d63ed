#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "version_1/backend.h"

// A plug-in of version 1 of the seam, against that version's header alone: memory behind handles, a queue
// that runs when somebody waits, `add` by name, and any body that is made of adds and muls.
namespace {

constexpr uint64_t kShift = 16;  // a handle is so far above its memory

weft_code say(weft_error* error, weft_code code, const char* text) {
  if (error) std::snprintf(error->text, sizeof error->text, "%s", text);
  return code;
}
float* elements(const weft_tensor* t) {
  return reinterpret_cast<float*>(static_cast<char*>(t->dl.data) - kShift + t->dl.byte_offset);
}
int64_t count(const weft_type* t) {
  int64_t n = 1;
  for (int32_t i = 0; i < t->rank; ++i) n *= t->max[i];
  return n;
}

// ---- kernels

bool plain(const weft_type* t) {
  return t && t->dtype.code == kDLFloat && t->dtype.bits == 32 && !t->strides && t->layout == 0;
}
bool same_shapes(const weft_call* c) {
  for (uint32_t i = 0; i < c->n_inputs; ++i) {
    if (!plain(c->inputs[i]) || c->inputs[i]->rank != c->outputs[0]->rank) return false;
    for (int32_t d = 0; d < c->outputs[0]->rank; ++d)
      if (c->inputs[i]->max[d] != c->outputs[0]->max[d]) return false;
  }
  return plain(c->outputs[0]) && c->n_outputs == 1 && !c->accumulate && !c->updates;
}

weft_code accepts_add(const weft_kernel*, weft_device, const weft_call* c, weft_error* e) {
  weft_call with_a_twice = *c;  // b may have one element
  const weft_type* const twice[] = {c->inputs[0], c->inputs[0]};
  if (plain(c->inputs[1]) && count(c->inputs[1]) == 1) with_a_twice.inputs = twice;
  return same_shapes(&with_a_twice) ? weft_code{WEFT_OK}
                                    : say(e, WEFT_UNSUPPORTED, "wants equal f32 shapes, or one number");
}
weft_code accepts_body(const weft_kernel*, weft_device, const weft_call* c, weft_error* e) {
  if (!same_shapes(c)) return say(e, WEFT_UNSUPPORTED, "wants equal f32 shapes");
  for (uint32_t s = 0; s < c->region->n_steps; ++s) {
    const weft_call* step = c->region->steps[s]->call;
    if ((std::strcmp(step->op, "add") && std::strcmp(step->op, "mul")) || !same_shapes(step))
      return say(e, WEFT_UNSUPPORTED, "wants bodies of adds and muls");
  }
  return WEFT_OK;
}
weft_code prepare_body(const weft_kernel*, weft_device, const weft_call* c, weft_plan* plan, weft_error*) {
  plan->workspace = c->region->n_values * static_cast<uint64_t>(count(c->outputs[0])) * sizeof(float);
  return WEFT_OK;
}

/// A launch with copies of what belongs to the host.
struct Task {
  const weft_plan* plan;
  std::vector<float*> inputs;
  float *output, *workspace;
};

void run_body(const Task& task) {
  const weft_region& r = *task.plan->call->region;
  const auto n = static_cast<size_t>(count(task.plan->call->outputs[0]));
  std::vector<float*> values(r.n_values);
  for (uint32_t v = 0; v < r.n_values; ++v)
    values[v] = v < r.n_inputs ? task.inputs[v] : task.workspace + v * n;
  for (uint32_t s = 0; s < r.n_steps; ++s) {
    const weft_step& step = *r.steps[s];
    const float *a = values[step.inputs[0]], *b = values[step.inputs[1]];
    float* y = values[step.outputs[0]];
    for (size_t i = 0; i < n; ++i) y[i] = step.call->op[0] == 'a' ? a[i] + b[i] : a[i] * b[i];
  }
  std::memcpy(task.output, values[r.outputs[0]], n * sizeof(float));
}
void run(const Task& task) {
  if (task.plan->kernel->op[0] == 'r') return run_body(task);
  const int64_t n = count(task.plan->call->outputs[0]), of_b = count(task.plan->call->inputs[1]);
  for (int64_t i = 0; i < n; ++i) task.output[i] = task.inputs[0][i] + task.inputs[1][of_b == 1 ? 0 : i];
}

struct Queue {
  std::deque<Task> tasks;
  void finish() {
    for (const Task& task : tasks) run(task);
    tasks.clear();
  }
};
Queue* queue_of(weft_queue q) { return reinterpret_cast<Queue*>(q); }

weft_code launch(const weft_launch* l, weft_error*) {
  Task task{l->plan, {}, elements(l->outputs[0]), l->workspace ? elements(l->workspace) : nullptr};
  for (uint32_t i = 0; i < l->plan->call->n_inputs; ++i) task.inputs.push_back(elements(l->inputs[i]));
  queue_of(l->queue)->tasks.push_back(std::move(task));
  return WEFT_OK;
}

weft_kernel record(const char* id, const char* op, decltype(weft_kernel::accepts) accepts) {
  weft_kernel k{};
  k.size = sizeof k, k.id = id, k.op = op, k.accepts = accepts, k.launch = launch;
  k.determinism = WEFT_DETERMINISM_DEVICES;
  return k;
}

// ---- the table

weft_code probe(weft_probe* p, weft_error*) {
  p->n_devices = 1;
  return WEFT_OK;
}
weft_code open_device(uint32_t, weft_device* device, weft_capability* c, weft_error*) {
  static char the_device;
  c->available = c->units = c->read_write_buffer = c->offset_alignment = 1;
  c->queue_kind = WEFT_QUEUE_ORDERED;
  std::strcpy(c->kind, "one");
  std::strcpy(c->label, "a plug-in of version 1");
  *device = reinterpret_cast<weft_device>(&the_device);
  return WEFT_OK;
}
void close_device(weft_device) {}
weft_code allocate(weft_device, uint64_t bytes, void** handle, weft_error* e) {
  char* memory = static_cast<char*>(std::aligned_alloc(64, (bytes + kShift + 63) / 64 * 64));
  if (!memory) return say(e, WEFT_OUT_OF_MEMORY, "the host has none left");
  *handle = memory + kShift;
  return WEFT_OK;
}
void release(weft_device, void* handle) { std::free(static_cast<char*>(handle) - kShift); }
weft_code open_queue(weft_device, weft_queue* q, weft_error*) {
  *q = reinterpret_cast<weft_queue>(new Queue);
  return WEFT_OK;
}
void close_queue(weft_queue q) { delete queue_of(q); }
weft_code copy(weft_queue q, const weft_copy* c, weft_error*) {
  queue_of(q)->finish();
  const char* from = c->source ? static_cast<char*>(c->source) - kShift + c->source_offset
                               : static_cast<const char*>(c->host_source);
  char* to = c->target ? static_cast<char*>(c->target) - kShift + c->target_offset
                       : static_cast<char*>(c->host_target);
  if (c->bytes) std::memmove(to, from, c->bytes);
  return WEFT_OK;
}
weft_code synchronize(weft_queue q, weft_error*) {
  queue_of(q)->finish();
  return WEFT_OK;
}
weft_code kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error*) {
  static const weft_kernel add = record("good_version_1.add.late", "add", accepts_add);
  static const weft_kernel body = [] {
    weft_kernel k = record("good_version_1.region.late", "region", accepts_body);
    k.prepare = prepare_body, k.flags = WEFT_KERNEL_READS_ALL;
    return k;
  }();
  static const weft_kernel* const both[] = {&add, &body};
  *list = both, *n = 2;
  return WEFT_OK;
}

}  // namespace

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  if (host->abi_min > WEFT_ABI || host->abi_max < WEFT_ABI)
    return say(error, WEFT_VERSION, "the host does not speak version 1");
  static const weft_backend table = [] {
    weft_backend t{};
    t.size = sizeof t, t.abi = WEFT_ABI, t.name = "good_version_1", t.version = "1";
    t.probe = probe, t.open_device = open_device, t.close_device = close_device;
    t.allocate = allocate, t.free = release;
    t.open_queue = open_queue, t.close_queue = close_queue;
    t.copy = copy, t.synchronize = synchronize, t.kernels = kernels;
    return t;
  }();
  *backend = &table;
  return WEFT_OK;
}

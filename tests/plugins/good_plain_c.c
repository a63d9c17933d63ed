#include <stdlib.h>
#include <string.h>

#include "weft/backend.h"

/* A backend in plain C, against the one header: host memory, and one kernel, `add` of equal f32 shapes. */

static weft_code say(weft_error* error, weft_code code, const char* text) {
  if (error) {
    strncpy(error->text, text, sizeof error->text - 1);
    error->text[sizeof error->text - 1] = 0;
  }
  return code;
}

static int same(const weft_type* a, const weft_type* b) {
  if (a->rank != b->rank || a->dtype.code != kDLFloat || a->dtype.bits != 32 || b->dtype.bits != 32) return 0;
  for (int32_t i = 0; i < a->rank; ++i)
    if (a->max[i] != b->max[i]) return 0;
  return !a->strides && !b->strides && a->layout == 0 && b->layout == 0;
}

static weft_code accepts(const weft_kernel* k, weft_device d, const weft_call* c, weft_error* e) {
  (void)k, (void)d;
  if (c->accumulate || c->updates) return say(e, WEFT_UNSUPPORTED, "writes fresh outputs only");
  if (!same(c->inputs[0], c->inputs[1])) return say(e, WEFT_UNSUPPORTED, "wants two equal f32 shapes");
  return WEFT_OK;
}

static weft_code launch(const weft_launch* l, weft_error* e) {
  (void)e;
  const weft_tensor *a = l->inputs[0], *b = l->inputs[1], *y = l->outputs[0];
  const float* from_a = (const float*)((const char*)a->dl.data + a->dl.byte_offset);
  const float* from_b = (const float*)((const char*)b->dl.data + b->dl.byte_offset);
  float* to = (float*)((char*)y->dl.data + y->dl.byte_offset);
  int64_t n = 1;
  for (int32_t i = 0; i < y->dl.ndim; ++i) n *= y->dl.shape[i];
  for (int64_t i = 0; i < n; ++i) to[i] = from_a[i] + from_b[i];
  return WEFT_OK;
}

static const weft_kernel add = {.size = sizeof(weft_kernel),
                                .determinism = WEFT_DETERMINISM_DEVICES,
                                .id = "good_plain_c.add.loop",
                                .op = "add",
                                .accepts = accepts,
                                .launch = launch};
static const weft_kernel* const list[] = {&add};

static weft_code probe(weft_probe* p, weft_error* e) {
  (void)e;
  p->n_devices = 1;
  return WEFT_OK;
}
static weft_code open_device(uint32_t ordinal, weft_device* device, weft_capability* c, weft_error* e) {
  static char the_device;
  if (ordinal) return say(e, WEFT_INVALID_ARGUMENT, "there is one device, number 0");
  c->available = c->host_memory = c->units = c->read_write_buffer = c->offset_alignment = 1;
  strcpy(c->kind, "cpu");
  strcpy(c->label, "plain C");
  *device = (weft_device)&the_device;
  return WEFT_OK;
}
static void close_device(weft_device d) { (void)d; }
static weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) {
  (void)d;
  *handle = aligned_alloc(64, (bytes + 64) / 64 * 64);
  return *handle ? WEFT_OK : say(e, WEFT_OUT_OF_MEMORY, "malloc gave nothing");
}
static void release(weft_device d, void* handle) {
  (void)d;
  free(handle);
}
static weft_code open_queue(weft_device d, weft_queue* q, weft_error* e) {
  (void)e;
  *q = (weft_queue)d;
  return WEFT_OK;
}
static void close_queue(weft_queue q) { (void)q; }
static weft_code copy(weft_queue q, const weft_copy* c, weft_error* e) {
  (void)q, (void)e;
  const void* from = c->source ? (const char*)c->source + c->source_offset : c->host_source;
  void* to = c->target ? (char*)c->target + c->target_offset : c->host_target;
  memmove(to, from, c->bytes);
  return WEFT_OK;
}
static weft_code synchronize(weft_queue q, weft_error* e) {
  (void)q, (void)e;
  return WEFT_OK;
}
static weft_code kernels(weft_device d, const weft_kernel* const** to, uint32_t* n, weft_error* e) {
  (void)d, (void)e;
  *to = list, *n = 1;
  return WEFT_OK;
}

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  static const weft_backend table = {.size = sizeof(weft_backend),
                                     .abi = WEFT_ABI,
                                     .name = "good_plain_c",
                                     .version = "1",
                                     .probe = probe,
                                     .open_device = open_device,
                                     .close_device = close_device,
                                     .allocate = allocate,
                                     .free = release,
                                     .open_queue = open_queue,
                                     .close_queue = close_queue,
                                     .copy = copy,
                                     .synchronize = synchronize,
                                     .kernels = kernels};
  if (host->abi_max < WEFT_ABI || host->abi_min > WEFT_ABI) return say(error, WEFT_VERSION, "wants ABI 1");
  *backend = &table;
  return WEFT_OK;
}

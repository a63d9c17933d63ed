/* The whole contract between Weft and a backend. C11, valid as C++.
 *
 * A backend is a table of functions, reached through one function that it exports: weft_negotiate. Two axes
 * are kept apart: a *device* is where memory and queues live; *kernels* are records that say, for one call,
 * whether they accept it (or why not), and run it. Nothing here depends on the number of ops: ops are names.
 *
 * Conventions
 *   - Every struct begins with its size in bytes (weft_tensor begins with a DLTensor, then its size). A
 * reader never reads past that size; what is missing has the value zero. Arrays of structs are arrays of
 * pointers.
 *   - A function that can fail returns a weft_code and writes the reason into *error. Nothing throws, exits
 * or aborts.
 *   - Strings are UTF-8, end in zero, and live as long as the struct that points to them.
 *   - Threads: functions on a backend, a device, a kernel record or a plan may be called from any thread;
 * functions on a queue from one thread at a time (the host sees to that), but for `launch` on an inline
 * queue, which keeps no order and may come from several threads at once.
 *   - Ordered queues may run later. `launch`, `copy` and `dispatch` copy the host structs that they are given
 * before they return. The host frees buffers and plans only after the queue has passed them. An error of the
 * device arrives at the next synchronize of its queue, with the kernel's id in its text.
 *   - Queues of one device run beside each other; only `wait` orders them.
 *   - A kernel starts no thread of its own; host->parallel_for spreads work over the host's threads.
 */
#ifndef WEFT_BACKEND_H
#define WEFT_BACKEND_H

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header. Neither version 1 nor version 2 changes any more: what is new comes
 * behind what is there, with a new number. */
#define WEFT_ABI 2u
#define WEFT_ABI_MIN 1u          /* the oldest that the host still speaks */
#define WEFT_REQUIRED_ENTRIES 11 /* negotiate, and the ten of weft_backend below */

typedef int32_t weft_code;
enum {
  WEFT_OK = 0,
  WEFT_INVALID_ARGUMENT = 1, /* no backend could serve this */
  WEFT_UNSUPPORTED = 2,      /* valid, but not here; the text says why */
  WEFT_OUT_OF_MEMORY = 3,
  WEFT_UNAVAILABLE = 4, /* a library, driver or device is missing */
  WEFT_CORRUPT = 5,
  WEFT_IO = 6,
  WEFT_VERSION = 7,
  WEFT_DEVICE = 8, /* the device failed while running */
  WEFT_INTERNAL = 9
};

typedef struct weft_error {
  uint32_t size;
  char text[508];
} weft_error;

typedef struct weft_device_s* weft_device; /* the backend's own objects; the host only carries them */
typedef struct weft_queue_s* weft_queue;
typedef struct weft_module_s* weft_module;
typedef struct weft_sequence_s* weft_sequence;

/* ---- tensors and calls
 * --------------------------------------------------------------------------------------- */

/* A tensor for one launch. dl.data may be an opaque handle: outside host-memory backends, reach an element
 * only through dl.byte_offset. dl.strides is null for row-major contiguous. Kernels see strided or misaligned
 * operands only if their accepts said yes to such a weft_type. */
typedef struct weft_tensor {
  DLTensor dl;
  uint32_t size;
  uint32_t layout;              /* 0 = row-major; other tags name packed layouts */
  const int64_t* logical_shape; /* null: the same as dl.shape */
  uint64_t alignment;           /* of data + byte_offset, in bytes */
  /* since version 2 */
  uint32_t binding; /* in a sequence: k + 1 if the memory is binding k of each run (dl.data is null then) */
  uint32_t reserved;
} weft_tensor;

/* The type of an operand, with the range of sizes it may have. Today's host plans each shape by itself: min
 * and max are equal in every call that it makes, so nothing shows yet whether a kernel keeps to the range. */
typedef struct weft_type {
  uint32_t size;
  DLDataType dtype;
  int32_t rank;
  uint32_t layout;
  const int64_t* min; /* rank values each; equal where the size is known */
  const int64_t* max;
  const int64_t* strides; /* null: contiguous */
  uint64_t alignment;
  /* since version 2 */
  uint32_t constant; /* 1: a weight of the program, which holds the same bytes in every launch of the plan; 2:
                      * the same, and no other sizes come: a packing need not suit them */
  uint32_t n_packings;
  const char* const* packings; /* ids of those that the host has already of this constant */
} weft_type;

enum {
  WEFT_ATTR_INT = 0,
  WEFT_ATTR_FLOAT = 1,
  WEFT_ATTR_INTS = 2,
  WEFT_ATTR_STRING = 3,
  WEFT_ATTR_BYTES = 4
};

typedef struct weft_attr {
  uint32_t size;
  uint32_t kind;
  const char* name;
  int64_t i;           /* WEFT_ATTR_INT */
  double f;            /* WEFT_ATTR_FLOAT */
  const int64_t* ints; /* WEFT_ATTR_INTS: n values */
  const char* bytes;   /* WEFT_ATTR_STRING, WEFT_ATTR_BYTES: n bytes, and a zero after them */
  uint64_t n;
} weft_attr;

struct weft_call;

/* The body of a call, in primitive ops: what the call means, for kernels that have another name.
 * Values are numbered: first the inputs of the call, then the outputs of each step in order. */
typedef struct weft_region {
  uint32_t size;
  uint32_t n_values;
  const weft_type* const* values;
  uint32_t n_inputs;
  uint32_t n_steps;
  const struct weft_step* const* steps;
  const uint32_t* outputs; /* value numbers, one for each output of the call */
} weft_region;

/* One primitive op inside a region; `call` describes it as it would be described alone. */
typedef struct weft_step {
  uint32_t size;
  uint32_t reserved;
  const struct weft_call* call;
  const uint32_t* inputs; /* value numbers, UINT32_MAX for an absent operand */
  const uint32_t* outputs;
} weft_step;

enum {
  WEFT_DETERMINISM_ANY = 0,
  WEFT_DETERMINISM_RUN = 1,
  WEFT_DETERMINISM_BATCH = 2,
  WEFT_DETERMINISM_THREADS = 3,
  WEFT_DETERMINISM_DEVICES = 4
};
enum { WEFT_PRECISION_STRICT = 0, WEFT_PRECISION_TF32 = 1, WEFT_PRECISION_BF16 = 2 };

/* What is asked of a kernel: never any data. A null entry of `inputs` is an absent operand. */
typedef struct weft_call {
  uint32_t size;
  uint32_t op_version;
  const char* op; /* "softmax"; "region" when only the body has a meaning */
  uint32_t n_inputs, n_outputs, n_attrs;
  uint32_t determinism; /* the least level that will do */
  const weft_type* const* inputs;
  const weft_type* const* outputs;
  const weft_attr* const* attrs; /* sorted by name */
  uint32_t precision;            /* the loosest mode that is allowed */
  uint32_t reserved;
  uint64_t accumulate; /* bit k: add to output k instead of overwriting it */
  uint64_t updates; /* bit k: output k is written over the input of the same type named by update_inputs[k] */
  const uint32_t* update_inputs; /* n_outputs values, UINT32_MAX where bit k of `updates` is off */
  const weft_region* region;     /* the body, for a composite op; null for a primitive */
} weft_call;

/* ---- kernels
 * -------------------------------------------------------------------------------------------------- */

struct weft_kernel;

/* How a kernel wants a constant operand: rearranged once, by its `pack`, instead of in each launch. The id
 * names the layout, its version and all its parameters, sizes and dtype among them: kernels of a device that
 * give one id to packings of one constant read the same bytes. */
typedef struct weft_packing {
  uint32_t size;
  uint32_t layout; /* of the operand that launches get; not 0 */
  const char* id;
  uint64_t bytes;
  uint64_t alignment; /* at most 64 */
} weft_packing;

/* What prepare decided. Immutable once made; `call` is the host's and lives as long as the plan. */
typedef struct weft_plan {
  uint32_t size;
  uint32_t determinism; /* what will be given */
  const struct weft_kernel* kernel;
  const weft_call* call;
  void* data;         /* the kernel's own; ended by weft_kernel.release */
  uint64_t workspace; /* bytes that each launch needs */
  uint32_t precision; /* what will be used */
  uint32_t reserved;
  /* since version 2: null, or one for each input: null where launches read it as it is. Only constants are
   * packed. They live as long as the plan. */
  const weft_packing* const* packings;
} weft_plan;

typedef struct weft_launch {
  uint32_t size;
  uint32_t reserved;
  const weft_plan* plan;
  weft_device device;
  weft_queue queue;
  const weft_tensor* const* inputs; /* plan->call->n_inputs of them, null where absent */
  const weft_tensor* const* outputs;
  const weft_tensor* workspace; /* u8[plan->workspace], or null */
} weft_launch;

/* One record answers both "can you?" (accepts) and "do it" (launch). The same code decides in both roles, so
 * no second list of supported ops can disagree. */
typedef struct weft_kernel {
  uint32_t size;
  uint32_t determinism; /* the best level it can give */
  const char* id;       /* "<provider>.<op>.<variant>", unique */
  const char* op; /* "softmax"; "region": asked about any call that carries a body; "*": about every call */
  const char* const*
      reads; /* the attributes it looks at; a call with another one off its default is refused */
  uint32_t n_reads;
  uint32_t flags;   /* WEFT_KERNEL_* */
  const void* self; /* the record's own */
  /* WEFT_OK: yes. WEFT_UNSUPPORTED: no, and error->text says why. Never looks at data. */
  weft_code (*accepts)(const struct weft_kernel*, weft_device, const weft_call*, weft_error*);
  weft_code (*prepare)(const struct weft_kernel*, weft_device, const weft_call*, weft_plan*,
                       weft_error*);                    /* optional */
  void (*release)(weft_plan*);                          /* optional */
  weft_code (*launch)(const weft_launch*, weft_error*); /* only enqueues */
  /* since version 2 */
  /* Of the kernels that one provider has for a call, those of a higher rank are asked first; those of one
   * rank in the order of the list. */
  int32_t rank;
  uint32_t reserved;
  /* What it runs beside its own file, such as the version of a library: measurements of another one are out
   * of date. Null: nothing. */
  const char* contents;
  /* since version 2: enqueues the packing of constant `input`, from row-major to the memory that launches of
   * all plans with that packing will read: a tensor of the same type, but for its layout. What `to` held
   * before is undefined; all bytes that launches read are written. Only kernels whose plans name packings
   * have it. */
  weft_code (*pack)(const weft_plan*, uint32_t input, const weft_tensor* from, const weft_tensor* to,
                    weft_queue, weft_error*);
} weft_kernel;

enum {
  WEFT_KERNEL_READS_ALL = 1,  /* takes every attribute into account (a kernel that runs the body does) */
  WEFT_KERNEL_RECORDABLE = 2, /* since version 2: a launch may run once, into a sequence, and what it enqueued
                                 be run again with other memory. So it does nothing else, and decides nothing
                                 by addresses but what the alignment says. */
  WEFT_KERNEL_JOINS = 4 /* since version 2: a launch may wait in its queue and run as a part of one behind
                           it, where memory allows: the host leaves small operands alone until then. */
};

/* ---- devices
 * -------------------------------------------------------------------------------------------------- */

enum { WEFT_QUEUE_INLINE = 0 /* a launch has run when it returns */, WEFT_QUEUE_ORDERED = 1 };

typedef struct weft_capability {
  uint32_t size;
  uint32_t available; /* 0: `reason` says why not */
  char kind[32];      /* "cpu", "cuda", "opencl": users write kind:ordinal */
  char label[128];    /* "AMD EPYC 9654", for people */
  char reason[256];
  uint32_t ordinal;
  uint32_t queue_kind;
  uint32_t host_memory;       /* 1: data is a host address that the host may read between launches */
  uint32_t units;             /* cores, multiprocessors */
  uint64_t dtypes;            /* bit (1 << DLPack-independent index of weft/dtype.h); none: it computes
                                 nothing, and no fallback goes there */
  uint64_t memory;            /* bytes; 0 = unknown */
  uint64_t max_buffer;        /* bytes */
  uint64_t max_binding;       /* bytes one kernel argument may span */
  uint32_t offset_alignment;  /* of a byte_offset that a kernel argument starts at */
  uint32_t read_write_buffer; /* 1: one buffer may be read and written by one dispatch */
  char dialect[32];           /* text that `compile` takes ("opencl_c"); empty: none */
  char numerics[96];          /* in words: "denormals kept, correctly rounded division" */
  /* since version 2 */
  uint32_t dlpack; /* DLDeviceType of its handles in DLPack; 0: kDLCPU with host_memory, kDLExtDev without */
  /* Of a device that takes text; 0 = unknown. */
  uint32_t subgroup;     /* items of a work group that run in step; 1: each item runs by itself */
  uint32_t group_items;  /* a work group may have */
  uint32_t shared_bytes; /* and its items share */
} weft_capability;

typedef struct weft_probe {
  uint32_t size;
  uint32_t n_devices; /* 0: nothing here; `reason` says why */
  char reason[256];
} weft_probe;

/* A copy of `bytes`, in the queue's order. A null handle means that side is host memory at host_source /
 * host_target (where the offset does not count). Host memory is the caller's again when the call returns: it
 * has been read, or written after all that was queued before. Between two handles, of
 * which one may be pinned memory, the copy runs when its turn comes, and the call returns at once. A failed
 * launch is still reported by synchronize, not by the copy. */
typedef struct weft_copy {
  uint32_t size;
  uint32_t reserved;
  void* source;
  uint64_t source_offset;
  void* target;
  uint64_t target_offset;
  const void* host_source;
  void* host_target;
  uint64_t bytes;
  /* since version 2: as weft_tensor.binding; only in a sequence, where no side is host memory */
  uint32_t source_binding, target_binding;
} weft_copy;

/* ---- sequences
 * -------------------------------------------------------------------------------------------------- */

/* A launch or a copy, one of the two. Queues are null; operands lie in fixed memory or in a binding. */
typedef struct weft_sequence_step {
  uint32_t size;
  uint32_t lane; /* a hint: steps that share a lane gain little from running beside each other */
  const weft_launch* launch;
  const weft_copy* copy;
  const uint32_t* after; /* the earlier steps that it waits for; nothing else orders the steps of a run */
  uint32_t n_after;
  uint32_t reserved;
} weft_sequence_step;

/* Steps that are taken at once, to be run often. Sizes are exact: those of the tensors. */
typedef struct weft_sequence_desc {
  uint32_t size;
  uint32_t n_steps;
  const weft_sequence_step* const* steps; /* each after those that it waits for */
  uint32_t n_bindings;
  uint32_t in_flight; /* at most so many runs are pending at one time; the host sees to that */
} weft_sequence_desc;

typedef struct weft_source {
  uint32_t size;
  uint32_t reserved;
  const char*
      text; /* may define many functions; they are asked for one after the other, with the same text */
  const char* entry; /* the function that is wanted */
} weft_source;

/* Runs a compiled function. Its parameters, in the order of the text: the buffers; one 64-bit int for
 * each of them (version 1: 32-bit), the element at which the tensor begins; the scalars. A backend binds a
 * buffer where its handle begins and passes byte_offset / element size, or binds at byte_offset (CUDA, Metal)
 * and passes 0. Offsets are multiples of the element size. A backend may run more items than `global`,
 * rounded up to its groups: the text skips those beyond scalar 0. A device to host copy of a tensor never
 * enters here. */
typedef struct weft_dispatch {
  uint32_t size;
  uint32_t n_buffers;
  weft_module module;
  const weft_tensor* const* buffers;
  const int32_t* scalars;
  uint32_t n_scalars;
  uint32_t reserved;
  uint64_t global[3];
  uint64_t local[3]; /* zeros: the backend chooses */
  const char* name;  /* for error texts: the kernel's id */
} weft_dispatch;

typedef struct weft_backend {
  uint32_t size;
  uint32_t abi;        /* the WEFT_ABI it was built against */
  const char* name;    /* "opencl" */
  const char* version; /* its own, in words */

  /* required; of a provider, only probe and kernels */
  weft_code (*probe)(weft_probe*, weft_error*);
  weft_code (*open_device)(uint32_t ordinal, weft_device*, weft_capability*, weft_error*);
  void (*close_device)(weft_device);
  weft_code (*allocate)(weft_device, uint64_t bytes, void** handle,
                        weft_error*); /* 64-byte aligned at least */
  /* The host waits first for what it enqueued on the buffer. */
  void (*free)(weft_device, void* handle);
  weft_code (*open_queue)(weft_device, weft_queue*, weft_error*);
  void (*close_queue)(weft_queue);
  weft_code (*copy)(weft_queue, const weft_copy*, weft_error*);
  weft_code (*synchronize)(weft_queue, weft_error*);
  weft_code (*kernels)(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error*);

  /* optional: null where absent */
  weft_code (*compile)(weft_device, const weft_source*, weft_module*, weft_error*);
  void (*release_module)(weft_module); /* close_device ends the modules that are left */
  weft_code (*dispatch)(weft_queue, const weft_dispatch*, weft_error*);

  /* ---- since version 2 */

  /* Points: all three or none; without them the host waits for whole queues. A point says how far a queue has
   * come: 0 is its beginning, and each mark gives a larger one. */

  /* *point: the end of all that is enqueued so far, which begins to run without being waited for. */
  weft_code (*mark)(weft_queue, uint64_t* point, weft_error*);
  /* What is enqueued from now on begins after `other`, a queue of the same device, has reached a point that
   * its mark gave. Returns at once; `other` may be closed after that. */
  weft_code (*wait)(weft_queue, weft_queue other, uint64_t point, weft_error*);
  /* Returns when the queue has reached the point, or after so many nanoseconds (UINT64_MAX: without limit);
   * *reached is how far it has come by then. From any thread, also while another one uses the queue. A point
   * behind a failed launch is reached too: synchronize reports the failure. */
  weft_code (*await)(weft_queue, uint64_t point, uint64_t nanoseconds, uint64_t* reached, weft_error*);

  /* Pinned host memory: the device copies from and to it without another buffer between. *handle is for
   * `free` and for one side of a `copy` (the other side is a buffer of the device); the host reads and writes
   * the bytes at *address, which is 64-byte aligned, while no copy of them is pending. */
  weft_code (*allocate_pinned)(weft_device, uint64_t bytes, void** handle, void** address, weft_error*);
  /* Bytes that could be allocated now; 0: unknown. */
  uint64_t (*memory_free)(weft_device);

  /* Imports. Makes a handle for `bytes` bytes of somebody else's, which begin at the tensor's data +
   * byte_offset; its `device` says where they are (kDLCPU: at a host address). Writes of one side are seen by
   * the other. `free` lets go of the handle, and leaves the bytes alone; the host tells their owner, after
   * the last use. WEFT_UNSUPPORTED: the device can't reach such memory. */
  weft_code (*import_memory)(weft_device, const DLTensor* tensor, uint64_t bytes, void** handle, weft_error*);
  /* A queue that enqueues on one of the vendor's, such as a cudaStream_t. close_queue lets go of it, and
   * leaves the vendor's open. */
  weft_code (*import_queue)(weft_device, void* native, weft_queue*, weft_error*);
  /* The vendor's object of this name, "opencl.context" or "cuda.stream", of a queue or (null) of the device.
   * It stays the backend's. WEFT_UNSUPPORTED: it has none of this name. */
  weft_code (*native)(weft_device, weft_queue, const char* name, void** object, weft_error*);

  /* Sequences: all three or none; without them the host launches each step of each run.
   * make_sequence copies the description; plans and fixed memory are the host's, and live as long as the
   * sequence. Every kernel in it is WEFT_KERNEL_RECORDABLE. WEFT_UNSUPPORTED: step *refused_step can't be
   * recorded (n_steps: none of them); the device is as before, and the host splits there. */
  weft_code (*make_sequence)(weft_device, const weft_sequence_desc*, weft_sequence*, uint32_t* refused_step,
                             weft_error*);
  /* Enqueues all steps once, as one piece of the queue's order. `handles` are the memory of the bindings, all
   * of them in each run, and may be others each time; one that is written overlaps no other, and nothing
   * fixed. One thread at a time, as for a queue. */
  weft_code (*run_sequence)(weft_sequence, weft_queue, void* const* handles, uint32_t n, weft_error*);
  /* No run of it is pending. */
  void (*free_sequence)(weft_sequence);

  /* Where the user names no backend, the available one of the highest rank is taken; 0: never. */
  uint32_t rank;
  uint32_t reserved;

  /* Providers: kernels for devices of other backends. A table with `serves` names the kind of device,
   * weft_capability.kind; of the required entries it has `probe` (n_devices > 0: what it needs is here) and
   * `kernels`, which is given a device that it serves, and none of the optional ones but these. Its kernels
   * see that device, its queues and its buffers, under the promises of its backend: on an ordered queue they
   * enqueue what they do through `table`, with dispatch or on the vendor's own queue, which `native` gives.
   */
  const char* serves;
  /* Before `kernels` is asked for this device; optional. `table`, device and capability are those of the
   * device's backend, and live until `detach`, which is called once for each attach that answered WEFT_OK. */
  weft_code (*attach)(const struct weft_backend* table, weft_device, const weft_capability*, weft_error*);
  void (*detach)(weft_device);

  /* What open_device says of a device, without opening it: for reports. Optional; without it, they open the
   * device and close it again. */
  weft_code (*describe)(uint32_t ordinal, weft_capability*, weft_error*);

  /* The device's own clock: both or none. stamp enqueues that the device notes the time when it comes to this
   * place of the queue. read_stamps waits for those that were enqueued since it was called last, writes for
   * each of them the nanoseconds since the first, in their order, and forgets them; n is their number. */
  weft_code (*stamp)(weft_queue, weft_error*);
  weft_code (*read_stamps)(weft_queue, uint64_t* nanoseconds, uint32_t n, weft_error*);
} weft_backend;

/* ---- the host
 * ------------------------------------------------------------------------------------------------- */

enum { WEFT_LOG_DEBUG = 0, WEFT_LOG_INFO = 1, WEFT_LOG_WARNING = 2, WEFT_LOG_ERROR = 3 };

/* What the host does for backends. Lives until the process ends. */
typedef struct weft_host {
  uint32_t size;
  uint32_t abi_min, abi_max; /* a backend outside this range answers WEFT_VERSION */
  uint32_t reserved;
  void (*log)(uint32_t level, const char* text);
  /* Calls body(begin, end) for pieces of [0, n) of at least `grain`, on the host's threads; returns when all
   * are done. May be called from any thread, a backend's own worker among them. */
  void (*parallel_for)(int64_t n, int64_t grain, void (*body)(void* context, int64_t begin, int64_t end),
                       void* context);
  /* The disk cache of costly artefacts. get returns the size and copies at most `capacity` bytes; 0 = not
   * there. */
  uint64_t (*cache_get)(const char* key, void* bytes, uint64_t capacity);
  void (*cache_put)(const char* key, const void* bytes, uint64_t n);
  /* The body of `call` as statements of `dialect`, for a kernel text with a hole; returns the length, 0 =
   * refused. */
  uint64_t (*render)(const weft_call* call, const char* dialect, char* text, uint64_t capacity, weft_error*);
} weft_host;

#if defined(_WIN32)
#define WEFT_EXPORT __declspec(dllexport)
#else
#define WEFT_EXPORT __attribute__((visibility("default")))
#endif

/* The one symbol of a plug-in, called once and before anything else. Looks at host->abi_min/max first;
 * answers WEFT_OK and its table (which lives until unload), or WEFT_VERSION and a text. A built-in backend
 * has the same function under the name weft_negotiate_<folder>. */
typedef weft_code (*weft_negotiate_fn)(const weft_host* host, const weft_backend** backend,
                                       weft_error* error);
#ifndef WEFT_NEGOTIATE
#define WEFT_NEGOTIATE weft_negotiate
#endif
WEFT_EXPORT weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error);

#ifdef __cplusplus
}
#endif
#endif /* WEFT_BACKEND_H */

/* Weft for programs in C: loads a program file, says what it takes and gives, and runs it. Link
 * Weft::weft_runtime, which holds no compiler and no definitions of ops.
 *
 * - A function that can fail returns one of the codes below; weft_error_text() then says why. Nothing throws,
 *   exits or calls back.
 * - A program may be used by any number of threads, a session by one at a time: a second one gets an error.
 * - Text that a function returns lives as long as the object that it was asked of.
 * - A file is checked for damage in full. It is not checked against the ops' definitions, which are not here:
 *   `weft verify` does that for a file from elsewhere.
 */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define WEFT_API __declspec(dllexport)
#else
#define WEFT_API __attribute__((visibility("default")))
#endif

/* The numbers are those of weft_code in backend.h. */
typedef enum weft_result {
  WEFT_SUCCESS = 0,
  WEFT_ERROR_INVALID_ARGUMENT = 1,
  WEFT_ERROR_UNSUPPORTED = 2,
  WEFT_ERROR_OUT_OF_MEMORY = 3,
  WEFT_ERROR_UNAVAILABLE = 4,
  WEFT_ERROR_CORRUPT = 5,
  WEFT_ERROR_IO = 6,
  WEFT_ERROR_VERSION = 7,
  WEFT_ERROR_DEVICE = 8,
  WEFT_ERROR_INTERNAL = 9
} weft_result;

/* As "0.1.0". */
WEFT_API const char* weft_version(void);

/* What the last function that failed on this thread said; "" before the first. Until the next failure. */
WEFT_API const char* weft_error_text(void);

/* ---- a program ---- */

typedef struct weft_program weft_program;

/* Maps the file: it may be deleted or replaced afterwards, not cut short. */
WEFT_API weft_result weft_program_load(const char* path, weft_program** program);
/* Copies the bytes. */
WEFT_API weft_result weft_program_load_bytes(const void* bytes, size_t size, weft_program** program);
/* Sessions of it stay usable. Null is nothing to free. */
WEFT_API void weft_program_free(weft_program* program);

WEFT_API const char* weft_program_name(const weft_program* program);
/* All of it as text, one call a line. */
WEFT_API const char* weft_program_text(const weft_program* program);

typedef enum weft_port_kind { WEFT_INPUT = 0, WEFT_OUTPUT = 1, WEFT_STATE = 2 } weft_port_kind;

typedef struct weft_port {
  const char* name;
  const char* dtype;   /* "f32", "i64", "bool" ... */
  const char* type;    /* "f32[batch, 64]" */
  size_t element_size; /* bytes */
  size_t rank;
  const int64_t* dims; /* -1 where a symbol decides */
} weft_port;

WEFT_API size_t weft_program_count(const weft_program* program, weft_port_kind kind);
WEFT_API weft_result weft_program_port(const weft_program* program, weft_port_kind kind, size_t index,
                                       weft_port* port);
/* A name in the shapes, and the sizes that it may have. */
typedef struct weft_symbol {
  const char* name;
  int64_t min, max;
} weft_symbol;
WEFT_API size_t weft_program_symbol_count(const weft_program* program);
WEFT_API weft_result weft_program_symbol(const weft_program* program, size_t index, weft_symbol* symbol);

/* ---- a session ---- */

typedef struct weft_session weft_session;

typedef enum weft_fallback {
  WEFT_FALLBACK_FORBID = 0,
  WEFT_FALLBACK_WARN = 1,
  WEFT_FALLBACK_ALLOW = 2
} weft_fallback;

typedef struct weft_options {
  size_t size;         /* sizeof(weft_options): newer ones are longer */
  const char* backend; /* a name, or a list as in "a,b"; null: the default */
  weft_fallback fallback;
  /* Both sessions work in its states of equal names, as a prefill and a decode program in one cache; null:
   * none. They count as one session for threads. It may be freed first. */
  const weft_session* states_of;
} weft_options;

/* Opens devices, makes states with their first values. `options` may be null. Sessions of one program, and of
 * programs with equal weights, share the weights' memory. */
WEFT_API weft_result weft_session_open(const weft_program* program, const weft_options* options,
                                       weft_session** session);
WEFT_API void weft_session_free(weft_session* session);
/* The device that it runs on. */
WEFT_API const char* weft_session_backend(const weft_session* session);

/* Row-major elements, which must stay until the run has returned. */
WEFT_API weft_result weft_session_bind_input(weft_session* session, size_t index, const int64_t* dims,
                                             size_t rank, const void* data, size_t bytes);
/* Where a run writes an output. Without it, or with null, the session has memory of its own. */
WEFT_API weft_result weft_session_bind_output(weft_session* session, size_t index, void* data, size_t bytes);
/* Runs once, and waits. Bindings stay; states go on from one run to the next. */
WEFT_API weft_result weft_session_run(weft_session* session);

typedef struct weft_array {
  const void* data; /* until the next run, or the session's end */
  size_t bytes;
  size_t rank;
  const int64_t* dims;
} weft_array;
/* An output of the last run. */
WEFT_API weft_result weft_session_output(weft_session* session, size_t index, weft_array* array);

/* The present value of a state, in memory of the caller; `bytes` is all of it. */
WEFT_API weft_result weft_session_read_state(weft_session* session, const char* name, void* data,
                                             size_t bytes);
WEFT_API weft_result weft_session_write_state(weft_session* session, const char* name, const void* data,
                                              size_t bytes);

#ifdef __cplusplus
}
#endif
#endif

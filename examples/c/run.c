/* Runs a program file once, on inputs that count up, and prints the first elements of what comes out.
 *
 *   run FILE [BACKEND]
 *
 * A symbol gets its smallest size. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/weft.h"

static int failed(const char* what, weft_result code) {
  fprintf(stderr, "%s: error %d: %s\n", what, (int)code, weft_error_text());
  return 1;
}

/* Small numbers for floats; zero for all else, which is a valid index. */
static void fill(void* data, const char* dtype, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double x = (double)(i % 17) / 8.0 - 1.0;
    if (!strcmp(dtype, "f32")) ((float*)data)[i] = (float)x;
    if (!strcmp(dtype, "f64")) ((double*)data)[i] = x;
  }
}

static void print_array(const weft_port* port, const weft_array* array) {
  printf("%s %s[", port->name, port->dtype);
  for (size_t d = 0; d < array->rank; ++d) printf("%s%lld", d ? ", " : "", (long long)array->dims[d]);
  printf("]");
  const size_t n = array->bytes / port->element_size;
  for (size_t i = 0; i < n && i < 4; ++i) {
    if (!strcmp(port->dtype, "f32")) printf(" %.6g", ((const float*)array->data)[i]);
    if (!strcmp(port->dtype, "f64")) printf(" %.6g", ((const double*)array->data)[i]);
    if (!strcmp(port->dtype, "i32")) printf(" %d", ((const int32_t*)array->data)[i]);
  }
  printf("\n");
}

/* The least value of the symbol that a dimension is, or the dimension. */
static int64_t size_of(const weft_program* program, int64_t dim) {
  weft_symbol symbol;
  if (dim >= 0) return dim;
  if (weft_program_symbol_count(program) != 1 || weft_program_symbol(program, 0, &symbol)) return 1;
  return symbol.min;
}

static int bind_inputs(const weft_program* program, weft_session* session, void** memory) {
  for (size_t i = 0; i < weft_program_count(program, WEFT_INPUT); ++i) {
    weft_port port;
    int64_t dims[16];
    size_t n = 1;
    weft_result code = weft_program_port(program, WEFT_INPUT, i, &port);
    if (code || port.rank > 16) return failed("input", code);
    for (size_t d = 0; d < port.rank; ++d) n *= (size_t)(dims[d] = size_of(program, port.dims[d]));
    memory[i] = calloc(n ? n : 1, port.element_size);
    if (!memory[i]) return failed("memory", WEFT_ERROR_OUT_OF_MEMORY);
    fill(memory[i], port.dtype, n);
    code = weft_session_bind_input(session, i, dims, port.rank, memory[i], n * port.element_size);
    if (code) return failed(port.name, code);
  }
  return 0;
}

static int print_outputs(const weft_program* program, weft_session* session) {
  for (size_t i = 0; i < weft_program_count(program, WEFT_OUTPUT); ++i) {
    weft_port port;
    weft_array array;
    weft_result code = weft_program_port(program, WEFT_OUTPUT, i, &port);
    if (!code) code = weft_session_output(session, i, &array);
    if (code) return failed("output", code);
    print_array(&port, &array);
  }
  return 0;
}

int main(int argc, char** argv) {
  weft_program* program = NULL;
  weft_session* session = NULL;
  void** memory = NULL;
  weft_options options = {sizeof(weft_options), NULL, WEFT_FALLBACK_FORBID};
  weft_result code;
  size_t n;
  int status;
  if (argc < 2) {
    fprintf(stderr, "run FILE [BACKEND]\n");
    return 2;
  }
  if (argc > 2) options.backend = argv[2];
  if ((code = weft_program_load(argv[1], &program))) return failed("load", code);
  if ((code = weft_session_open(program, &options, &session))) {
    weft_program_free(program);
    return failed("open", code);
  }
  n = weft_program_count(program, WEFT_INPUT);
  memory = calloc(n ? n : 1, sizeof *memory);
  printf("%s on %s\n", weft_program_name(program), weft_session_backend(session));
  status = memory ? bind_inputs(program, session, memory) : failed("memory", WEFT_ERROR_OUT_OF_MEMORY);
  if (!status && (code = weft_session_run(session))) status = failed("run", code);
  if (!status) status = print_outputs(program, session);
  for (size_t i = 0; memory && i < n; ++i) free(memory[i]);
  free(memory);
  weft_session_free(session);
  weft_program_free(program);
  return status;
}

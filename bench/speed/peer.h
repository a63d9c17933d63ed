#pragma once
#include <cstdint>

// A library that is measured beside Weft, behind a C interface of its own: built or opened where it is there,
// a reason where not. Operands are f32 in row-major order, and live as long as the task.
extern "C" {

struct PeerTensor {
  const void* data;  // f32, or i64 for targets
  const int64_t* shape;
  int rank;
  int is_index;  // 1: i64
};

// A task is one op on fixed operands. `numbers`: stride and padding of a convolution, whether attention is
// causal, the sizes of a model. A step of training changes its weights with each run; its result is the
// losses of the first steps.
struct PeerLibrary {
  const char* name;
  const char* version;
  // Null where the library has no such op, or not on these operands.
  void* (*make)(const char* op, const PeerTensor* operands, int n_operands, const double* numbers,
                int n_numbers);
  void (*run)(void* task);
  // The first result of the last run: elements, and how many.
  const float* (*result)(void* task, int64_t* n);
  void (*release)(void* task);
  void (*threads)(int n);
  // Bytes that one more run has at once beyond what was there before it. Null where it can't be said.
  double (*peak_bytes)(void* task);
};

// The one symbol of a peer that is built as a module.
typedef const PeerLibrary* (*PeerEntry)();
}

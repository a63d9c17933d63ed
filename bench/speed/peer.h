#pragma once
#include <cstdint>

// A library to compare with, behind a C interface: built or opened if present, else a reason. Operands are
// f32 in row-major order, and live as long as the task.
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
  // Null if the library has no such op, or not for these operands.
  void* (*make)(const char* op, const PeerTensor* operands, int n_operands, const double* numbers,
                int n_numbers);
  void (*run)(void* task);
  // The first result of the last run: elements and their number.
  const float* (*result)(void* task, int64_t* n);
  void (*release)(void* task);
  void (*threads)(int n);
  // The peak of additional bytes during one more run. Null if unknown.
  double (*peak_bytes)(void* task);
};

// The only symbol of a peer module.
typedef const PeerLibrary* (*PeerEntry)();
}

#pragma once
#include <vector>

#include "backends/native/steps.h"
#include "weft/backend.hpp"

// The tile interpreter: an elementwise op, or a region of them, as a short program over tiles of f32 that
// stay in L1. Operands broadcast to the shape of the results; memory is read once and written once.
namespace weft::native {

inline constexpr int64_t kTile = 1024;

/// One step over a tile. Operands and result are value numbers.
struct Instruction {
  /// A cheap step on the result of the one before, done in the same pass.
  struct Linked {
    Link::Op op;
    bool swapped;
    uint16_t other;
  };
  static constexpr size_t kMostLinks = 8;

  Step run = nullptr;  ///< null: `links`, or round to `rounded` and back
  Stored rounded = Stored::f32;
  int operands = 0;
  uint16_t from[3] = {};
  uint16_t to = 0;
  std::vector<Linked> links;  ///< from[0] goes through all of them
};

/// A compiled call. Values are numbered: inputs, then constants, then the results of instructions.
struct TileProgram {
  std::vector<Stored> inputs;    ///< how each lies in memory
  std::vector<float> constants;  ///< values after the inputs
  std::vector<Instruction> instructions;
  std::vector<uint16_t> outputs;  ///< the value that each output is
  std::vector<Stored> stored;     ///< how each output lies in memory
  std::vector<uint16_t> place;    ///< value -> its tile in the work memory; kNoPlace for inputs and constants
  int places = 0;

  static constexpr uint16_t kNoPlace = 0xffff;
};

/// The program of a call, or the reason why there is none.
backend::Support compile(const backend::OpCall& call, TileProgram* to);

/// Runs it on the operands of a launch, on the host's threads.
void run(const TileProgram& program, const backend::Launch& launch);

/// A kernel record for each step, as an op of its own, and one for regions.
std::vector<backend::KernelRecord> tile_records();

}  // namespace weft::native

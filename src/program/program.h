#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/attr.h"

// The program in memory: what the compiler writes, the file holds, the linker reads. It names ops, never
// kernels, devices or offsets. Order of `calls` is the order of execution: a value that a later call
// updates in place is read before that call. See docs/design.md section 8.
namespace weft::program {

using ValueId = int32_t;
inline constexpr ValueId kAbsent = -1;           // an absent operand
inline constexpr size_t kMostResults = 64;       // of a call: updates are a mask of 64 bits
inline constexpr uint32_t kMostNested = 8;       // levels of nested bodies
inline constexpr uint64_t kMostSteps = 1 << 20;  // of a body, nested ones included

/// The type of one value. Layout 0 is row-major.
struct TensorSpec {
  TensorType type;
  uint32_t layout = 0;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// Output `output` of a call overwrites its input `input`: the same buffer, a new value.
struct Update {
  uint32_t output = 0, input = 0;
  friend bool operator==(const Update&, const Update&) = default;
};

/// One call, in order. `region` is the index of its body in CompiledProgram::regions, or -1 for a primitive
/// op.
struct KernelCall {
  std::string op;
  uint32_t version = 1;
  std::vector<Attr> attrs;            // sorted by name, every one present
  std::vector<std::string> defaults;  // names of attrs whose value is the op's default, sorted
  std::vector<ValueId> inputs;        // kAbsent for an operand left out
  std::vector<ValueId> outputs;       // all outputs, also unused ones
  std::vector<Update> updates;
  int32_t region = -1;
  std::string where;  // node name, as "block3.attn.softmax"
  std::string from;   // lines of the user's program, as "model.py:12", for errors; not in the file
  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

/// The meaning of a composite call. Values are numbered: the inputs first, then each call's outputs. Its
/// calls are primitive, or composite with one of the regions before it as their own body. Stored once per
/// signature (pattern, attributes, operand types).
struct Region {
  std::string pattern;  // name of the op or fusion that this body implements; may be empty
  uint32_t n_inputs = 0;
  std::vector<TensorSpec> values;
  std::vector<KernelCall> calls;
  std::vector<ValueId> outputs;
  friend bool operator==(const Region&, const Region&) = default;
};

struct Port {
  std::string name;
  ValueId value = kAbsent;
  friend bool operator==(const Port&, const Port&) = default;
};

/// A mutable buffer that outlives a run: a trained parameter, moment, random state or KV cache.
struct StateSpec {
  std::string name;
  ValueId before = kAbsent;  // its value at the start of a run
  ValueId after = kAbsent;   // and at the end, in the same buffer
  int32_t blob = -1;         // its initial value
  friend bool operator==(const StateSpec&, const StateSpec&) = default;
};

/// A constant: value `value` has the bytes of blob `blob`.
struct WeightSpec {
  std::string name;
  ValueId value = kAbsent;
  int32_t blob = -1;
  friend bool operator==(const WeightSpec&, const WeightSpec&) = default;
};

/// Bytes of a weight or state. Owned here, or pointing into a mapped file that `owner` keeps alive.
struct Blob {
  const std::byte* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> owner;

  /// Aligned to 64 bytes.
  static Blob copy_of(const void* bytes, uint64_t n);
};

/// A tensor of a test: row-major, without symbols.
struct TestTensor {
  std::string name;  // of the port or state
  TensorType type;
  Blob bytes;
};

/// What a run on these inputs, from the states' first values, must give.
struct TestVector {
  std::vector<TestTensor> inputs;  // in the order of the program's
  std::vector<TestTensor> wanted;  // its outputs, then the final states
  std::vector<Blob> allowed;       // of each: how far off an element may be, in f32; empty: not at all
};

/// What a device compiled for a program, so that others of its kind need not: a program runs without it.
struct DeviceCode {
  std::string device;                                   // in words
  std::string capability;                               // of what it is good for: seam::capability_hash
  std::vector<std::pair<std::string, Blob>> artefacts;  // by the backend's keys, sorted
};

/// A section of a file that the reader passed over.
struct SkippedSection {
  std::string name;
  uint64_t size = 0;
  std::string why;
};

struct CompiledProgram {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<TensorSpec> values;
  std::vector<KernelCall> calls;
  std::vector<Region> regions;
  std::vector<Port> inputs, outputs;
  std::vector<StateSpec> states;
  std::vector<WeightSpec> weights;
  std::vector<Blob> blobs;
  std::vector<std::pair<std::string, std::string>> origin;  // "compiler" = "weft 0.1", and so on
  std::vector<TestVector> tests;
  std::vector<DeviceCode> device_code;
  // Of the file that it came from; not written again.
  std::vector<SkippedSection> skipped;
  std::string weights_file;  // the name of the file beside it that has its blobs
};

/// Checks everything that a reader relies on: indices in range, values defined once and before use, regions
/// that nest only earlier ones and not too deep, updates of equal types, no read of a value after it was
/// overwritten, blobs of the right size, tests of the ports' types. An input that a region's body overwrites
/// is listed in the `updates` of every call of that region. An error names the call and the value.
Status verify(const CompiledProgram& program);

/// The program as text, one call a line; regions below.
std::string print(const CompiledProgram& program);

/// The container file (docs/design.md section 8): header, section table with a hash each, sections. Same
/// program, same bytes. `serialize` does not verify; `write_file` does, and keeps the old file when anything
/// fails (base/output_file.h). With a name in `weights`, the bytes of weights and states go to a file of that
/// name in the folder of `path`, and the program holds their hashes.
std::string serialize(const CompiledProgram& program);
Status write_file(const CompiledProgram& program, const std::string& path, const std::string& weights = "");

/// The bytes of the file of weights beside a program; it is given its name, without a folder.
using OpenWeights = std::function<Result<Blob>(const std::string& name)>;

/// Both check every hash and verify(); an error names the section. Blobs point into `bytes`' owner or the
/// mapped file. Bytes that are not aligned to 64 are copied first. A mapped file may be deleted or replaced,
/// not cut short. `read_file` looks for a file of weights in the folder of `path`.
Result<CompiledProgram> deserialize(Blob bytes, const OpenWeights& weights = {});
Result<CompiledProgram> read_file(const std::string& path);

}  // namespace weft::program

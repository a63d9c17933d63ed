#pragma once
#include <array>
#include <optional>

#include "lab/kernels/accuracy.h"
#include "lab/kernels/contender.h"
#include "lab/kernels/slices.h"

// A contender and the data of the call that it computes, which the lab keeps, changes and checks.
namespace weft::lab {

/// Operands of a call as bytes, and the types of its results.
struct Data {
  std::vector<HostTensor> inputs;
  std::vector<seam::ConcreteType> outputs;
  uint64_t absent = 0;     ///< bit i: operand i is not given
  uint64_t constants = 0;  ///< bit i: operand i never changes, since the kernel may have packed it
  std::vector<int64_t>
      update_of;  ///< by result: the operand that it updates in place; -1: it has memory of its own
};
/// Numbers that `seed` draws. Errors: those of the op's shape rule.
Result<Data> draw_data(const Operation& operation, uint64_t seed);
Result<Data> data_of(const conformance::Ask& ask);
/// The same numbers, those of each operand moved on by some elements that `seed` draws, the last to the
/// front.
Data rotated(Data data, uint64_t seed);

/// What an element of a result is before a kernel writes it: of floats of 16 bits and more a NaN with bits
/// that `seed` draws, of wider integers any number, of bytes one of two. What a kernel computes is hardly the
/// same.
std::array<std::byte, 8> spoilt_pattern(DType dtype, uint64_t seed);

/// Bytes of shared memory that a contender needs for the data, and for the edits of a turn.
uint64_t room_for(const Data& data);

/// A turn of launches, as the lab asks for it.
struct TurnOptions {
  uint64_t launches = 1;
  bool cold = false;
  uint64_t edits_each = 1;  ///< before each launch
  bool apart = false;       ///< each launch is counted alone, without its edits
};

class Seat {
 public:
  explicit Seat(std::unique_ptr<Contender> contender) : contender_(std::move(contender)) {}

  Contender& contender() { return *contender_; }
  const Data& data() const { return data_; }
  /// Whether the call updates an operand. The launches of a turn then go on from one another's results, so
  /// only a turn of one launch can be judged.
  bool in_place() const;

  /// Gives the contender these operands at places that `seed` draws, and spoils the results.
  Status put(Data data, uint64_t seed);
  /// Launches with edits before each of them, which `seed` draws. Operands that the call updates begin as
  /// they were put. The process keeps an element of the results of each launch, for `keep_turn`; of an op
  /// that updates an operand none.
  Result<Contender::Turn> turn(const Operation& operation, const TurnOptions& options, uint64_t seed);
  /// Launches once, on the operands as they were put or edited last.
  Status once();
  /// Whether nothing but the results has changed. Errors: corrupt.
  Status check_memory() const;
  /// The results as they are now.
  std::vector<conformance::Array> results() const;
  /// Keeps what `judge_kept` judges of the last turn: the element that the process has kept of each of a few
  /// launches, which `seed` draws and the process does not know, and some rows of its last result, if the
  /// oracle has about as much time; of a dear operation now and then. Of an op that updates an operand
  /// nothing. Errors: device where the process has kept something else.
  Status keep_turn(const Operation& operation, double oracle_seconds, uint64_t seed);
  /// Judges what was kept of turns, which costs time that turns are better without: they follow one another
  /// closely, and this process is awake when the other one answers.
  Status judge_kept(const Operation& operation, Accuracy& accuracy);
  /// Judges a few rows of the results, those of the last edit among them, and looks through all of them for
  /// what was spoiled and not written since.
  Status judge(const Operation& operation, double oracle_seconds, uint64_t seed, Accuracy& accuracy) const;
  /// Spoils the results in two ways, and launches after each: an element that is what it was spoilt to both
  /// times was not written, whatever number that is. Empty, or which element it is.
  Result<std::string> check_written();

 private:
  // An edit of the last turn, so that operands can become again what they were.
  struct Made {
    size_t operand = 0;
    uint64_t at = 0;  // bytes into the operand
    std::array<std::byte, sizeof(Edit::value)> before{}, after{};
    size_t bytes = 0;
  };
  // A launch in the midst of a turn: the rows that an element of its results comes from, and the element.
  struct Sample {
    uint64_t launch = 0;
    size_t result = 0;
    size_t element = 0;       // of the slice's result
    std::vector<int64_t> at;  // of the result
    std::vector<conformance::Array> inputs;
    conformance::Array got;
  };
  // Rows of a result, and of the operands that they depend on.
  struct Kept {
    Slice slice;
    std::vector<conformance::Array> inputs, got;
  };

  Kept rows_now(const Operation& operation, double oracle_seconds, uint64_t seed) const;
  std::span<std::byte> operand(size_t i) const {
    return contender_->memory().subspan(places_.at[i], data_.inputs[i].bytes.size());
  }
  std::span<std::byte> output(size_t k) const {
    if (data_.update_of[k] >= 0) return operand(static_cast<size_t>(data_.update_of[k]));
    return contender_->memory().subspan(places_.at[data_.inputs.size() + k], data_.outputs[k].bytes());
  }
  bool updates(size_t operand) const;
  void restore();
  void spoil(uint64_t seed);
  Edit draw_edit(uint64_t seed);
  void draw_sample(const Operation& operation, Edit& edit, uint64_t seed) const;
  void rewind(size_t edits, size_t now);
  std::vector<uint64_t> draw_judged(const Operation& operation, double oracle_seconds, uint64_t seed) const;
  Result<std::optional<Sample>> sample_of(const Operation& operation, uint64_t launch, uint64_t seed) const;
  Status keep_samples(const Operation& operation, double oracle_seconds, uint64_t seed);
  void add_last_edit(const Operation& operation, Slice& slice) const;
  std::vector<conformance::Array> sliced(const Operation& operation, const Slice& slice) const;
  WorstElement with_operands(const Operation& operation, const Slice& slice, size_t result, size_t element,
                             WorstElement worst) const;
  std::string left_spoilt() const;
  Edit* edits() const;

  std::unique_ptr<Contender> contender_;
  Data data_;
  Places places_;
  uint64_t seed_ = 0, spoilt_by_ = 0, edits_at_ = 0;
  size_t edited_ = 0;       // operand of the last edit
  uint64_t edited_at_ = 0;  // element of it
  uint64_t launches_ = 0;   // of the last turn
  std::vector<Made> made_;  // in the last turn, by edit
  std::vector<Sample> kept_samples_;
  std::vector<Kept> kept_;
  std::string unwritten_;  // element of the last result of a turn
};

}  // namespace weft::lab

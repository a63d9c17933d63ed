#pragma once
#include "lab/kernels/accuracy.h"
#include "lab/kernels/contender.h"
#include "lab/kernels/slices.h"

// A contender and the data of the call that it computes, which the lab keeps, changes and checks.
namespace weft::lab {

/// Operands of a call as bytes, and the types of its results.
struct Data {
  std::vector<HostTensor> inputs;
  std::vector<seam::ConcreteType> outputs;
  uint64_t absent = 0;  ///< bit i: operand i is not given
};
/// Numbers that `seed` draws. Errors: unsupported for an op that updates an operand in place.
Result<Data> draw_data(const Operation& operation, uint64_t seed);
Result<Data> data_of(const conformance::Ask& ask);

/// Bytes of shared memory that a contender needs for the data, and for the edits of a turn.
uint64_t room_for(const Data& data);

class Seat {
 public:
  explicit Seat(std::unique_ptr<Contender> contender) : contender_(std::move(contender)) {}

  Contender& contender() { return *contender_; }

  /// Gives the contender these operands at places that `seed` draws, and spoils the results.
  Status put(Data data, uint64_t seed);
  /// Launches with an edit before each of them, which `seed` draws.
  Result<Contender::Turn> turn(uint64_t launches, bool cold, uint64_t seed);
  /// Launches once, on the operands as they are.
  Status once();
  /// Whether nothing but the results has changed. Errors: corrupt.
  Status check_memory() const;
  /// The results as they are now.
  std::vector<conformance::Array> results() const;
  /// Judges a few rows of the results, those of the last edit among them, and looks through all of them for
  /// what was spoiled and not written since.
  Status judge(const Operation& operation, double oracle_seconds, uint64_t seed, Accuracy& accuracy) const;

 private:
  std::span<std::byte> output(size_t k) const {
    return contender_->memory().subspan(places_.at[data_.inputs.size() + k], data_.outputs[k].bytes());
  }
  Edit draw_edit(uint64_t seed);
  void add_last_edit(const Operation& operation, Slice& slice) const;
  std::string left_spoilt() const;

  std::unique_ptr<Contender> contender_;
  Data data_;
  Places places_;
  uint64_t seed_ = 0, edits_at_ = 0;
  size_t edited_ = 0;       // operand of the last edit
  uint64_t edited_at_ = 0;  // element of it
};

}  // namespace weft::lab

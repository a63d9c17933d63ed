#pragma once
#include "ir/builder.h"

// Sequences of different lengths in one axis of tokens: `offsets` [batch + 1] are their beginnings
// (cu_seqlens elsewhere), `length` [batch] the number of earlier tokens of each.
namespace weft::ir {

/// Checks length and offsets for a cache of `batch` sequences.
Status check_ragged(const char* op, Dim batch, const TensorType& length, const TensorType& offsets);

/// The decomposition of one call. Token t belongs to the last sequence with an offset of at most t; tokens
/// before the first offset, or from the last one, belong to none.
class Ragged {
 public:
  Ragged(Builder& b, Dim tokens, Dim batch, Dim capacity, Value length, Value offsets);

  Value length() const { return length_; }      ///< i32 [batch], in 0..capacity
  Value offsets() const { return offsets_; }    ///< i32 [batch + 1], in 0..tokens
  Value first() const { return first_; }        ///< offsets without the last one
  Value is_in_one() const { return in_one_; }   ///< bool [tokens]: belongs to a sequence
  Value sequence() const { return sequence_; }  ///< i32 [tokens], in 0..batch - 1; any where there is none
  Value position() const { return position_; }  ///< i32 [tokens]: in its sequence; any where there is none

 private:
  Value length_, offsets_, first_, in_one_, sequence_, position_;
};

}  // namespace weft::ir

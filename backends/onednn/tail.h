#pragma once
#include <optional>
#include <vector>

#include "weft/backend.hpp"

// Bodies of calls that are a convolution with channels last, and what follows it.
namespace weft::onednn {

/// relu(y + rows + whole), or without relu, by the positions of the call's inputs.
struct Tail {
  std::vector<int64_t> rows;   ///< one number for each channel
  std::vector<int64_t> whole;  ///< a tensor as large as y
  bool relu = false;
};
struct ConvBody {
  int64_t x = 0, filters = 0;       ///< inputs of the call
  const weft_call* conv = nullptr;  ///< the step, whose attributes count
  std::vector<int64_t> y;           ///< its result, channels last
  Tail tail;
};

/// What a body of f32 computes, or why it is no such convolution.
std::optional<ConvBody> conv_body(const backend::OpCall& call, std::string& why);

/// Applies it to `count` places of y from `first` on, each of `channels` numbers.
void finish(const Tail& tail, const backend::Launch& l, int64_t first, int64_t count, int64_t channels);

}  // namespace weft::onednn

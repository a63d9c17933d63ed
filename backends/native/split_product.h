#pragma once
#include "backends/native/packing.h"
#include "backends/native/split.h"

// Products whose b is a constant, split once.
namespace weft::native {

/// The layout of what pack_split() makes; 1 is that of pack_whole_b().
inline constexpr uint32_t kSplitLayout = 2;

/// Whether b of p, which is input 1 of the call, is to be split for products of `rows` rows: only in programs
/// of one size, since products of few rows want another packing, and there is to be one copy.
bool worth_splitting(const backend::OpCall& c, const Product<float>& p, int64_t rows);

/// Has the plan want input `input` of its call split.
void want_split(weft_plan& plan, size_t input, const Product<float>& p);
void pack_split(const backend::Host& host, const Product<float>& p, uint8_t* to);

/// c (+)= a b on all threads, where p.b points to what pack_split() made. a has rows without gaps.
void multiply_split(const backend::Host& host, const Product<float>& p);

}  // namespace weft::native

#pragma once
#include "backends/native/convolution.h"
#include "backends/native/split_product.h"

// Convolutions whose filters are constants, split once: products as in conv.strips.cpp, by split numbers.
namespace weft::native {

/// Whether the filters of a call, whose part of the geometry is g, are to be split.
bool worth_splitting(const backend::OpCall& c, const Geometry& g);
void want_split(weft_plan& plan, const Geometry& g);
void pack_split(const backend::Host& host, const Geometry& g, const float* filters, uint8_t* to);

/// The whole call, whose filters pack_split() made.
void convolve_split(const backend::Launch& l, const Geometry& g);

}  // namespace weft::native

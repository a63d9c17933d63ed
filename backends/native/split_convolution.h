#pragma once
#include "backends/native/convolution_call.h"
#include "backends/native/split_product.h"

// Convolutions whose filters are constants, split once: products as in conv.strips.cpp, by split numbers.
namespace weft::native {

/// Whether the filters of a call are to be split; g is their part of the geometry.
bool worth_splitting(const backend::OpCall& c, const shared::ConvBody& body, const Geometry& g);
Packing split_packing(const Geometry& g);
void pack_split(const backend::Host& host, const Geometry& g, const float* filters, uint8_t* to);

/// The whole convolution, whose filters pack_split() made.
void convolve_split(const backend::Host& host, const Convolution& c);

}  // namespace weft::native

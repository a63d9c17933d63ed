#pragma once
#include <optional>

#include "backends/native/convolution.h"
#include "backends/native/packing.h"
#include "backends/native/tail.h"
#include "weft/shared/conv_body.hpp"

// A convolution as a kernel is given it: conv, as a call of its own or as the body of a call with the sum and
// relu that follow.
namespace weft::native {

/// What the call is, or why it is no convolution that the kernels here take.
std::optional<shared::ConvBody> convolution_body(const backend::OpCall& c, std::string& why);
/// The filters' part of the geometry.
Geometry filters(const backend::OpCall& c, const shared::ConvBody& body);

/// Keeps in a plan what its launches need; the filters are wanted as `packing` says, if it does.
void keep(weft_plan& plan, shared::ConvBody body, std::optional<Packing> packing);
void release_convolution(weft_plan* plan);
/// The filters that are to be packed, of all groups.
Geometry filters_to_pack(const weft_plan& plan, backend::TensorView filters);

/// A convolution that is launched.
struct Convolution {
  Geometry g;
  const float* x;
  backend::TensorView filters;
  float* y;
  Tail tail;

  const float* x_of(int64_t group) const {
    return x + group * g.group_channels() * g.rows.size * g.columns.size;
  }
  float* y_of(int64_t group) const { return y + offset_of(group); }
  Tail tail_of(int64_t group) const { return tail.at(group * g.group_filters(), offset_of(group)); }

 private:
  int64_t offset_of(int64_t group) const { return group * g.group_filters() * g.places(); }
};
/// Runs the launch by `run`, which is given convolutions that have results, and windows with elements.
backend::Outcome launch_convolution(const backend::Launch& l,
                                    void (*run)(const backend::Host&, const Convolution&));

/// Applies a tail to sums that are stored: `columns` places of each of `rows` filters.
void finish(const Tail& tail, int64_t rows, int64_t columns, float* c, int64_t c_row);

// The kernels' functions, for calls of either form.

/// conv.windows.cpp
backend::Support accepts_windows(const backend::OpCall& c);
backend::Outcome prepare_windows(const backend::OpCall& c, weft_plan& plan);
backend::Outcome pack_windows(const weft_plan& plan, int64_t input, backend::TensorView from,
                              backend::TensorView to, const backend::Host& host);
backend::Outcome launch_windows(const backend::Launch& l);

/// conv.strips.cpp
backend::Support accepts_strips(const backend::OpCall& c);
backend::Outcome prepare_strips(const backend::OpCall& c, weft_plan& plan);
backend::Outcome pack_strips(const weft_plan& plan, int64_t input, backend::TensorView from,
                             backend::TensorView to, const backend::Host& host);
backend::Outcome launch_strips(const backend::Launch& l);

}  // namespace weft::native

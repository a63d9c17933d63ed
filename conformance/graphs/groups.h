#pragma once
#include <string_view>

#include "conformance/graphs/run.h"

// Small graphs whose calls the compiler makes one, for the kernels of such groups: no op is named like them,
// so they have no cases.
namespace weft::conformance {

/// Of a product of [rows, terms] by [terms, columns], or of rows of a norm, which have `columns` elements.
struct GroupSize {
  int64_t rows, terms, columns;
};

/// Is there a graph here that becomes a call of this name?
bool has_group(std::string_view group);
/// It, with its inputs. If `judged`, also the right results with their derived bounds, which cost far more.
/// A Status of code unsupported where has_group says no, or an op takes no such dtype.
Result<GraphCase> group_case(std::string_view group, DType dtype, const GroupSize& size, bool judged);

/// Whether this kernel takes the group where the graph is compiled for the device. Launches nothing.
Result<bool> group_reaches(const GraphCase& c, seam::Device& device, const weft_kernel& kernel);
/// Compiles and runs a judged graph, its group by this kernel.
GraphVerdict run_group_case(const GraphCase& c, const std::string& backend, const weft_kernel& kernel);

}  // namespace weft::conformance

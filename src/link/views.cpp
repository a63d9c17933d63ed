#include <algorithm>

#include "link/share.h"

namespace weft::link {
namespace {

int64_t attr(const seam::CallDesc& call, std::string_view name, int64_t otherwise) {
  for (const Attr& a : call.attrs) {
    if (a.name != name) continue;
    if (const auto* number = std::get_if<int64_t>(&a.value)) return *number;
    if (const auto* dims = std::get_if<Shape>(&a.value); dims && dims->size() == 1) return (*dims)[0].value();
  }
  return otherwise;
}

// Whether a permute moves only axes of size 1.
bool keeps_order(const seam::CallDesc& permute) {
  const IntList& x = permute.inputs[0]->shape;
  Shape axes;
  for (const Attr& a : permute.attrs)
    if (const auto* dims = std::get_if<Shape>(&a.value); dims && a.name == "axes") axes = *dims;
  int64_t last = -1;
  for (size_t d = 0; d < x.size(); ++d) {
    const int64_t from = axes.empty() ? static_cast<int64_t>(x.size() - 1 - d) : axes[d].value();
    if (x[static_cast<size_t>(from)] == 1) continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

// The call's axis, if all axes before it have size 1, so that parts along it are contiguous.
std::optional<size_t> outermost_axis(const seam::CallDesc& call, const IntList& shape) {
  int64_t axis = attr(call, "axis", 0);
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) return {};
  for (int64_t d = 0; d < axis; ++d)
    if (shape[static_cast<size_t>(d)] != 1) return {};
  return static_cast<size_t>(axis);
}

std::optional<uint64_t> slice_offset(const seam::CallDesc& slice) {
  const auto& x = *slice.inputs[0];
  const auto axis = outermost_axis(slice, x.shape);
  const int64_t size = axis ? x.shape[*axis] : 0;
  if (size == 0 || attr(slice, "step", 1) != 1) return {};
  int64_t start = attr(slice, "start", 0);
  start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
  return x.bytes() / static_cast<uint64_t>(size) * static_cast<uint64_t>(start);
}

bool is_aligned(uint64_t offset, Devices devices) {
  return std::ranges::all_of(devices, [&](const auto* d) { return offset % alignment_of(*d) == 0; });
}

// Places operands of concats in the memory of the result.
class Pieces {
 public:
  Pieces(const program::CompiledProgram& program, FlatProgram& flat, Devices devices)
      : flat_(flat), devices_(devices), flow_(program, flat) {}

  bool join(const FlatCall& call) {
    if (!call.prepared || call.prepared->call->desc().op != "concat") return false;
    const FlatValue& whole = value(call.outputs[0]);
    if (whole.over >= 0 || whole.overwritten ||
        !outermost_axis(call.prepared->call->desc(), whole.type.shape))
      return false;
    std::vector<uint64_t> offsets;
    uint64_t at = 0;
    for (const int32_t in : call.inputs) {
      if (in < 0) continue;
      if (!may_lie_in_another(in, call) || !is_aligned(at, devices_)) return false;
      offsets.push_back(at);
      at += value(in).type.bytes();
    }
    size_t n = 0;
    for (const int32_t in : call.inputs)
      if (in >= 0) value(in).view_of = call.outputs[0], value(in).view_offset = offsets[n++];
    return true;
  }

 private:
  FlatValue& value(int32_t id) { return flat_.values[static_cast<size_t>(id)]; }
  // Only a value made by a kernel and read only here: no view, no output, no repeated operand.
  bool may_lie_in_another(int32_t in, const FlatCall& call) {
    return value(in).view_of < 0 && flow_.is_own(in) && flow_.of(in).last != Flow::kEnd &&
           flat_.calls[static_cast<size_t>(flow_.of(in).maker)].prepared &&
           std::ranges::count(call.inputs, in) == 1;
  }

  FlatProgram& flat_;
  const Devices devices_;
  const Flow flow_;
};

}  // namespace

std::optional<uint64_t> view_offset(const seam::CallDesc& call, Devices devices) {
  if (call.op == "reshape" || (call.op == "permute" && keeps_order(call))) return 0;
  if (call.op == "broadcast" && *call.inputs[0] == call.outputs[0]) return 0;
  if (call.op != "slice") return {};
  const auto offset = slice_offset(call);
  return offset && is_aligned(*offset, devices) ? offset : std::nullopt;
}

void join_pieces(const program::CompiledProgram& program, FlatProgram& flat, Devices devices) {
  if (!std::ranges::all_of(devices, [&](const auto* d) { return d->shares_memory(*devices[0]); })) return;
  Pieces pieces(program, flat, devices);
  std::erase_if(flat.calls, [&](const FlatCall& call) { return pieces.join(call); });
}

}  // namespace weft::link

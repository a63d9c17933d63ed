#include "weft/lists.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/convert.h"
#include "python/src/module.h"
#include "weft/einsum.h"
#include "weft/ops.h"

// Ops over lists of tensors: weft/lists.h and weft/einsum.h.
namespace weft::python {
namespace {

using namespace nb::literals;

std::vector<Tensor> tensors_of(nb::handle list, const char* where) {
  std::vector<Tensor> all;
  if (is_tensor(list.ptr())) return {tensor_in(list.ptr())};
  for (const nb::handle o : nb::borrow<nb::iterable>(list)) {
    if (!is_tensor(o.ptr()))
      raise_type_error(fmt::format("{} wants tensors, got {}", where, Py_TYPE(o.ptr())->tp_name));
    all.push_back(tensor_in(o.ptr()));
  }
  return all;
}

template <class F>
nb::object unlocked(F f) {
  Tensor t;
  {
    const Unlocked unlocked;
    t = f();
  }
  return nb::steal(to_object(std::move(t)));
}

nb::object stacked(nb::handle list, int64_t axis) {
  auto parts = tensors_of(list, "stack()");
  if (parts.empty()) throw Error(invalid("stack: the list is empty"));
  return unlocked([&] {
    const int64_t rank = parts[0].rank() + 1, at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank) throw Error(invalid("stack: axis {} must be in [-{}, {})", axis, rank, rank));
    const TensorType first = parts[0].type();
    for (Tensor& t : parts) {
      if (!(t.type() == first))
        throw Error(invalid("stack: {} beside {}; all must be alike", text(t.type()), text(first)));
      Shape shape = t.shape(), with;
      for (size_t d = 0; d <= shape.size(); ++d) {
        if (static_cast<int64_t>(d) == at) with.push_back(1);
        if (d < shape.size()) with.push_back(shape[d]);
      }
      t = reshape(t, with);
    }
    return concat(parts, at);
  });
}

nb::object einsum_of(const std::string& equation, const nb::args& operands) {
  const bool listed = operands.size() == 1 && !is_tensor(nb::handle(operands[0]).ptr());
  const auto tensors = tensors_of(listed ? nb::handle(operands[0]) : nb::handle(operands), "einsum()");
  return unlocked([&] { return einsum(equation, tensors); });
}

nb::object split_of(const Tensor& x, nb::handle sizes, int64_t axis) {
  const Shape all = dims_from(sizes.ptr(), "sizes");
  std::vector<Tensor> parts;
  {
    const Unlocked unlocked;
    parts = split(x, all, axis);
  }
  return nb::steal(to_tuple(parts));
}

nb::object clipped(nb::handle list, double max_norm, double epsilon) {
  const auto tensors = tensors_of(list, "clip_global_norm()");
  Clipped made;
  {
    const Unlocked unlocked;
    made = clip_global_norm(tensors, max_norm, epsilon);
  }
  return nb::make_tuple(nb::steal(to_tuple(made.tensors)), nb::steal(to_object(made.norm)));
}

}  // namespace

void bind_lists(nb::module_& m) {
  m.def(
      "concat",
      [](nb::handle list, int64_t axis) {
        const auto parts = tensors_of(list, "concat()");
        return unlocked([&] { return concat(parts, axis); });
      },
      "tensors"_a, "axis"_a = 0, nb::sig("def concat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor"),
      "Concatenates any number of tensors along one axis.\n\n"
      "Shape    alike but for `axis`, whose sizes add up.\n"
      "DType    any, the same for all.\n"
      "Errors   weft.InvalidArgument for an empty list, shapes and dtypes.");
  m.def("stack", stacked, "tensors"_a, "axis"_a = 0,
        nb::sig("def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor"),
        "Concatenates tensors along a new axis.\n\nShape    all alike.\nDType    any, the same for "
        "all.\nErrors   weft.InvalidArgument for an empty list, shapes and dtypes.");
  m.def("split", split_of, "x"_a, "sizes"_a, "axis"_a = 0,
        nb::sig("def split(x: Tensor, sizes: ShapeLike, axis: int = 0) -> tuple[Tensor, ...]"),
        "Splits `x` into pieces of these sizes along one axis: the inverse of concat.\n\nErrors   "
        "weft.InvalidArgument unless the sizes add up to that of the axis.");
  m.def("einsum", einsum_of, "equation"_a, "tensors"_a,
        nb::sig("def einsum(equation: str, *tensors: Tensor) -> Tensor"),
        "A product over labels, of any number of tensors: `einsum(\"bij,bjk->bik\", a, b)`.\n\n"
        "Numerics more than eight tensors are contracted two at a time, in an order that is good but not "
        "always best. Each of these steps\n"
        "         rounds to the dtype: f16 and bf16 may overflow where the product would not.\n"
        "Errors   weft.InvalidArgument when the equation and the shapes do not fit.");
  m.def(
      "global_norm",
      [](nb::handle list) {
        const auto tensors = tensors_of(list, "global_norm()");
        return unlocked([&] { return global_norm(tensors); });
      },
      "tensors"_a, nb::sig("def global_norm(tensors: Sequence[Tensor]) -> Tensor"),
      "The root of the sum of all squares of all tensors.");
  m.def("clip_global_norm", clipped, "tensors"_a, "max_norm"_a, "epsilon"_a = 1e-6,
        nb::sig("def clip_global_norm(tensors: Sequence[Tensor], max_norm: float, epsilon: float = 1e-6) -> "
                "tuple[tuple[Tensor, ...], Tensor]"),
        "Scales all tensors by one factor, so that the root of the sum of all their squares is at most "
        "`max_norm`; gives them and the norm of before.");
}

}  // namespace weft::python

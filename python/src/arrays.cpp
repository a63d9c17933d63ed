#include <algorithm>
#include <cmath>

#include "eager/tensor_impl.h"
#include "python/src/convert.h"
#include "python/src/dlpack.h"
#include "python/src/elements.h"
#include "python/src/module.h"
#include "weft/ops.h"

// How tensors are made of what Python has.
namespace weft::python {
namespace {

std::optional<DType> optional_dtype(nb::handle o) {
  return o.is_none() ? std::nullopt : std::optional(dtype_from(o.ptr()));
}

nb::object made(Tensor t, bool requires_grad = false) {
  if (requires_grad) t.requires_grad(true);
  return nb::steal(to_object(std::move(t)));
}

nb::object filled(double value, nb::handle shape, nb::handle dtype, const std::string& backend,
                  bool requires_grad) {
  const Shape dims = dims_from(shape.ptr(), "shape");
  const DType type = dtype_from(dtype.ptr());
  Tensor t;
  {
    const Unlocked unlocked;
    std::optional<OnBackend> there;
    if (!backend.empty()) there.emplace(backend);
    t = full(value, dims, type);
  }
  return made(std::move(t), requires_grad);
}

// How many numbers a range has must be a dimension.
Dim range_count(double count) {
  if (!(count < 0x1p62)) throw Error(invalid("arange: a tensor can't have {} elements", count));
  return Dim(static_cast<int64_t>(std::max(0.0, count)));
}

Tensor integer_range(int64_t begin, int64_t end, int64_t by) {
  const bool up = by > 0;
  const auto low = static_cast<uint64_t>(up ? begin : end), high = static_cast<uint64_t>(up ? end : begin);
  const uint64_t step = up ? static_cast<uint64_t>(by) : 0 - static_cast<uint64_t>(by);
  const uint64_t count = (up ? begin < end : end < begin) ? (high - low - 1) / step + 1 : 0;
  const auto number = [](const int64_t& v) { return Tensor::of(std::span(&v, 1), {}, DType::i64); };
  return add(mul(iota(range_count(static_cast<double>(count)), DType::i64), number(by)), number(begin));
}

Tensor float_range(double begin, double end, double by) {
  const auto number = [](double v) { return full(v, {}, DType::f64); };
  const Dim count = range_count(std::ceil((end - begin) / by));
  return add(mul(iota(count, DType::f64), number(by)), number(begin));
}

// Counted from a start by steps, as Python's range(); integers unless a bound is a float.
nb::object range(nb::handle start, nb::handle stop, nb::handle step, nb::handle dtype) {
  const nb::object zero = nb::int_(0);
  const nb::handle first = stop.is_none() ? nb::handle(zero) : start, last = stop.is_none() ? start : stop;
  const nb::handle all[] = {first, last, step};
  const bool integers = std::ranges::all_of(all, [](nb::handle o) { return PyIndex_Check(o.ptr()) != 0; });
  const DType type = !dtype.is_none() ? dtype_from(dtype.ptr()) : integers ? DType::i64 : DType::f32;
  int64_t whole[3] = {};
  double real[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (integers) whole[i] = integer_from(all[i].ptr(), "arange: start, stop and step");
    real[i] = integers ? static_cast<double>(whole[i]) : nb::cast<double>(nb::float_(all[i]));
  }
  if (real[2] == 0) throw Error(invalid("arange: the step must not be 0"));
  if (!integers && !is_float(type) && std::ranges::any_of(real, [](double v) { return v != std::trunc(v); }))
    throw Error(
        invalid("arange: {} wants whole numbers, got {}, {} and {}; cast() converts a range of floats",
                name(type), real[0], real[1], real[2]));
  Tensor t;
  {
    const Unlocked unlocked;
    t = integers && !is_float(type) ? integer_range(whole[0], whole[1], whole[2])
                                    : float_range(real[0], real[1], real[2]);
    if (t.dtype() != type) t = cast(t, type);
  }
  return made(std::move(t));
}

}  // namespace

void bind_arrays(nb::module_& m) {
  using namespace nb::literals;
  m.def(
      "tensor",
      [](nb::handle data, nb::handle dtype, const std::string& backend, bool requires_grad) {
        return made(tensor_from(data, optional_dtype(dtype), backend), requires_grad);
      },
      "data"_a, "dtype"_a = nb::none(), "backend"_a = "", "requires_grad"_a = false,
      nb::sig("def tensor(data: object, dtype: DTypeLike | None = None, backend: str = '', requires_grad: "
              "bool = False) -> Tensor"),
      "A tensor of its own from numbers, nested lists, arrays or tensors.\n\n"
      "DType    `dtype`; without one, arrays keep theirs, Python's floats are f32, ints i64 and bools bool.\n"
      "Errors   weft.InvalidArgument where lists differ in length, and for a number that the dtype does not "
      "hold.");
  m.def(
      "from_numpy",
      [](nb::handle array, const std::string& backend) { return made(from_buffer(array, backend)); },
      "array"_a, "backend"_a = "", nb::sig("def from_numpy(array: object, backend: str = '') -> Tensor"),
      "A tensor on the memory of an array, or of whatever has Python's buffer protocol: no element is "
      "copied, and each side sees the\n"
      "other's writes. A tensor on memory that may only be read is never written in place.\n\n"
      "Errors   weft.InvalidArgument for elements that no dtype is, and for negative strides; weft.tensor() "
      "copies.");
  m.def(
      "from_dlpack",
      [](nb::handle x, const std::string& backend) { return made(from_capsule_or_object(x, backend)); },
      "x"_a, "backend"_a = "", nb::sig("def from_dlpack(x: object, backend: str = '') -> Tensor"),
      "A tensor on the memory of another library's tensor (PyTorch, NumPy, JAX, CuPy): no element is copied, "
      "and each side sees the\n"
      "other's writes.\n\n"
      "Errors   weft.InvalidArgument for what can't be shared: a negative stride, a dtype that Weft does not "
      "have, memory that the\n"
      "         backend can't reach.");
  m.def(
      "zeros",
      [](nb::handle shape, nb::handle dtype, const std::string& backend, bool grad) {
        return filled(0, shape, dtype, backend, grad);
      },
      "shape"_a, "dtype"_a = "f32", "backend"_a = "", "requires_grad"_a = false,
      nb::sig("def zeros(shape: ShapeLike, dtype: DTypeLike = 'f32', backend: str = '', requires_grad: bool "
              "= False) -> Tensor"),
      "A tensor of zeros.");
  m.def(
      "ones",
      [](nb::handle shape, nb::handle dtype, const std::string& backend, bool grad) {
        return filled(1, shape, dtype, backend, grad);
      },
      "shape"_a, "dtype"_a = "f32", "backend"_a = "", "requires_grad"_a = false,
      nb::sig("def ones(shape: ShapeLike, dtype: DTypeLike = 'f32', backend: str = '', requires_grad: bool = "
              "False) -> Tensor"),
      "A tensor of ones.");
  m.def("arange", range, "start"_a, "stop"_a = nb::none(), "step"_a = 1, "dtype"_a = nb::none(),
        nb::sig("def arange(start: float, stop: float | None = None, step: float = 1, dtype: DTypeLike | "
                "None = None) -> Tensor"),
        "The numbers from start (0, where one is given) by steps to below stop: i64, or f32 where one of "
        "them is a float.");
}

}  // namespace weft::python

#include <cstring>
#include <limits>

#include "eager/layout.h"
#include "eager/tensor_impl.h"
#include "eager/trace_state.h"
#include "python/src/convert.h"
#include "python/src/dlpack.h"
#include "weft/dlpack.h"

// Python's buffer protocol (PEP 3118): how NumPy, memoryview and others see memory without a copy, and
// without any of them imported.
namespace weft::python {
namespace {

// Of struct's letters, in the order of DType; null: it has none.
constexpr const char* kLetters[kDTypeCount] = {"d", "f", "e",     nullptr, "i", "q", "I",
                                               "Q", "?", nullptr, nullptr, "b", "B"};

/// What an array's letter and size say.
DType dtype_of(const Py_buffer& view) {
  const char* letter = view.format ? view.format : "B";
  if (std::strchr("<=@", *letter) && *letter) ++letter;
  const auto integer = [&](bool is_signed) -> std::optional<DType> {
    switch (view.itemsize) {
      case 1: return is_signed ? DType::i8 : DType::u8;
      case 4: return is_signed ? DType::i32 : DType::u32;
      case 8: return is_signed ? DType::i64 : DType::u64;
      default: return {};
    }
  };
  std::optional<DType> found;
  if (*letter && letter[1] == 0) {
    if (std::strchr("bhilqn", *letter)) found = integer(true);
    if (std::strchr("BHILQN", *letter)) found = integer(false);
    if (*letter == 'e') found = DType::f16;
    if (*letter == 'f') found = DType::f32;
    if (*letter == 'd') found = DType::f64;
    if (*letter == '?') found = DType::boolean;
  }
  if (found && byte_size(*found) == static_cast<size_t>(view.itemsize)) return *found;
  const char* why = *letter == 'O' ? "its elements are Python objects; convert it with astype() first"
                    : view.format && std::strchr(">!", *view.format)
                        ? "its bytes are in the order of other machines; convert it first"
                        : "no dtype of Weft's is that; convert it with astype() first";
  throw Error(invalid("an array of format '{}' ({} bytes each) can't be a tensor: {}",
                      view.format ? view.format : "B", view.itemsize, why));
}

// Exporters of plain memory give no strides, though they were asked for, and for bytes no sizes either (PEP
// 3118).
IntList sizes_of(const Py_buffer& view) {
  if (view.shape) return IntList(view.shape, view.shape + view.ndim);
  return view.ndim == 0 ? IntList() : IntList{view.len / std::max<Py_ssize_t>(1, view.itemsize)};
}
IntList strides_of(const Py_buffer& view, const IntList& shape) {
  if (view.strides) return IntList(view.strides, view.strides + view.ndim);
  IntList strides = contiguous_strides(shape);
  for (int64_t& s : strides) s *= view.itemsize;
  return strides;
}

// Sizes that an exporter gives must be those of its memory.
void check_length(const Py_buffer& view, const IntList& shape) {
  Py_ssize_t bytes = view.itemsize;
  bool fits = true;
  for (const int64_t n : shape) fits = fits && n >= 0 && !__builtin_mul_overflow(bytes, n, &bytes);
  if (fits && bytes == view.len) return;
  throw Error(
      invalid("an array says that it has {} bytes and the sizes {} of {} bytes each, which do not fit",
              view.len, text(std::span<const int64_t>(shape)), view.itemsize));
}

/// An exporter's buffer, released with Python's lock.
struct Held {
  Py_buffer view{};
  explicit Held(nb::handle o, int flags) {
    if (PyObject_GetBuffer(o.ptr(), &view, flags) != 0) throw nb::python_error();
  }
  ~Held() { PyBuffer_Release(&view); }
  Held(const Held&) = delete;
};

/// A Held as DLPack's struct, for from_dlpack().
struct Exported {
  DLManagedTensor managed{};
  std::unique_ptr<Held> held;
  IntList shape, strides;
};
void end(DLManagedTensor* m) {
  auto* exported = static_cast<Exported*>(m->manager_ctx);
  if (!Py_IsInitialized()) return;  // the interpreter has ended, and the array with it
  const Locked locked;
  delete exported;
}

// Where the host's memory has no name: a tensor and its shape, as long as a buffer is out.
struct Lent {
  Tensor tensor;
  std::vector<Py_ssize_t> shape, strides;
};

int refuse(const std::string& why) {
  PyErr_SetString(PyExc_BufferError, why.c_str());
  return -1;
}

int lend(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  const Tensor& t = tensor_in(self);
  const eager::TensorImpl& impl = *t.impl();
  if (impl.traced)
    return refuse("a tensor inside a trace has no elements yet; return it as an output instead");
  if (impl.requires_grad)
    return refuse(
        "the tensor requires a gradient, which would not see what others write: use detach() or "
        "numpy(force=True)");
  const char* const letter = kLetters[static_cast<size_t>(impl.dtype)];
  if (!letter)
    return refuse(fmt::format("{} has no letter in Python's buffers; cast it to f32, or use __dlpack__",
                              name(impl.dtype)));
  seam::Device& device = eager::device_of(impl);
  if (!device.host_memory())
    return refuse(
        fmt::format("the memory of '{}' is not the host's; use numpy(), which copies", device.name()));
  const bool read_only = impl.buffer && impl.buffer->holders.load(std::memory_order_relaxed);
  if (read_only && (flags & PyBUF_WRITABLE))
    return refuse(
        "this memory may not be written: it is used by a compiled program, or was lent to Weft for reading");
  if (impl.irregular && (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
    return refuse("the tensor has strides, and the reader takes none");
  {
    const Unlocked unlocked;
    const std::lock_guard lock(device.eager_mutex());
    raise_if(device.eager_queue().synchronize());
  }
  auto lent = std::make_unique<Lent>();
  lent->tensor = t;
  const auto strides = impl.irregular ? impl.extra->strides : contiguous_strides(impl.shape());
  const auto bytes = static_cast<Py_ssize_t>(byte_size(impl.dtype));
  for (size_t i = 0; i < impl.rank; ++i) {
    lent->shape.push_back(impl.dims[i]);
    lent->strides.push_back(strides[i] * bytes);
  }
  static std::byte nothing[8];
  auto* const at = static_cast<std::byte*>(impl.c.dl.data);
  *view = {.buf = at ? at + impl.c.dl.byte_offset : nothing,
           .obj = Py_NewRef(self),
           .len = static_cast<Py_ssize_t>(impl.bytes()),
           .itemsize = bytes,
           .readonly = read_only,
           .ndim = impl.rank,
           .format = const_cast<char*>(flags & PyBUF_FORMAT ? letter : nullptr),
           .shape = flags & PyBUF_ND ? lent->shape.data() : nullptr,
           .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? lent->strides.data() : nullptr,
           .suboffsets = nullptr,
           .internal = lent.get()};
  lent.release();
  return 0;
}

int lend_guarded(PyObject* self, Py_buffer* view, int flags) {
  try {
    return lend(self, view, flags);
  } catch (...) {
    set_python_error();
    return -1;
  }
}
void take_back(PyObject*, Py_buffer* view) { delete static_cast<Lent*>(view->internal); }

}  // namespace

const char* letter_of(DType dtype) { return kLetters[static_cast<size_t>(dtype)]; }

void refuse_no_numbers(nb::handle o, const char* where) {
  const nb::object dtype = nb::getattr(o, "dtype", nb::none());
  const nb::object letter = nb::getattr(dtype, "kind", nb::none());
  if (!nb::isinstance<nb::str>(letter)) return;
  const auto kind = nb::cast<std::string>(letter);
  const char* const what = kind == "M" || kind == "m" ? "times; astype(\"int64\") counts their units"
                           : kind == "V" ? "records or raw bytes; take a field of them, as in array[\"name\"]"
                           : kind == "S" || kind == "U" || kind == "T"
                               ? "texts; astype(\"float32\") reads numbers, and a weft.nn.Tokenizer makes ids"
                               : nullptr;
  if (what)
    raise_type_error(fmt::format("{}: elements of dtype {} are no numbers, they are {}", where,
                                 nb::cast<std::string>(nb::str(dtype)), what));
}

Tensor from_buffer(nb::handle o, const std::string& backend) {
  refuse_no_numbers(o, "from_numpy");
  if (!PyObject_CheckBuffer(o.ptr()))
    raise_type_error(fmt::format("from_numpy: a {} has no memory that can be shared; weft.tensor() copies it",
                                 Py_TYPE(o.ptr())->tp_name));
  auto exported = std::make_unique<Exported>();
  exported->held = std::make_unique<Held>(o, PyBUF_RECORDS_RO);
  const Py_buffer& view = exported->held->view;
  const DType dtype = dtype_of(view);
  exported->shape = sizes_of(view);
  check_length(view, exported->shape);
  const IntList strides = strides_of(view, exported->shape);
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t stride = strides[i], size = exported->shape[i];
    if (stride < 0 && size > 1)
      throw Error(invalid(
          "from_numpy: axis {} of the array has the stride {}: none may be negative; weft.tensor() copies it",
          i, stride));
    if (stride % view.itemsize && size > 1)
      throw Error(
          invalid("from_numpy: axis {} of the array has a stride of {} bytes, no multiple of its {} bytes "
                  "each; weft.tensor() copies it",
                  i, stride, view.itemsize));
    exported->strides.push_back(size > 1 ? stride / view.itemsize : 0);
  }
  auto& managed = exported->managed;
  const auto& i = info(dtype);
  managed.dl_tensor = {.data = view.buf,
                       .device = {kDLCPU, 0},
                       .ndim = static_cast<int>(exported->shape.size()),
                       .dtype = {i.dlpack_code, static_cast<uint8_t>(8 * i.bytes), 1},
                       .shape = exported->shape.data(),
                       .strides = exported->strides.data(),
                       .byte_offset = 0};
  managed.manager_ctx = exported.get();
  managed.deleter = end;
  const bool read_only = view.readonly;
  Tensor t;
  {
    const Unlocked unlocked;
    t = from_dlpack(&managed, backend);
  }
  exported.release();
  if (read_only) make_read_only(t);
  return t;
}

Tensor copy_of_buffer(nb::handle o, const std::string& backend) {
  refuse_no_numbers(o, "tensor");
  const Held held(o, PyBUF_FULL_RO);
  const Py_buffer& view = held.view;
  const DType dtype = dtype_of(view);
  const IntList shape = sizes_of(view);
  check_length(view, shape);
  if (PyBuffer_IsContiguous(&view, 'C'))
    return Tensor::from_bytes({static_cast<const std::byte*>(view.buf), static_cast<size_t>(view.len)}, shape,
                              dtype, backend);
  std::vector<std::byte> bytes(static_cast<size_t>(view.len));
  if (PyBuffer_ToContiguous(bytes.data(), const_cast<Py_buffer*>(&view), view.len, 'C') != 0)
    throw nb::python_error();
  return Tensor::from_bytes(bytes, shape, dtype, backend);
}

const PyType_Slot* buffer_slots() {
  static const PyType_Slot slots[] = {
      {Py_bf_getbuffer, reinterpret_cast<void*>(lend_guarded)},
      {Py_bf_releasebuffer, reinterpret_cast<void*>(take_back)},
      {0, nullptr},
  };
  return slots;
}

}  // namespace weft::python

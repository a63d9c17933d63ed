#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lab/kernels/operation.h"
#include "lab/kernels/python.h"
#include "lab/kernels/worker.h"
#include "python/src/convert.h"
#include "python/src/exchange.h"
#include "python/src/lab.h"
#include "python/src/module.h"
#include "python/src/object.h"
#include "seam/registry.h"

// The process of a kernel that is written in Python. What is asked, changed and timed is C++'s
// (lab/kernels/worker.cpp); Python opens the kernel, and makes tensors of where its operands lie.
namespace weft::python {
namespace {

using namespace nb::literals;

/// An operand or a result where the lab put it: memory of the lab's, for other libraries to look at.
struct Operand {
  DLTensor dl{};
  DType dtype = DType::f32;
  IntList shape;

  uintptr_t address() const { return reinterpret_cast<uintptr_t>(dl.data) + dl.byte_offset; }
};

DType dtype_of(const DLDataType& type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto& known = info(static_cast<DType>(i));
    if (known.dlpack_code == type.code && 8 * known.bytes == type.bits) return static_cast<DType>(i);
  }
  throw Error(fail(Code::internal, "no dtype has DLPack's code {} and {} bits", type.code, type.bits));
}

nb::object tuple_of(const IntList& sizes) {
  nb::list list;
  for (const int64_t size : sizes) list.append(size);
  return nb::tuple(list);
}

// What a capsule owns: a copy of what says where the memory is. The memory is the process's as long as it
// lives.
template <class Managed>
struct Shared {
  Managed managed{};
  IntList shape;
};

DLTensor& tensor_of(DLManagedTensor& m) { return m.dl_tensor; }
DLTensor& tensor_of(exchange::ManagedTensor& m) { return m.dl_tensor; }

template <class Managed>
nb::object capsule_of(const Operand& o, const char* name) {
  auto* shared = new Shared<Managed>;
  shared->shape = o.shape;
  auto& dl = tensor_of(shared->managed);
  dl = o.dl, dl.shape = shared->shape.data(), dl.strides = nullptr;
  dl.data = reinterpret_cast<void*>(o.address()), dl.byte_offset = 0;  // PyTorch takes no other offset
  shared->managed.manager_ctx = shared;
  shared->managed.deleter = [](Managed* m) { delete static_cast<Shared<Managed>*>(m->manager_ctx); };
  if constexpr (std::is_same_v<Managed, exchange::ManagedTensor>) shared->managed.version = {1, 0};
  PyObject* capsule = PyCapsule_New(&shared->managed, name, [](PyObject* c) {
    const char* mine = PyCapsule_GetName(c);
    if (std::string_view(mine).starts_with("used")) return;  // whoever took it deletes it
    auto* m = static_cast<Managed*>(PyCapsule_GetPointer(c, mine));
    m->deleter(m);
  });
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

nb::object to_dlpack_capsule(const Operand& o, nb::handle version) {
  if (!version.is_none() && nb::cast<int>(version[0]) >= 1)
    return capsule_of<exchange::ManagedTensor>(o, "dltensor_versioned");
  return capsule_of<DLManagedTensor>(o, "dltensor");
}

nb::object operands_of(std::span<const weft_tensor> tensors) {
  nb::list all;
  for (const auto& t : tensors) {
    if (!t.dl.data) {
      all.append(nb::none());
      continue;
    }
    all.append(nb::cast(Operand{t.dl, dtype_of(t.dl.dtype), IntList(t.dl.shape, t.dl.shape + t.dl.ndim)}));
  }
  return nb::tuple(all);
}

// What weft.lab.worker's functions are; kept from before a kernel's file could change them.
struct Worker {
  nb::object open, reason;
  std::unique_ptr<seam::Queue> queue;  // where kernels are enqueued; null: they compute in the host's memory
};
Worker* const worker = new Worker;  // as long as the process

// The status of what Python raised: NotImplementedError is how a kernel refuses a call.
Status status_of(nb::python_error& e) {
  const bool refuses = e.matches(PyExc_NotImplementedError);
  std::string words;
  try {
    const nb::object said = worker->reason(e.value());
    words = nb::cast<std::string>(said);
  } catch (nb::python_error& again) {
    words = nb::type_name(again.type()).c_str();
  }
  return fail(refuses ? Code::unsupported : Code::device, "{}", words);
}

template <class F>
Status in_words(F f) {
  try {
    f();
    return {};
  } catch (nb::python_error& e) {
    return status_of(e);
  } catch (const nb::cast_error&) {
    return fail(Code::device, "it answers what it was not asked");
  }
}

class PythonKernel : public lab::Kernel {
 public:
  explicit PythonKernel(nb::object kernel)
      : kernel_(std::move(kernel)),
        id_(nb::cast<std::string>(kernel_.attr("id"))),
        identity_(nb::cast<std::string>(kernel_.attr("identity"))),
        compile_seconds_(nb::cast<double>(kernel_.attr("compile_seconds"))) {}

  std::string id() const override { return id_; }
  std::string identity() const override { return identity_; }
  double compile_seconds() const override { return compile_seconds_; }
  seam::Queue* queue() override { return worker->queue.get(); }

  Status place(std::span<const weft_tensor> inputs, std::span<const weft_tensor> outputs) override {
    launch_.reset();
    return in_words([&] { launch_ = kernel_.attr("place")(operands_of(inputs), operands_of(outputs)); });
  }

  Status run() override {
    PyObject* done = PyObject_CallNoArgs(launch_.ptr());
    if (done) return Py_DECREF(done), Status();
    nb::python_error e;
    return status_of(e);
  }

 private:
  nb::object kernel_, launch_;
  std::string id_, identity_;
  double compile_seconds_;
};

nb::object types_of(std::span<const std::optional<seam::ConcreteType>> types) {
  nb::list all;
  for (const auto& t : types) {
    if (t)
      all.append(nb::make_tuple(std::string(name(t->dtype)), tuple_of(t->shape)));
    else
      all.append(nb::none());
  }
  return nb::tuple(all);
}

nb::object attr_object(const AttrValue& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) return nb::cast(*i);
  if (const auto* d = std::get_if<double>(&value)) return nb::cast(*d);
  if (const auto* s = std::get_if<std::string>(&value)) return nb::cast(*s);
  if (const auto* shape = std::get_if<Shape>(&value)) {
    nb::list list;
    for (const auto& dim : *shape) list.append(dim.value());
    return nb::tuple(list);
  }
  const auto& bytes = std::get<Bytes>(value).data;
  return nb::bytes(bytes.data(), bytes.size());
}

nb::tuple call_parts(const seam::CallDesc& desc) {
  nb::dict attrs;
  nb::set off_default;
  for (const auto& a : desc.attrs) attrs[a.name.c_str()] = attr_object(a.value);
  for (const auto& attr : desc.off_default) off_default.add(nb::cast(attr));
  const std::vector<std::optional<seam::ConcreteType>> outputs(desc.outputs.begin(), desc.outputs.end());
  return nb::make_tuple(types_of(desc.inputs), types_of(outputs), attrs, off_default);
}

nb::tuple describe(const std::string& op, const nb::list& inputs, const nb::dict& attrs) {
  conformance::Ask ask{.op = op, .inputs = {}};
  for (const nb::handle input : inputs) {
    seam::ConcreteType type{DType::u8, {}};
    if (input.is_none()) {
      ask.absent |= uint64_t{1} << ask.inputs.size();
    } else {
      type.dtype = dtype_from(nb::object(input[0]).ptr());
      for (const int64_t size : nb::cast<std::vector<int64_t>>(input[1])) type.shape.push_back(size);
    }
    ask.inputs.push_back({type, {}});
  }
  for (const auto [key, value] : attrs) ask.attrs.push_back({nb::cast<std::string>(key), attr_from(value)});
  return call_parts(value_or_raise(lab::describe(ask))->desc());
}

Result<std::unique_ptr<lab::Kernel>> open_kernel(const std::string& name, const seam::CallPtr& call) {
  std::unique_ptr<lab::Kernel> kernel;
  WEFT_CHECK(in_words([&] {
    const auto parts = call_parts(call->desc());
    kernel = std::make_unique<PythonKernel>(
        worker->open(name, call->desc().op, parts[0], parts[1], parts[2], parts[3]));
  }));
  return kernel;
}

// A queue on the device, which other libraries enqueue to; (DLPack's type, number, the vendor's stream).
// None: of the host's memory.
nb::object open_queue(const std::string& name) {
  seam::Device* device = value_or_raise(seam::registry().open(name));
  if (device->host_memory()) return nb::none();
  worker->queue = value_or_raise(device->open_queue());
  const auto dl = device->dl();
  auto stream = device->native(worker->queue.get(), dl.device_type == kDLROCM ? "hip.stream" : "cuda.stream");
  return nb::make_tuple(static_cast<int>(dl.device_type), dl.device_id,
                        reinterpret_cast<uintptr_t>(stream.ok() ? *stream : nullptr));
}

int serve(nb::object open, nb::object reason) {
  worker->open = std::move(open), worker->reason = std::move(reason);
  lab::this_python().open = open_kernel;
  return lab::serve_contender();
}

}  // namespace

void bind_lab_worker(nb::module_& m) {
  nb::class_<Operand>(m, "Operand", "An operand or a result of a kernel, in memory that the lab sees, too.")
      .def_prop_ro(
          "dtype", [](const Operand& o) { return std::string(name(o.dtype)); }, "Its name, as \"f32\".")
      .def_prop_ro(
          "shape", [](const Operand& o) { return tuple_of(o.shape); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Its sizes; it is contiguous.")
      .def_prop_ro("address", &Operand::address, "Where its first element is.")
      .def(
          "__dlpack_device__",
          [](const Operand& o) {
            return nb::make_tuple(static_cast<int>(o.dl.device.device_type), o.dl.device.device_id);
          },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
          "DLPack's type and number of its device.")
      .def(
          "__dlpack__",
          [](const Operand& o, nb::handle, nb::handle version, nb::handle, nb::handle) {
            return to_dlpack_capsule(o, version);
          },
          nb::kw_only(), "stream"_a = nb::none(), "max_version"_a = nb::none(), "dl_device"_a = nb::none(),
          "copy"_a = nb::none(),
          nb::sig(
              "def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None, "
              "dl_device: object = None, copy: object = None) -> object"),
          "A capsule for other libraries. Nothing is copied.");
  m.def(
      "describe", describe, "op"_a, "inputs"_a, "attrs"_a,
      nb::sig("def describe(op: str, inputs: list[Any], attrs: dict[str, Any]) -> tuple[Any, Any, dict[str, "
              "Any], set[str]]"),
      "A call of an op: the types of its operands and results, its attributes, and those off their "
      "defaults.");
  m.def("open_queue", open_queue, "device"_a,
        nb::sig("def open_queue(device: str) -> tuple[int, int, int] | None"),
        "Where kernels of this process are enqueued from now on: DLPack's type and number of the device, and "
        "its vendor's stream, 0 where it has none. None for a device of the host's memory.");
  m.def(
      "serve", serve, "open"_a, "reason"_a,
      nb::sig("def serve(open: Callable[..., object], reason: Callable[[BaseException], str]) -> int"),
      "Answers the lab, which started this process, until it has no more questions. `open` opens a kernel in "
      "Python, `reason` says what it raised.");
}

}  // namespace weft::python

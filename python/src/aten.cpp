#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "compiler/compile.h"
#include "import/call.h"
#include "import/import.h"
#include "jit/target.h"
#include "python/src/exchange.h"
#include "python/src/module.h"
#include "python/src/object.h"
#include "runtime/devices.h"
#include "runtime/session.h"

// Graphs of ATen's ops: what torch.compile(backend="weft") hands over, and runs.
namespace weft::python {
namespace {

using exchange::Api;

/// The functions of PyTorch's tensors.
const Api& torch_api() {
  const nb::object tensor = nb::module_::import_("torch").attr("Tensor");
  const nb::object capsule = nb::getattr(tensor, "__dlpack_c_exchange_api__", nb::none());
  const auto* api = static_cast<const Api*>(
      capsule.is_none() ? nullptr : PyCapsule_GetPointer(capsule.ptr(), exchange::kCapsule));
  if (!api || api->header.version.major != 1)
    throw Error(fail(Code::version,
                     "this PyTorch has no C functions of DLPack 1, which are there since PyTorch 2.10"));
  return *api;
}

/// An array in Weft's memory for PyTorch, which frees it.
struct Export {
  exchange::ManagedTensor managed{};
  seam::BufferRef buffer;
  IntList shape, strides;
};

/// How an input or output lies in memory: its axes from the slowest to the fastest; empty where that is their
/// order.
using Order = std::vector<int64_t>;

IntList in_order(std::span<const int64_t> of, const Order& order) {
  IntList out(of.begin(), of.end());
  for (size_t i = 0; i < order.size(); ++i) out[i] = of[static_cast<size_t>(order[i])];
  return out;
}

bool in_rows(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

program::CompiledProgram compiled(std::string_view text, const std::string& backend,
                                  const std::string& name) {
  const auto model = value_or_raise(importer::parse_model_ir(text, name));
  const auto imported = value_or_raise(importer::import_model(model, {}));
  const auto none = [&](const std::string& weight) -> Result<program::Blob> {
    return fail(Code::internal, "{} has a weight, {}", name, weight);
  };
  return value_or_raise(
      compiler::compile(*imported.graph, none, {.name = name, .has_kernel = kernels_of(backend)}));
}

/// A compiled graph without weights of its own. A call reads the tensors where they lie and gives tensors of
/// its own.
class AtenPart {
 public:
  AtenPart(std::string_view text, std::vector<Order> inputs, std::vector<Order> outputs,
           const std::string& backend, const std::string& name)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), api_(torch_api()) {
    const nb::gil_scoped_release unlocked;
    auto program = std::make_shared<const program::CompiledProgram>(compiled(text, backend, name));
    if (program->inputs.size() != inputs_.size() || program->outputs.size() != outputs_.size())
      throw Error(invalid("{} has {} inputs and {} outputs, got orders for {} and {}", name,
                          program->inputs.size(), program->outputs.size(), inputs_.size(), outputs_.size()));
    session_ = value_or_raise(
        runtime::Session::create(program, value_or_raise(runtime::devices_for(backend, Policy())), Policy()));
    if (!session_->device().host_memory())
      throw Error(fail(Code::unsupported, "backend '{}' can't read PyTorch's tensors where they lie",
                       session_->backend()));
  }

  nb::list run(nb::list given) {
    if (given.size() != inputs_.size())
      throw Error(
          invalid("{} takes {} inputs, got {}", session_->program().name, inputs_.size(), given.size()));
    std::vector<runtime::DeviceArray> in;
    in.reserve(inputs_.size());
    std::vector<nb::object> copies;  // of inputs that lie in memory in another way
    for (size_t i = 0; i < inputs_.size(); ++i) in.push_back(input(given[i], i, copies));
    std::vector<runtime::DeviceArray> out;
    {
      const nb::gil_scoped_release unlocked;
      const std::lock_guard one_at_a_time(mutex_);
      out = value_or_raise(session_->run_on(in));
      raise_if(session_->wait());
    }
    nb::list results;
    for (size_t i = 0; i < out.size(); ++i) results.append(output(std::move(out[i]), outputs_[i]));
    return results;
  }

  std::string text() const { return program::print(session_->program()); }
  std::string schedule() const {
    const auto* schedule = session_->schedule_or_null();
    return schedule ? link::print(*schedule) : "";
  }

 private:
  runtime::DeviceArray input(nb::handle object, size_t i, std::vector<nb::object>& copies) {
    if (PyLong_Check(object.ptr())) return size_only(nb::cast<int64_t>(object));
    if (PyFloat_Check(object.ptr())) return number(PyFloat_AS_DOUBLE(object.ptr()));
    DLTensor t{};
    if (api_.borrow(object.ptr(), &t) != 0) throw nb::python_error();
    const Order& order = inputs_[i];
    const auto rank = static_cast<size_t>(t.ndim);
    if (order.size() > rank) throw Error(invalid("input {} has {} axes, wanted {}", i, rank, order.size()));
    const IntList shape = in_order({t.shape, rank}, order), strides = in_order({t.strides, rank}, order);
    const auto dtype = dtype_from_dlpack(t.dtype.code, t.dtype.bits);
    if (!dtype || t.dtype.lanes != 1 || t.device.device_type != kDLCPU)
      throw Error(
          fail(Code::unsupported, "input {} is no dense tensor in host memory of a dtype of Weft's", i));
    if (!in_rows(shape, strides)) {
      nb::object turned = nb::borrow(object);
      if (!order.empty()) turned = turned.attr("permute")(nb::cast(order));
      turned = turned.attr("contiguous")();
      if (!order.empty()) turned = turned.attr("permute")(nb::cast(inverse(order)));
      copies.push_back(turned);
      return input(turned, i, copies);
    }
    return {{*dtype, shape}, memory_of(t, {*dtype, shape})};
  }
  static Order inverse(const Order& order) {
    Order back(order.size());
    for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    return back;
  }
  // Tells a symbol's value, and has no elements.
  runtime::DeviceArray size_only(int64_t n) {
    return {{DType::boolean, {n, 0}}, value_or_raise(session_->device().allocate(0))};
  }
  runtime::DeviceArray number(double x) {
    runtime::DeviceArray array = {{DType::f64, {}}, value_or_raise(session_->device().allocate(sizeof x))};
    std::memcpy(array.buffer->handle, &x, sizeof x);  // the device's memory is the host's
    return array;
  }
  seam::BufferRef memory_of(const DLTensor& t, const seam::ConcreteType& type) {
    if (type.bytes() == 0) return value_or_raise(session_->device().allocate(0));
    return value_or_raise(session_->device().import_memory(t, type.bytes(), [] {}));
  }

  nb::object output(runtime::DeviceArray array, const Order& order) {
    auto made = std::make_unique<Export>();
    const Order back = inverse(order);
    made->strides = in_order(contiguous_strides(array.type.shape), back);
    made->shape = in_order(array.type.shape, back);
    made->buffer = std::move(array.buffer);
    DLTensor& t = made->managed.dl_tensor;
    const DTypeInfo& dtype = info(array.type.dtype);
    t = {.data = array.type.bytes() ? made->buffer->handle : nullptr,
         .device = {kDLCPU, 0},
         .ndim = static_cast<int32_t>(made->shape.size()),
         .dtype = {dtype.dlpack_code, static_cast<uint8_t>(8 * dtype.bytes), 1},
         .shape = made->shape.data(),
         .strides = made->strides.data(),
         .byte_offset = 0};
    made->managed.version = {1, 1};
    made->managed.manager_ctx = made.get();
    made->managed.deleter = [](exchange::ManagedTensor* m) { delete static_cast<Export*>(m->manager_ctx); };
    void* object = nullptr;
    if (api_.to_object(&made->managed, &object) != 0) throw nb::python_error();
    (void)made.release();
    return nb::steal(static_cast<PyObject*>(object));
  }

  std::vector<Order> inputs_, outputs_;
  std::unique_ptr<runtime::Session> session_;
  std::mutex mutex_;
  const Api& api_;
};

// None, or why the graph can't be imported.
nb::object refusal(std::string_view text) {
  auto model = importer::parse_model_ir(text, "graph");
  if (!model.ok()) return nb::cast(model.status().message());
  auto imported = importer::import_model(*model, {});
  return imported.ok() ? nb::none() : nb::cast(imported.status().message());
}

std::vector<std::string> imported_ops() {
  std::vector<std::string> names;
  for (const auto* family : importer::all_families())
    for (const auto& op : family->ops) names.emplace_back(op.name);
  return names;
}

}  // namespace

void bind_aten(nb::module_& m) {
  m.def("aten_ops", &imported_ops, "The ops of ATen that are imported, as in \"add.Tensor\".");
  m.def("aten_refusal", &refusal, nb::arg("graph"),
        "Why a graph of ATen's ops, as JSON, can't be imported, or None.");
  nb::class_<AtenPart>(m, "AtenPart", "A compiled graph of ATen's ops, called with PyTorch's tensors.")
      .def(nb::init<std::string_view, std::vector<Order>, std::vector<Order>, const std::string&,
                    const std::string&>(),
           nb::arg("graph"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("backend") = "",
           nb::arg("name") = "part")
      .def("run", &AtenPart::run, nb::arg("inputs"),
           "The results, from tensors, ints for inputs that are only a size, and floats for ones without "
           "axes.")
      .def("text", &AtenPart::text, "The program.")
      .def("schedule", &AtenPart::schedule, "The kernels of the last run.");
}

}  // namespace weft::python

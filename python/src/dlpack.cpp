#include "python/src/dlpack.h"

#include "eager/tensor_impl.h"
#include "weft/dlpack.h"

namespace weft::python {
namespace {

// DLPack 1.0's struct, which the header of 0.6 does not have. Source: dmlc/dlpack, dlpack.h,
// DLManagedTensorVersioned.
struct Versioned {
  uint32_t major = 1, minor = 0;
  void* context = nullptr;
  void (*deleter)(Versioned*) = nullptr;
  uint64_t flags = 0;
  DLTensor tensor{};
};
constexpr uint64_t kReadOnly = 1;

constexpr const char *kPlain = "dltensor", *kPlainUsed = "used_dltensor", *kVersioned = "dltensor_versioned",
                     *kVersionedUsed = "used_dltensor_versioned";

void drop(Versioned* v) {
  auto* inner = static_cast<DLManagedTensor*>(v->context);
  inner->deleter(inner);
  delete v;
}

// Capsules that nobody took.
void end_plain(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kPlain)) return;
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kPlain));
  managed->deleter(managed);
}
void end_versioned(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kVersioned)) return;
  auto* managed = static_cast<Versioned*>(PyCapsule_GetPointer(capsule, kVersioned));
  managed->deleter(managed);
}

// A versioned tensor as from_dlpack() reads it.
DLManagedTensor* plain_of(Versioned* v) {
  auto* managed = new DLManagedTensor{v->tensor, v, nullptr};
  managed->deleter = [](DLManagedTensor* m) {
    auto* inner = static_cast<Versioned*>(m->manager_ctx);
    if (inner->deleter) inner->deleter(inner);
    delete m;
  };
  return managed;
}

// While it lives, the capsule says that its tensor was taken: so no other thread takes it, too, where this
// one lets go of Python. Where the tensor was not kept, its exporter owns it again.
class Taking {
 public:
  Taking(nb::handle capsule, const char* name, const char* used) : capsule_(capsule), name_(name) {
    PyCapsule_SetName(capsule.ptr(), used);
  }
  ~Taking() {
    if (!kept_) PyCapsule_SetName(capsule_.ptr(), name_);
  }
  Taking(const Taking&) = delete;
  Tensor take(DLManagedTensor* managed, const std::string& backend) {
    const Unlocked unlocked;
    Tensor t = from_dlpack(managed, backend);
    kept_ = true;
    return t;
  }

 private:
  nb::handle capsule_;
  const char* name_;
  bool kept_ = false;
};

Tensor from_capsule(nb::handle capsule, const std::string& backend) {
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned)) {
    auto* v = static_cast<Versioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersioned));
    if (v->major != 1)
      throw Error(fail(Code::version,
                       "from_dlpack: a versioned capsule of DLPack {}, wanted one of version 1", v->major));
    Taking taking(capsule, kVersioned, kVersionedUsed);
    DLManagedTensor* plain = plain_of(v);
    Tensor t;
    try {
      t = taking.take(plain, backend);
    } catch (...) {  // the exporter owns it still
      delete plain;
      throw;
    }
    if (v->flags & kReadOnly) make_read_only(t);
    return t;
  }
  if (!PyCapsule_IsValid(capsule.ptr(), kPlain))
    throw Error(
        invalid("from_dlpack: the capsule holds no tensor, or one that was taken before; ask its exporter "
                "for another"));
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kPlain));
  return Taking(capsule, kPlain, kPlainUsed).take(managed, backend);
}

}  // namespace

void make_read_only(const Tensor& t) {
  if (auto* buffer = t.impl()->buffer.get()) buffer->holders.store(UINT8_MAX, std::memory_order_relaxed);
}

nb::object to_capsule(const Tensor& tensor, bool versioned) {
  DLManagedTensor* managed = nullptr;
  {
    const Unlocked unlocked;
    managed = to_dlpack(tensor);
  }
  PyObject* capsule = nullptr;
  if (versioned) {
    const bool read_only =
        tensor.impl()->buffer && tensor.impl()->buffer->holders.load(std::memory_order_relaxed);
    auto* v = new Versioned{.context = managed,
                            .deleter = drop,
                            .flags = read_only ? kReadOnly : 0,
                            .tensor = managed->dl_tensor};
    capsule = PyCapsule_New(v, kVersioned, end_versioned);
    if (!capsule) v->deleter(v);
  } else {
    capsule = PyCapsule_New(managed, kPlain, end_plain);
    if (!capsule) managed->deleter(managed);
  }
  if (!capsule) throw nb::python_error();
  return nb::steal(capsule);
}

Tensor from_capsule_or_object(nb::handle o, const std::string& backend) {
  if (PyCapsule_CheckExact(o.ptr())) return from_capsule(o, backend);
  if (!nb::hasattr(o, "__dlpack__")) {
    PyErr_Format(PyExc_TypeError, "from_dlpack: %s has no __dlpack__; weft.tensor() copies lists and arrays",
                 Py_TYPE(o.ptr())->tp_name);
    throw nb::python_error();
  }
  const nb::object export_of = o.attr("__dlpack__");
  nb::object capsule;
  bool knows_versions = true;
  try {
    capsule = export_of(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;  // exporters before DLPack 1 do not know the argument
    capsule = export_of();
    knows_versions = false;
  }
  Tensor t = from_capsule(capsule, backend);
  // JAX is asked for a version that could say that memory may be written, and answers with one that can't: as
  // NumPy, it is not.
  if (knows_versions && PyCapsule_IsValid(capsule.ptr(), kPlainUsed)) make_read_only(t);
  return t;
}

nb::tuple dlpack_device(const Tensor& tensor) {
  if (!tensor.impl() || tensor.impl()->traced)
    throw Error(invalid("__dlpack_device__: a tensor inside a trace is on no device"));
  const auto& device = eager::device_of(*tensor.impl()).dl();
  return nb::make_tuple(static_cast<int>(device.device_type), device.device_id);
}

}  // namespace weft::python

#include <array>
#include <deque>
#include <vector>

#include "eager/apply.h"
#include "eager/faces/python.h"
#include "python/src/convert.h"
#include "python/src/module.h"
#include "weft/ops.h"

// A Python function for each op, made of its definition when the module is imported: parameters, defaults,
// documentation. One function in C++ serves all of them, so an op adds neither text nor time to compile.
namespace weft::python {
namespace {

/// What calls of one op are read by.
struct OpFunction {
  const ir::OpDef* op;
  std::vector<PyObject*> names;  // of the parameters, interned: operands, then attributes
  size_t operands = 0;           // that are listed
  std::vector<AttrValue> defaults;
  bool sized = false;  // an attribute says how large the result is
  std::string about;   // its documentation, with Python's names of errors
  std::string doc;     // that below a signature
  PyMethodDef method{};
};

/// The `self` of an op's function: where its definition is found.
struct OpSelf {
  PyObject_HEAD const OpFunction* function;
};

AttrValue attr_from(PyObject* o, const ir::AttrSpec& spec) {
  switch (spec.kind) {
    case ir::AttrKind::integer: return integer_from(o, spec.name);
    case ir::AttrKind::real: {
      const double value = PyFloat_AsDouble(o);
      if (value == -1 && PyErr_Occurred()) throw nb::python_error();
      return value;
    }
    case ir::AttrKind::boolean: {
      if (!PyBool_Check(o) && !PyLong_Check(o))
        raise_type_error(fmt::format("{} must be a bool, got {}", spec.name, Py_TYPE(o)->tp_name));
      return int64_t{PyObject_IsTrue(o)};
    }
    case ir::AttrKind::dtype: return std::string(name(dtype_from(o)));
    case ir::AttrKind::dims: return dims_from(o, spec.name);
    case ir::AttrKind::dim: return Shape{dim_from(o, spec.name)};
    case ir::AttrKind::string: break;
  }
  if (!PyUnicode_Check(o))
    raise_type_error(fmt::format("{} must be a str, got {}", spec.name, Py_TYPE(o)->tp_name));
  return std::string(PyUnicode_AsUTF8(o));
}

/// The arguments of a call by parameter; null: not given.
class Given {
 public:
  Given(const OpFunction& f, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) : f_(f) {
    const size_t most = f.names.size();
    size_t at = 0;
    if (self) given_[at++] = self;
    if (at + static_cast<size_t>(n) > most)
      raise_type_error(
          fmt::format("{}() takes {} arguments, got {}", f.op->name, most, at + static_cast<size_t>(n)));
    for (Py_ssize_t i = 0; i < n; ++i) given_[at++] = args[i];
    const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; i < named; ++i) put(PyTuple_GET_ITEM(names, i), args[n + i]);
  }
  PyObject* operator[](size_t i) const { return given_[i] == Py_None ? nullptr : given_[i]; }
  bool is_none(size_t i) const { return given_[i] == Py_None; }

 private:
  // Parameters as NumPy and PyTorch name them, so that np.sum(x, axis=0) and x.sum(dim=0) do what they say:
  // the parameters that such a name stands for.
  static std::span<const std::string_view> meant_by(PyObject* name) {
    static constexpr std::string_view kAxes[] = {"axes", "axis"}, kKeep[] = {"keep"};
    static constexpr std::pair<const char*, std::span<const std::string_view>> kNames[] = {
        {"axis", std::span(kAxes, 1)}, {"dim", kAxes}, {"keepdims", kKeep}, {"keepdim", kKeep}};
    for (const auto& [known, meant] : kNames)
      if (PyUnicode_CompareWithASCIIString(name, known) == 0) return meant;
    return {};
  }
  static bool is_one_of(PyObject* name, std::span<const std::string_view> names) {
    return std::ranges::any_of(
        names, [&](std::string_view one) { return PyUnicode_CompareWithASCIIString(name, one.data()) == 0; });
  }
  // np.sum(x) passes these to x.sum(), as None.
  static bool is_numpys(PyObject* name) {
    return PyUnicode_CompareWithASCIIString(name, "dtype") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "out") == 0;
  }
  bool has(PyObject* name) const {
    return std::ranges::any_of(f_.names, [&](PyObject* n) { return PyUnicode_Compare(n, name) == 0; });
  }

  void put(PyObject* name, PyObject* value) {
    const auto meant = has(name) ? std::span<const std::string_view>() : meant_by(name);
    if (value == Py_None && !has(name) && is_numpys(name)) return;
    for (size_t i = 0; i < f_.names.size(); ++i) {
      if (f_.names[i] != name && PyUnicode_Compare(f_.names[i], name) != 0 && !is_one_of(f_.names[i], meant))
        continue;
      if (given_[i])
        raise_type_error(fmt::format("{}() was given '{}' twice", f_.op->name, PyUnicode_AsUTF8(name)));
      given_[i] = value;
      return;
    }
    std::string all;
    for (PyObject* known : f_.names) all += std::string(all.empty() ? "" : ", ") + PyUnicode_AsUTF8(known);
    raise_type_error(
        fmt::format("{}() has no parameter '{}'; it has {}", f_.op->name, PyUnicode_AsUTF8(name), all));
  }

  const OpFunction& f_;
  PyObject* given_[ir::kMostOperands + 16] = {};
};

/// The operands of a call: tensors, and numbers that stand for tensors of the same dtype as the first tensor;
/// a mask counts only where there is no other, so that where(mask, x, 0) is of x's dtype.
class Operands {
 public:
  Operands(const OpFunction& f, const Given& given) {
    const Tensor* first = nullptr;
    for (size_t i = 0; i < f.operands && !(first && first->dtype() != DType::boolean); ++i)
      if (given[i] && is_tensor(given[i])) first = &tensor_in(given[i]);
    std::optional<Tensor> like;  // where(mask, 2, 0.5): numbers alone say what they are
    if (first && first->dtype() == DType::boolean && std::string_view(f.op->name) == "where")
      if (const auto dtype = dtype_of_numbers(f, given)) {
        const BesideTensor there(*first);
        like = full(0, {}, *dtype);
        first = &*like;
      }
    for (size_t i = 0; i < f.operands; ++i) tensors_[i] = operand(f, i, given[i], first);
    // How many are true, and what part of all, as NumPy counts.
    const std::string_view name = f.op->name;
    if ((name == "sum" || name == "mean") && tensors_[0]->dtype() == DType::boolean)
      tensors_[0] = &made_.emplace_back(cast(*tensors_[0], name == "sum" ? DType::i64 : DType::f32));
  }
  std::span<const Tensor* const> all(size_t n) const { return {tensors_, n}; }
  bool quick() const { return quick_; }

 private:
  // As weft.tensor() makes them; none where one is a tensor, or all are bools.
  static std::optional<DType> dtype_of_numbers(const OpFunction& f, const Given& given) {
    std::optional<DType> found;
    for (size_t i = 1; i < f.operands; ++i) {
      PyObject* const o = given[i];
      if (!o || is_tensor(o) || !is_number(o)) return {};
      if (PyFloat_Check(o)) found = DType::f32;
      if (PyLong_Check(o) && !PyBool_Check(o) && !found) found = DType::i64;
    }
    return found;
  }

  const Tensor* operand(const OpFunction& f, size_t i, PyObject* o, const Tensor* first) {
    const char* const name = f.op->inputs[i];
    if (!o) {
      const size_t needed = size_t{f.op->n_inputs} - f.op->n_optional;
      if (i < needed) raise_type_error(fmt::format("{}() wants '{}'", f.op->name, name));
      return &none_;
    }
    if (is_tensor(o)) {
      const Tensor& t = tensor_in(o);
      quick_ = quick_ && is_quick(t);
      return &t;
    }
    std::optional<Tensor> number = first ? operand_from(o, *first) : std::nullopt;
    if (!number)
      raise_type_error(fmt::format("{}(): '{}' must be a Tensor, got {}; weft.tensor() makes one", f.op->name,
                                   name, Py_TYPE(o)->tp_name));
    return &made_.emplace_back(std::move(*number));
  }

  const Tensor* tensors_[ir::kMostOperands];
  std::deque<Tensor> made_;
  Tensor none_;
  bool quick_ = true;
};

PyObject* call(const OpFunction& f, PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&] {
    const Given given(f, self, args, n, names);
    const Operands operands(f, given);
    std::vector<AttrValue> attrs;
    attrs.reserve(f.defaults.size());
    for (size_t i = 0; i < f.defaults.size(); ++i) {
      PyObject* const o = given[f.operands + i];
      if (given.is_none(f.operands + i) && f.op->attrs[i].kind == ir::AttrKind::integer)
        raise_type_error(fmt::format("{}(): {} must be an int, got None; left out, it is {}", f.op->name,
                                     f.op->attrs[i].name,
                                     faces::python_default(f.op->attrs[i], f.defaults[i])));
      attrs.push_back(o ? attr_from(o, f.op->attrs[i]) : f.defaults[i]);
    }
    Tensor out[8];
    const std::span results(out, f.op->n_outputs);
    {
      const Unlocked unlocked(operands.quick() && !f.sized && f.operands > 0);
      eager::apply(*f.op, operands.all(f.operands), attrs, results);
    }
    if (f.op->n_public == 0) return nb::none().release().ptr();
    return f.op->n_public == 1 ? to_object(std::move(out[0])) : to_tuple(results.first(f.op->n_public));
  });
}

PyObject* function(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(*reinterpret_cast<OpSelf*>(self)->function, nullptr, args, n, names);
}

constexpr size_t kMostOps = 256;
std::array<const OpFunction*, kMostOps> methods = {};

// A method is told the tensor and not which method it is, so each has a function.
template <size_t I>
PyObject* method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(*methods[I], self, args, n, names);
}
constexpr auto method_table = []<size_t... I>(std::index_sequence<I...>) {
  return std::array{method<I>...};
}(std::make_index_sequence<kMostOps>{});

// The first line is what inspect.signature() reads.
OpFunction* describe(const ir::OpDef& op) {
  auto* f = new OpFunction{
      .op = &op, .operands = op.listed(0), .defaults = op.defaults()};  // never freed, as types are
  for (size_t i = 0; i < f->operands; ++i)
    f->names.push_back(PyUnicode_InternFromString(faces::python_name(op.inputs[i]).c_str()));
  for (const auto& a : op.attrs) {
    f->names.push_back(PyUnicode_InternFromString(faces::python_name(a.name).c_str()));
    f->sized = f->sized || a.kind == ir::AttrKind::dims || a.kind == ir::AttrKind::dim;
  }
  f->about = op.doc;
  for (size_t at = 0; (at = f->about.find("invalid_argument", at)) != std::string::npos;)
    f->about.replace(at, 16, "weft.InvalidArgument");
  for (size_t i = 0; i < f->operands; ++i) {
    const std::string cpp = fmt::format("`{}`", op.inputs[i]),
                      ours = fmt::format("`{}`", PyUnicode_AsUTF8(f->names[i]));
    for (size_t at = 0; cpp != ours && (at = f->about.find(cpp, at)) != std::string::npos; at += ours.size())
      f->about.replace(at, cpp.size(), ours);
  }
  f->doc = fmt::format("{}({})\n--\n\n{}", op.name, faces::python_parameters(op, false), f->about);
  return f;
}

template <class F>
PyMethodDef definition(const OpFunction& f, F* code) {
  return {f.op->name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(code)),
          METH_FASTCALL | METH_KEYWORDS, f.doc.c_str()};
}

// Methods have the tensor as `self`, which their signature leaves out.
void add_method(const OpFunction& f) {
  static size_t count = 0;
  if (count == kMostOps) throw Error(fail(Code::internal, "more than {} ops: raise kMostOps", kMostOps));
  auto* m = new OpFunction(f);
  const std::string parameters = faces::python_parameters(*f.op, false);
  const size_t comma = parameters.find(", ");
  m->doc = fmt::format("{}($self{})\n--\n\n{}\n\n`{}` is this tensor.", f.op->name,
                       comma == std::string::npos ? "" : parameters.substr(comma), f.about, f.op->inputs[0]);
  m->method = definition(*m, method_table[count]);
  methods[count++] = m;
  const nb::object descriptor = nb::steal(PyDescr_NewMethod(tensor_type, &m->method));
  nb::borrow(reinterpret_cast<PyObject*>(tensor_type)).attr(f.op->name) = descriptor;
}

PyTypeObject* make_self_type() {
  static PyType_Slot slots[] = {{0, nullptr}};
  static PyType_Spec spec = {"weft._weft.Op", sizeof(OpSelf), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace

void bind_ops(nb::module_& m) {
  PyTypeObject* const self_type = make_self_type();
  if (!self_type) throw nb::python_error();
  const nb::str package("weft");
  for (const ir::OpDef* op : ir::all_ops()) {
    if (faces::takes_list(*op)) continue;
    OpFunction* f = describe(*op);
    f->method = definition(*f, function);
    OpSelf* self = PyObject_New(OpSelf, self_type);
    self->function = f;
    m.attr(op->name) =
        nb::steal(PyCFunction_NewEx(&f->method, reinterpret_cast<PyObject*>(self), package.ptr()));
    if (faces::is_method(*op) && !PyObject_HasAttrString(reinterpret_cast<PyObject*>(tensor_type), op->name))
      add_method(*f);
  }
}

}  // namespace weft::python

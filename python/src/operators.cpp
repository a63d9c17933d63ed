#include "python/src/operators.h"

#include <array>

#include "base/element.h"
#include "eager/apply.h"
#include "python/src/convert.h"
#include "weft/ops.h"

// Python's operators on tensors. They are slots of the type, so that `a + b` finds its function without a
// name being looked up.
namespace weft::python {
namespace {

/// Both operands of an operator, one of which is a tensor; a number beside it is made one. Nothing: the
/// operator is not for us.
struct Pair {
  Tensor a, b;
};
/// The tensor as what it becomes beside a number: a float makes integers and bools f32, an int makes bools
/// i64, as in PyTorch; otherwise the number takes the tensor's dtype. What compares keeps integers where they
/// hold the number, so that no digit is lost.
Tensor beside(const Tensor& t, PyObject* number, bool compares) {
  if (is_float(t.dtype()) || is_tensor(number) || !is_number(number)) return t;
  const bool whole = PyLong_Check(number) || PyIndex_Check(number) || is_bool(number);
  if (whole && (t.dtype() != DType::boolean || is_bool(number))) return t;
  if (compares && t.dtype() != DType::u8 && t.dtype() != DType::i8) {  // which are compared as f32
    const double value = PyFloat_AsDouble(number);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    if (may_stand_for(t.dtype(), value)) return t;
  }
  return cast(t, whole ? DType::i64 : DType::f32);
}
std::optional<Pair> pair_of(PyObject* a, PyObject* b, bool compares) {
  const bool first = is_tensor(a);
  PyObject* const number = first ? b : a;
  Tensor t = beside(tensor_in(first ? a : b), number, compares);
  auto other = operand_from(number, t);
  if (!other) return {};
  return first ? Pair{std::move(t), std::move(*other)} : Pair{std::move(*other), std::move(t)};
}

PyObject* not_for_us() { Py_RETURN_NOTIMPLEMENTED; }
/// An array of another library is none of our operands: an operator says so, or == would compare objects, and
/// be False.
PyObject* not_for_us(PyObject* a, PyObject* b) {
  PyObject* const other = is_tensor(a) ? b : a;
  if (!PyObject_HasAttrString(other, "__dlpack__") && !PyObject_HasAttrString(other, "__array__"))
    return not_for_us();
  // PyTorch's class is a Tensor, too.
  const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(other)));
  const nb::object module = nb::getattr(type, "__module__", nb::str("")), name = type.attr("__name__");
  PyErr_Format(PyExc_TypeError,
               "a weft.Tensor and a %S.%S: weft.from_dlpack(x) makes a tensor of it, on the same memory",
               module.ptr(), name.ptr());
  return nullptr;
}

/// An op of the table and the defaults of its attributes, looked up once.
struct Found {
  const ir::OpDef* op;
  std::vector<AttrValue> attrs;
};
template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }  // NOLINT: implicit on purpose
};
template <Name name>
const Found& op() {
  static const Found found = {ir::find_op(name.text), ir::find_op(name.text)->defaults()};
  return found;
}

Tensor apply_op(const Found& f, const Tensor& a, const Tensor& b) {
  const Tensor* const in[] = {&a, &b};
  const Unlocked unlocked(is_quick(a) && is_quick(b));
  return eager::apply_one(*f.op, in, f.attrs);
}

// ---- operators that are one op
template <Name name, bool compares = false>
PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (is_tensor(a) && is_tensor(b)) return to_object(apply_op(op<name>(), tensor_in(a), tensor_in(b)));
    const auto pair = pair_of(a, b, compares);
    return pair ? to_object(apply_op(op<name>(), pair->a, pair->b)) : not_for_us(a, b);
  });
}

// ---- and those that depend on the dtype
using Rule = Tensor (*)(const Tensor& a, const Tensor& b);
template <Rule rule>
PyObject* ruled(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    const auto pair = pair_of(a, b, false);
    if (!pair) return not_for_us(a, b);
    Tensor result;
    {
      const Unlocked unlocked(is_quick(pair->a) && is_quick(pair->b));
      result = rule(pair->a, pair->b);
    }
    return to_object(std::move(result));
  });
}

// Integers divide as Python's do: 7 / 2 is 3.5.
Tensor divided(const Tensor& a, const Tensor& b) {
  if (is_float(a.dtype())) return div(a, b);
  return div(cast(a, DType::f32), cast(b, DType::f32));
}
// As NumPy's and CPython's, whose // goes with %: x == (x // y) * y + x % y. The remainder of numbers without
// their signs is exact, so what it leaves is whole but for rounding, which goes down at a half as theirs
// does; a quotient itself may round up to the next integer. Where the signs differ, a remainder takes one
// more.
Tensor floor_divided_floats(const Tensor& a, const Tensor& b) {
  const BesideTensor there(a);
  const auto counted = [&](const Tensor& mask) { return cast(mask, a.dtype()); };
  const Tensor zero = full(0, {}, a.dtype()), size = abs(a), by = abs(b), rest = mod(size, by);
  const Tensor times = div(sub(size, rest), by);
  const Tensor below = sub(neg(times), counted(not_equal(rest, zero)));
  const Tensor quotient = where(logical_xor(less(a, zero), less(b, zero)), below, times);
  const Tensor down = floor(quotient), half = full(0.5, {}, a.dtype());
  return where(equal(b, zero), div(a, b), add(down, counted(less(half, sub(quotient, down)))));
}
// Nothing here overflows: the quotient towards 0, less 1 where that is above the true one.
Tensor floor_divided(const Tensor& a, const Tensor& b) {
  if (is_float(a.dtype())) return floor_divided_floats(a, b);
  const BesideTensor there(a);
  const Tensor zero = full(0, {}, a.dtype()), quotient = div(a, b), rest = sub(a, mul(quotient, b));
  const Tensor above = logical_and(not_equal(rest, zero), logical_xor(less(rest, zero), less(b, zero)));
  return sub(quotient, cast(above, a.dtype()));
}
// By squares, one for each of the 6 bits below 64. The power of 64 stands for all that is beyond: of numbers
// but 0, 1 and -1 none of those is in range. 1 / a^n is 0 but for 1 and -1, as integers divide.
Tensor raised_integers(const Tensor& a, const Tensor& b) {
  const BesideTensor there(a);
  const auto number = [&](double n) { return full(n, {}, a.dtype()); };
  const Tensor zero = number(0), one = number(1), negative = less(b, zero);
  const bool is_signed = a.dtype() != DType::u32 && a.dtype() != DType::u64 && a.dtype() != DType::u8;
  const Tensor times = is_signed ? where(negative, sub(zero, b), b) : b;
  Tensor power = is_signed ? where(negative, div(one, a), a) : a, product = one;
  for (int bit = 0; bit < 6; ++bit) {
    product = mul(product, where(not_equal(bit_and(times, number(1 << bit)), zero), power, one));
    power = mul(power, power);
  }
  const Tensor beyond = logical_or(less_equal(number(64), times), less(times, zero));  // of the least integer
  return mul(product, where(beyond, power, one));
}
Tensor raised_numbers(const Tensor& a, const Tensor& b) {
  const bool whole = !is_float(a.dtype()) && a.dtype() != DType::boolean && a.dtype() == b.dtype();
  return whole ? raised_integers(a, b) : power(a, b);
}
// A vector is a row on the left and a column on the right, as NumPy has it.
Tensor product(const Tensor& a, const Tensor& b) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (!row && !column) return matmul(a, b);
  Shape left = a.shape(), right = b.shape();
  if (row) left.insert(0, Dim(1));
  if (column) right.push_back(Dim(1));
  const Tensor whole = matmul(row ? reshape(a, left) : a, column ? reshape(b, right) : b);
  Shape shape = whole.shape();
  if (column) shape.pop_back();
  if (row) shape.erase(shape.size() - (column ? 1 : 2));
  return reshape(whole, shape);
}
Tensor both(const Tensor& a, const Tensor& b) {
  return a.dtype() == DType::boolean ? logical_and(a, b) : bit_and(a, b);
}
Tensor either(const Tensor& a, const Tensor& b) {
  return a.dtype() == DType::boolean ? logical_or(a, b) : bit_or(a, b);
}
Tensor one_of(const Tensor& a, const Tensor& b) {
  return a.dtype() == DType::boolean ? logical_xor(a, b) : bit_xor(a, b);
}

PyObject* raised(PyObject* a, PyObject* b, PyObject* modulo) {
  if (modulo != Py_None) return not_for_us();
  // The one power that is written often has an op that is exact and takes integers.
  const long times = is_tensor(a) && PyLong_Check(b) ? PyLong_AsLong(b) : -1;
  PyErr_Clear();
  if (times == 2) return guarded([&] { return to_object(square(tensor_in(a))); });
  return ruled<raised_numbers>(a, b);
}

// ---- of one operand
template <Tensor (*f)(const Tensor&)>
PyObject* unary(PyObject* x) {
  return guarded([&] {
    Tensor result;
    {
      const Unlocked unlocked(is_quick(tensor_in(x)));
      result = f(tensor_in(x));
    }
    return to_object(std::move(result));
  });
}
Tensor inverted(const Tensor& x) {
  const BesideTensor there(x);
  if (x.dtype() == DType::boolean) return logical_not(x);
  const Tensor zero = full(0, {}, x.dtype()), one = full(1, {}, x.dtype());
  return bit_xor(x, sub(zero, one));
}
PyObject* same(PyObject* x) { return Py_NewRef(x); }

// ---- in place
/// `x += y` writes into the memory of x, as in NumPy and PyTorch. Where a gradient is recorded a value does
/// not change: the name is given the new tensor.
PyObject* in_place(PyObject* x, binaryfunc f, PyObject* y, const char* sign) {
  nb::object made = nb::steal(f(x, y));
  if (!made.is_valid() || made.ptr() == Py_NotImplemented || !is_tensor(x)) return made.release().ptr();
  return guarded([&]() -> PyObject* {
    const Tensor& to = tensor_in(x);
    const Tensor& from = tensor_in(made.ptr());
    if (from.requires_grad()) {
      const bool leaf = to.requires_grad() && !(to.impl()->extra && to.impl()->extra->node);
      if (leaf)
        throw Error(
            invalid("tensor {} value: {} requires a gradient, so it can't be changed where gradients are "
                    "recorded; do it under "
                    "weft.no_grad()",
                    sign, text(to.type())));
      return made.release().ptr();
    }
    if (!(from.type() == to.type()))
      throw Error(invalid("tensor {} value: the result is {}, and the tensor is {}; write x = x {} value",
                          sign, text(from.type()), text(to.type()), std::string(sign, 1)));
    (void)assign(to, from);
    return Py_NewRef(x);
  });
}
template <binaryfunc f, Name sign>
PyObject* in_place_op(PyObject* x, PyObject* y) {
  return in_place(x, f, y, sign.text);
}
PyObject* squared(PyObject* a, PyObject* b) { return raised(a, b, Py_None); }
PyObject* raised_in_place(PyObject* x, PyObject* y, PyObject*) { return in_place(x, squared, y, "**="); }

PyObject* compared(PyObject* a, PyObject* b, int how) {
  switch (how) {
    case Py_LT: return binary<"less", true>(a, b);
    case Py_LE: return binary<"less_equal", true>(a, b);
    case Py_GT: return binary<"greater", true>(a, b);
    case Py_GE: return binary<"greater_equal", true>(a, b);
    case Py_EQ: return binary<"equal", true>(a, b);
    default: return binary<"not_equal", true>(a, b);
  }
}

// Equal tensors are equal element by element, so what makes a tensor a key is that it is the same object.
Py_hash_t identity_hash(PyObject* x) { return _Py_HashPointer(x); }

// ---- as a value
PyObject* value_of(PyObject* x) { return PyObject_CallMethod(x, "item", nullptr); }
int truth(PyObject* x) {
  const nb::object value = nb::steal(value_of(x));
  return value.is_valid() ? PyObject_IsTrue(value.ptr()) : -1;
}
PyObject* as_float(PyObject* x) {
  const nb::object value = nb::steal(value_of(x));
  return value.is_valid() ? PyNumber_Float(value.ptr()) : nullptr;
}
PyObject* as_int(PyObject* x) {
  const nb::object value = nb::steal(value_of(x));
  return value.is_valid() ? PyNumber_Long(value.ptr()) : nullptr;
}
PyObject* as_index(PyObject* x) {
  if (is_float(tensor_in(x).dtype())) {
    PyErr_SetString(PyExc_TypeError, "a tensor of floats is no index; only integers are");
    return nullptr;
  }
  return as_int(x);
}

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

}  // namespace

const PyType_Slot* operator_slots() {
  static const PyType_Slot slots[] = {
      {Py_nb_add, slot(binary<"add">)},
      {Py_nb_subtract, slot(binary<"sub">)},
      {Py_nb_multiply, slot(binary<"mul">)},
      {Py_nb_true_divide, slot(ruled<divided>)},
      {Py_nb_floor_divide, slot(ruled<floor_divided>)},
      {Py_nb_remainder, slot(binary<"mod">)},
      {Py_nb_power, slot(raised)},
      {Py_nb_matrix_multiply, slot(ruled<product>)},
      {Py_nb_and, slot(ruled<both>)},
      {Py_nb_or, slot(ruled<either>)},
      {Py_nb_xor, slot(ruled<one_of>)},
      {Py_nb_lshift, slot(binary<"shift_left">)},
      {Py_nb_rshift, slot(binary<"shift_right">)},
      {Py_nb_negative, slot(unary<neg>)},
      {Py_nb_positive, slot(same)},
      {Py_nb_absolute, slot(unary<abs>)},
      {Py_nb_invert, slot(unary<inverted>)},
      {Py_nb_inplace_add, slot(in_place_op<binary<"add">, "+=">)},
      {Py_nb_inplace_subtract, slot(in_place_op<binary<"sub">, "-=">)},
      {Py_nb_inplace_multiply, slot(in_place_op<binary<"mul">, "*=">)},
      {Py_nb_inplace_true_divide, slot(in_place_op<ruled<divided>, "/=">)},
      {Py_nb_inplace_floor_divide, slot(in_place_op<ruled<floor_divided>, "//=">)},
      {Py_nb_inplace_remainder, slot(in_place_op<binary<"mod">, "%=">)},
      {Py_nb_inplace_power, slot(raised_in_place)},
      {Py_nb_inplace_and, slot(in_place_op<ruled<both>, "&=">)},
      {Py_nb_inplace_or, slot(in_place_op<ruled<either>, "|=">)},
      {Py_nb_inplace_xor, slot(in_place_op<ruled<one_of>, "^=">)},
      {Py_tp_richcompare, slot(compared)},
      {Py_tp_hash, slot(identity_hash)},
      {Py_nb_bool, slot(truth)},
      {Py_nb_float, slot(as_float)},
      {Py_nb_int, slot(as_int)},
      {Py_nb_index, slot(as_index)},
      {0, nullptr},
  };
  return slots;
}

}  // namespace weft::python

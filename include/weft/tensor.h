#pragma once
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "weft/attr.h"
#include "weft/backends.h"

namespace weft {

namespace eager {
struct TensorImpl;
void retain(TensorImpl* impl);
void release(TensorImpl* impl);
}  // namespace eager

/// A typed array on a device, with gradients. Copying a Tensor copies the handle, not the elements.
///
/// Ops are free functions (weft/ops.h, generated from the op definitions). They run immediately, each by the
/// best kernel that accepts the call. Inside a trace a Tensor stands for a value of the graph, and reading
/// its elements is an error.
class Tensor {
 public:
  Tensor() = default;

  /// A tensor of `shape` on `backend` (empty: the default backend) with these elements, converted to `dtype`.
  /// T, here and below, is bool, float, double or an integer type of C++ (signed and unsigned char for 8
  /// bits).
  template <class T>
  static Tensor of(std::span<const T> elements, std::span<const int64_t> shape, DType dtype,
                   const std::string& backend = "");
  /// The same from braces, f32: `Tensor::of({1, 2, 3, 4}, {2, 2})`. Here, in `scalar` and beside an operator,
  /// a number that an integer dtype does not hold (0.5, 300 in u8, an infinity) is an error, and so is one
  /// that a float dtype makes infinite or zero.
  static Tensor of(std::initializer_list<double> elements, std::initializer_list<int64_t> shape,
                   DType dtype = DType::f32);
  /// From bytes laid out as `dtype`, row-major. `bytes` must have the size that shape and dtype give.
  static Tensor from_bytes(std::span<const std::byte> bytes, std::span<const int64_t> shape, DType dtype,
                           const std::string& backend = "");
  static Tensor scalar(double value, DType dtype = DType::f32);

  explicit operator bool() const { return impl_ != nullptr; }
  DType dtype() const;
  /// Dimensions; symbolic inside a trace.
  Shape shape() const;
  /// Dimensions as numbers. Raises inside a trace where one is symbolic.
  IntList sizes() const;
  Dim dim(int64_t axis) const;
  int64_t rank() const;
  TensorType type() const;
  std::string backend() const;

  /// Waits for the device and copies the elements out, converted: floats to integers truncate and saturate,
  /// integers to narrower ones wrap around, and bool is true for non-zero.
  template <class T>
  std::vector<T> to_vector() const;
  std::vector<std::byte> to_bytes() const;
  /// The one element of a tensor with one element.
  double item() const;
  /// A detached copy on another backend; the same tensor, with its gradient, if it is there already.
  Tensor to(const std::string& backend) const;

  /// A name for messages, states and checkpoints.
  Tensor& named(std::string name);
  const std::string& name() const;

  bool requires_grad() const;
  Tensor& requires_grad(bool on);
  /// The gradient accumulated by backward(); empty if there is none.
  Tensor grad() const;
  void clear_grad();
  /// Adds d(this)/d(leaf) to the gradient of every leaf that requires one; if it raises, to none. This tensor
  /// must have one element, unless `seed` gives its own gradient. Threads may share leaves if each calls
  /// backward() on its own tensor: gradients are added in any order; read grad() when all are done. Saved
  /// tensors are freed on the way: a second backward() through the same history is an error.
  void backward() const;
  /// With `keep`, the history is kept for another backward(). With `create_graph`, it is kept too, and
  /// gradients can be differentiated.
  void backward(const Tensor& seed, bool create_graph = false, bool keep = false) const;
  /// The same elements, without history.
  Tensor detach() const;

  // For the implementation.
  explicit Tensor(eager::TensorImpl* adopted) : impl_(adopted) {}
  eager::TensorImpl* impl() const { return impl_; }

  Tensor(const Tensor& o) : impl_(o.impl_) {
    if (impl_) eager::retain(impl_);
  }
  Tensor(Tensor&& o) noexcept : impl_(o.impl_) { o.impl_ = nullptr; }
  Tensor& operator=(Tensor o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor() {
    if (impl_) eager::release(impl_);
  }

 private:
  eager::TensorImpl* impl_ = nullptr;
};

/// The elements as nested lists, aligned, then the type, and the backend where it is not the default one:
///
///     [[ 1.5000, -2.0000],
///      [ 0.2500,     nan]]  f32[2, 2]
///
/// Floats have four digits after the point; if all are whole, none. They have an exponent if one is above
/// 1e8, or, unless all are whole, if one is below 1e-4 or they differ by more than a factor of 1,000. Above
/// 1,000 elements an axis shows its first and last three. Inside a trace, where no element can be read, it is
/// the type alone.
std::string text(const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// While it lives, this thread records no gradients.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
};

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);

}  // namespace weft

/// `fmt::print("{}", tensor)` prints its text.
template <>
struct fmt::formatter<weft::Tensor> : fmt::formatter<std::string_view> {
  fmt::format_context::iterator format(const weft::Tensor& tensor, fmt::format_context& context) const;
};

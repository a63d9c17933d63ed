#pragma once
#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

namespace weft {

/// A vector of trivially copyable elements that keeps up to N of them inline.
template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> list) : SmallVector(list.begin(), list.end()) {}
  explicit SmallVector(std::span<const T> s) : SmallVector(s.begin(), s.end()) {}
  explicit SmallVector(size_t n, T value = T{}) { resize(n, value); }
  template <class It>
    requires(!std::is_integral_v<It>)
  SmallVector(It first, It last) {
    for (; first != last; ++first) push_back(static_cast<T>(*first));
  }
  SmallVector(const SmallVector& o) { assign(o.data(), o.size_); }
  SmallVector(SmallVector&& o) noexcept : size_(o.size_), capacity_(o.capacity_), heap_(std::move(o.heap_)) {
    if (!heap_) std::memcpy(inline_, o.inline_, sizeof(T) * size_);
    o.size_ = 0, o.capacity_ = N;
  }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) assign(o.data(), o.size_);
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) std::destroy_at(this), std::construct_at(this, std::move(o));
    return *this;
  }

  T* data() { return heap_ ? heap_.get() : reinterpret_cast<T*>(inline_); }
  const T* data() const { return heap_ ? heap_.get() : reinterpret_cast<const T*>(inline_); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  operator std::span<const T>() const { return {data(), size_}; }  // NOLINT: implicit on purpose

  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1);
    data()[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void resize(size_t n, T value = T{}) {
    if (n > capacity_) grow(n);
    for (size_t i = size_; i < n; ++i) data()[i] = value;
    size_ = static_cast<uint32_t>(n);
  }
  /// Appends n elements for the caller to set, and points to the first.
  T* extend(size_t n) {
    if (size_ + n > capacity_) grow(size_ + n);
    size_ += static_cast<uint32_t>(n);
    return data() + size_ - n;
  }
  void insert(size_t at, T value) {
    push_back(value);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  void assign(const T* from, size_t n) {
    if (n > capacity_) grow(n);
    if (n) std::memmove(data(), from, n * sizeof(T));
    size_ = static_cast<uint32_t>(n);
  }
  void grow(size_t least) {
    const size_t n = std::max<size_t>(least, 2 * capacity_);
    auto bigger = std::make_unique<T[]>(n);
    std::copy(begin(), end(), bigger.get());
    heap_ = std::move(bigger);
    capacity_ = static_cast<uint32_t>(n);
  }

  uint32_t size_ = 0, capacity_ = N;
  std::unique_ptr<T[]> heap_;
  alignas(T) unsigned char inline_[sizeof(T) * N];
};

}  // namespace weft

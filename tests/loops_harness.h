#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>

#include "codegen/interpret.h"
#include "codegen/numbers.h"
#include "codegen/verify.h"
#include "loops/form.h"
#include "loops/loops.h"

// Drives the C table of a device and the records of provider `loops` directly, without seam.
extern "C" weft_code weft_negotiate_opencl(const weft_host*, const weft_backend**, weft_error*);

namespace weft::loops_test {

/// A tensor on the host. long double holds every value of every dtype.
struct T {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<long double> values;
};
inline int64_t count(const std::vector<int64_t>& shape) {
  return element_count(std::span<const int64_t>(shape));
}
inline T filled(DType t, std::vector<int64_t> shape, long double value = 0) {
  const size_t n = static_cast<size_t>(count(shape));
  return {t, std::move(shape), std::vector<long double>(n, value)};
}
/// Values that differ from element to element: small, both signs where the type has them.
inline T varied(DType t, std::vector<int64_t> shape, int seed = 1) {
  T x = filled(t, std::move(shape));
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761u;
  for (auto& v : x.values) {
    state = state * 1664525u + 1013904223u;
    const int n = static_cast<int>(state >> 24) - 128;
    const bool is_unsigned = t == DType::u32 || t == DType::u64 || t == DType::u8;
    v = is_float(t) ? n / 32.0L : t == DType::boolean ? n & 1 : is_unsigned ? (n + 128) / 2 : n / 2;
  }
  return x;
}

inline void encode(DType t, long double v, char* at) {
  uint64_t bits = 0;
  switch (t) {
    case DType::f64: bits = std::bit_cast<uint64_t>(static_cast<double>(v)); break;
    case DType::f32: bits = std::bit_cast<uint32_t>(static_cast<float>(v)); break;
    case DType::f16: bits = codegen::to_f16(static_cast<double>(v)); break;
    case DType::bf16: bits = codegen::to_bf16(static_cast<double>(v)); break;
    default: bits = v < 0 ? static_cast<uint64_t>(static_cast<int64_t>(v)) : static_cast<uint64_t>(v);
  }
  std::memcpy(at, &bits, byte_size(t));
}
inline long double decode(DType t, const char* at) {
  uint64_t b = 0;
  std::memcpy(&b, at, byte_size(t));
  switch (t) {
    case DType::f64: return std::bit_cast<double>(b);
    case DType::f32: return std::bit_cast<float>(static_cast<uint32_t>(b));
    case DType::f16: return codegen::from_f16(static_cast<uint16_t>(b));
    case DType::bf16: return codegen::from_bf16(static_cast<uint16_t>(b));
    case DType::i32: return static_cast<int32_t>(b);
    case DType::i64: return static_cast<int64_t>(b);
    case DType::i8: return static_cast<int8_t>(b);
    default: return b;
  }
}
inline std::vector<char> bytes_of(const T& t) {
  std::vector<char> bytes(t.values.size() * byte_size(t.dtype));
  for (size_t i = 0; i < t.values.size(); ++i)
    encode(t.dtype, t.values[i], bytes.data() + i * byte_size(t.dtype));
  return bytes;
}
inline T from_bytes(DType dtype, std::vector<int64_t> shape, const std::vector<char>& bytes) {
  T t = filled(dtype, std::move(shape));
  for (size_t i = 0; i < t.values.size(); ++i)
    t.values[i] = decode(dtype, bytes.data() + i * byte_size(dtype));
  return t;
}

/// A weft_call with its own storage. Do not move it once `call()` was asked.
class CallBox {
 public:
  explicit CallBox(std::string op) : op_(std::move(op)) {}
  CallBox& in(DType t, std::vector<int64_t> max) { return types(inputs_, t, max, max); }
  CallBox& in(DType t, std::vector<int64_t> max, std::vector<int64_t> min) {
    return types(inputs_, t, max, min);
  }
  CallBox& out(DType t, std::vector<int64_t> max) { return types(outputs_, t, max, max); }
  CallBox& out(DType t, std::vector<int64_t> max, std::vector<int64_t> min) {
    return types(outputs_, t, max, min);
  }
  CallBox& attr(std::string name, int64_t v) {
    return put({std::move(name), WEFT_ATTR_INT, v, 0, {}, {}, {}});
  }
  CallBox& attr(std::string name, int v) { return attr(std::move(name), int64_t{v}); }
  CallBox& attr(std::string name, double v) {
    return put({std::move(name), WEFT_ATTR_FLOAT, 0, v, {}, {}, {}});
  }
  CallBox& attr(std::string name, std::vector<int64_t> v) {
    return put({std::move(name), WEFT_ATTR_INTS, 0, 0, std::move(v), {}, {}});
  }
  CallBox& attr(std::string name, const char* v) {
    return put({std::move(name), WEFT_ATTR_STRING, 0, 0, {}, v, {}});
  }
  CallBox& update(uint32_t output, uint32_t input) {
    updates_[output] = input;
    return *this;
  }
  /// Adds a step of the body: operands by value number. Gives the number of its value. After the inputs.
  uint32_t step(CallBox& box, std::vector<uint32_t> operands) {
    const uint32_t value = static_cast<uint32_t>(inputs_.size() + steps_.size());
    steps_.push_back({std::make_unique<CallBox>(std::move(box)), std::move(operands), value, {}});
    return value;
  }
  CallBox& results(std::vector<uint32_t> values) {
    results_ = std::move(values);
    return *this;
  }
  weft_type& input_type(size_t k) { return inputs_[k].type; }
  std::vector<int64_t> output_shape(size_t k) const { return outputs_[k].max; }
  DType output_dtype(size_t k) const { return outputs_[k].dtype; }
  size_t n_outputs() const { return outputs_.size(); }
  uint64_t accumulate = 0;
  uint32_t determinism = 0;

  const weft_call& call() {
    fill();
    if (steps_.empty()) return call_;
    region_ = {};
    region_.size = sizeof region_;
    values_ = in_;
    step_list_.clear();
    for (Step& s : steps_) {
      s.step = {sizeof s.step, 0, &s.box->call(), s.operands.data(), &s.value};
      step_list_.push_back(&s.step);
      values_.push_back(s.box->out_[0]);
    }
    region_.n_values = static_cast<uint32_t>(values_.size());
    region_.values = values_.data();
    region_.n_inputs = static_cast<uint32_t>(in_.size());
    region_.n_steps = static_cast<uint32_t>(step_list_.size());
    region_.steps = step_list_.data();
    region_.outputs = results_.data();
    call_.region = &region_;
    return call_;
  }

 private:
  struct Type {
    DType dtype;
    std::vector<int64_t> max, min;
    weft_type type{};
  };
  struct AttrBox {
    std::string name;
    uint32_t kind;
    int64_t i;
    double f;
    std::vector<int64_t> ints;
    std::string text;
    weft_attr attr;
  };
  struct Step {
    std::unique_ptr<CallBox> box;
    std::vector<uint32_t> operands;
    uint32_t value;
    weft_step step;
  };
  CallBox& types(std::deque<Type>& list, DType t, std::vector<int64_t> max, std::vector<int64_t> min) {
    list.push_back({t, std::move(max), std::move(min)});
    weft_type& c = list.back().type;
    c.size = sizeof c;
    c.dtype = {info(t).dlpack_code, static_cast<uint8_t>(8 * byte_size(t)), 1};
    c.rank = static_cast<int32_t>(list.back().max.size());
    c.alignment = 64;
    return *this;
  }
  CallBox& put(AttrBox a) {
    attrs_.push_back(std::move(a));
    return *this;
  }
  static void point(std::deque<Type>& from, std::vector<const weft_type*>& to) {
    to.clear();
    for (Type& t : from) {
      t.type.min = t.min.data();
      t.type.max = t.max.data();
      to.push_back(&t.type);
    }
  }
  void fill() {
    point(inputs_, in_);
    point(outputs_, out_);
    attr_.clear();
    for (AttrBox& a : attrs_) {
      a.attr = {sizeof a.attr,
                a.kind,
                a.name.c_str(),
                a.i,
                a.f,
                a.ints.data(),
                a.text.c_str(),
                a.kind == WEFT_ATTR_INTS ? a.ints.size() : a.text.size()};
      attr_.push_back(&a.attr);
    }
    call_ = {};
    call_.size = sizeof call_;
    call_.op_version = 1;
    call_.op = op_.c_str();
    call_.n_inputs = static_cast<uint32_t>(in_.size());
    call_.n_outputs = static_cast<uint32_t>(out_.size());
    call_.n_attrs = static_cast<uint32_t>(attr_.size());
    call_.determinism = determinism;
    call_.inputs = in_.data();
    call_.outputs = out_.data();
    call_.attrs = attr_.data();
    call_.accumulate = accumulate;
    update_inputs_.assign(out_.size(), UINT32_MAX);
    for (auto [output, input] : updates_)
      call_.updates |= uint64_t{1} << output, update_inputs_[output] = input;
    call_.update_inputs = update_inputs_.data();
  }

  std::string op_;
  std::deque<Type> inputs_, outputs_;
  std::deque<AttrBox> attrs_;
  std::deque<Step> steps_;
  std::map<uint32_t, uint32_t> updates_;
  std::vector<uint32_t> results_, update_inputs_;
  std::vector<const weft_type*> in_, out_, values_;
  std::vector<const weft_attr*> attr_;
  std::vector<const weft_step*> step_list_;
  weft_call call_{};
  weft_region region_{};
};

/// The host services that a backend sees in these tests: no log, and a disk cache in memory.
struct Host {
  static std::map<std::string, std::vector<char>>& cache() {
    static std::map<std::string, std::vector<char>> c;
    return c;
  }
  static uint64_t get(const char* key, void* bytes, uint64_t capacity) {
    const auto found = cache().find(key);
    if (found == cache().end()) return 0;
    if (bytes) std::memcpy(bytes, found->second.data(), std::min<uint64_t>(capacity, found->second.size()));
    return found->second.size();
  }
  static void put(const char* key, const void* bytes, uint64_t n) {
    const char* from = static_cast<const char*>(bytes);
    cache()[key].assign(from, from + n);
  }
  static const weft_host& table() {
    static const weft_host h = {sizeof h, WEFT_ABI_MIN, WEFT_ABI,     0, nullptr, nullptr,
                                get,      put,          loops::render};
    return h;
  }
};

inline weft_error no_error() {
  weft_error e{};
  e.size = sizeof e;
  return e;
}

/// A tensor on a device, three elements into a buffer whose ends hold a pattern that nothing may touch.
class Placed {
 public:
  Placed(const weft_backend& b, weft_device d, weft_queue q, DType t, std::vector<int64_t> shape)
      : b_(b), d_(d), q_(q), dtype_(t), shape_(std::move(shape)) {
    margin_ = 3 * byte_size(t);
    n_ = static_cast<size_t>(count(shape_)) * byte_size(t);
    weft_error e = no_error();
    EXPECT_EQ(b.allocate(d, n_ + 2 * margin_, &handle_, &e), WEFT_OK) << e.text;
    move(std::vector<char>(n_ + 2 * margin_, 0x5a), 0);
    tensor.dl = {handle_,
                 {kDLOpenCL, 0},
                 static_cast<int32_t>(shape_.size()),
                 {info(t).dlpack_code, static_cast<uint8_t>(8 * byte_size(t)), 1},
                 shape_.data(),
                 nullptr,
                 margin_};
    tensor.size = sizeof tensor;
    tensor.alignment = byte_size(t);
  }
  ~Placed() { b_.free(d_, handle_); }
  Placed(const Placed&) = delete;
  void write(const T& t) { move(bytes_of(t), margin_); }
  T read() {
    std::vector<char> all(n_ + 2 * margin_);
    weft_copy c{sizeof c, 0, handle_, 0, nullptr, 0, nullptr, all.data(), all.size()};
    weft_error e = no_error();
    EXPECT_EQ(b_.copy(q_, &c, &e), WEFT_OK) << e.text;
    for (size_t i = 0; i < margin_; ++i)
      EXPECT_TRUE(all[i] == 0x5a && all[all.size() - 1 - i] == 0x5a) << "wrote outside the tensor";
    return from_bytes(dtype_, shape_, {all.begin() + static_cast<ptrdiff_t>(margin_), all.end()});
  }
  weft_tensor tensor{};

 private:
  void move(const std::vector<char>& bytes, size_t at) {
    weft_copy c{sizeof c, 0, nullptr, 0, handle_, at, bytes.data(), nullptr, bytes.size()};
    weft_error e = no_error();
    EXPECT_EQ(b_.copy(q_, &c, &e), WEFT_OK) << e.text;
  }
  const weft_backend& b_;
  weft_device d_;
  weft_queue q_;
  DType dtype_;
  std::vector<int64_t> shape_;
  size_t n_ = 0, margin_ = 0;
  void* handle_ = nullptr;
};

inline const loops::Form* find_form(std::string_view op) {
  for (auto forms :
       {loops::elementwise_forms(), loops::fold_forms(), loops::move_forms(), loops::index_forms()})
    for (const loops::Form& f : forms)
      if (op == f.op) return &f;
  return nullptr;
}

/// Runs the kernels of a call in the interpreter.
inline std::vector<T> interpreted(CallBox& box, const std::vector<T>& in,
                                  const std::vector<std::vector<int64_t>>& shapes) {
  const weft_call& call = box.call();
  const loops::Form& form = *find_form(call.region ? "region" : call.op);
  std::deque<std::vector<char>> bytes;
  std::deque<weft_tensor> tensors;
  const auto place = [&](DType t, const std::vector<int64_t>& shape, std::vector<char> b) {
    bytes.push_back(std::move(b));
    weft_tensor w{};
    w.dl = {bytes.back().data(),
            {kDLCPU, 0},
            static_cast<int32_t>(shape.size()),
            {info(t).dlpack_code, static_cast<uint8_t>(8 * byte_size(t)), 1},
            const_cast<int64_t*>(shape.data()),
            nullptr,
            0};
    tensors.push_back(w);
    return &tensors.back();
  };
  std::vector<const weft_tensor*> ins, outs;
  for (const T& t : in) ins.push_back(place(t.dtype, t.shape, bytes_of(t)));
  for (size_t k = 0; k < shapes.size(); ++k)
    outs.push_back(place(box.output_dtype(k), shapes[k],
                         std::vector<char>(count(shapes[k]) * byte_size(box.output_dtype(k)))));
  for (uint32_t k = 0; k < 2; ++k) {
    loops::Job job;
    if (!(form.needed(call) >> k & 1) || !form.bind({call, ins, outs}, k, job)) continue;
    const codegen::LoopKernel kernel = form.build(call, k);
    const Status good = codegen::verify(kernel);
    EXPECT_TRUE(good.ok()) << good.text();
    std::vector<codegen::HostBuffer> buffers;
    for (const weft_tensor* t : job.buffers)
      buffers.push_back({t->dl.data, element_count(std::span<const int64_t>(t->dl.shape, t->dl.ndim))});
    const Status ran =
        codegen::interpret(kernel, buffers, std::span<const int32_t>(job.scalars.data(), job.scalars.size()));
    EXPECT_TRUE(ran.ok()) << ran.text();
  }
  std::vector<T> results;
  for (size_t k = 0; k < shapes.size(); ++k)
    results.push_back(from_bytes(box.output_dtype(k), shapes[k], bytes[in.size() + k]));
  return results;
}

/// NaN equals NaN; floats may differ by `tolerance` relative to the larger side (at least 1).
inline void expect_near(const T& got, const T& wanted, double tolerance, const char* who) {
  ASSERT_EQ(got.values.size(), wanted.values.size()) << who;
  for (size_t i = 0; i < got.values.size(); ++i) {
    const long double g = got.values[i], w = wanted.values[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    const bool near = is_float(got.dtype) && std::abs(g - w) <= tolerance * std::max(1.0L, std::abs(w));
    ASSERT_TRUE(near) << who << ": element " << i << " of " << name(got.dtype) << ": got " << g << ", wanted "
                      << w;
  }
}
inline double tolerance_of(DType t) {
  return t == DType::f64 ? 1e-13 : t == DType::f32 ? 3e-6 : 1.01 * epsilon(t);
}

}  // namespace weft::loops_test

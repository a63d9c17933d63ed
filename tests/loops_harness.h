#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>

#include "codegen/numbers.h"
#include "weft/attr.h"
#include "weft/backend.h"

// Tensors on the host and calls with their own storage.
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

}  // namespace weft::loops_test

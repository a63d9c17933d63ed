#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>
#include <variant>

#include "weft/backend.hpp"
#include "weft/shared/numbers.hpp"

// Drives a backend's C table directly, as the seam will: types and attributes in, bytes out.
extern "C" weft_code weft_negotiate_reference(const weft_host*, const weft_backend**, weft_error*);
extern "C" weft_code weft_negotiate_null(const weft_host*, const weft_backend**, weft_error*);

namespace weft::harness {

/// A tensor in the test's memory.
struct Value {
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
  std::vector<char> bytes;

  Value(DType t, std::vector<int64_t> d)
      : dtype(t), dims(std::move(d)), bytes(size() * byte_size(t), char(0x5a)) {}
  /// Each element is the value rounded to the type; integers beyond 2^53 need `of`.
  Value(DType t, std::vector<int64_t> d, const std::vector<double>& values) : Value(t, std::move(d)) {
    EXPECT_EQ(size(), values.size());
    shared::visit<shared::Kinds::all>(t, [&]<class T>(shared::Tag<T>) {
      for (size_t i = 0; i < values.size(); ++i) at<T>(i) = shared::store<T>(values[i]);
    });
  }
  template <class T>
  static Value of(DType t, std::vector<int64_t> d, const std::vector<T>& values) {
    Value v(t, std::move(d));
    std::memcpy(v.bytes.data(), values.data(), v.bytes.size());
    return v;
  }
  size_t size() const {
    size_t n = 1;
    for (const int64_t d : dims) n *= size_t(d);
    return n;
  }
  template <class T>
  T& at(size_t i) {
    return reinterpret_cast<T*>(bytes.data())[i];
  }
  template <class T>
  const T& at(size_t i) const {
    return reinterpret_cast<const T*>(bytes.data())[i];
  }
  std::vector<double> doubles() const {
    std::vector<double> out(size());
    shared::visit<shared::Kinds::all>(dtype, [&]<class T>(shared::Tag<T>) {
      for (size_t i = 0; i < out.size(); ++i) out[i] = double(shared::load(at<T>(i)));
    });
    return out;
  }
  std::string text() const { return backend::format("{}{} {}", dtype, dims, doubles()); }
};

struct Attr {
  const char* name;
  std::variant<int64_t, double, std::vector<int64_t>, std::string> value;
};
using Attrs = std::vector<Attr>;

/// The C form of a call; owns everything that it points to.
class Call {
 public:
  Call(const char* op, const std::vector<Value>& inputs, const std::vector<Value>& outputs,
       const Attrs& attrs) {
    for (const Value& v : inputs) inputs_.push_back(type(v));
    for (const Value& v : outputs) outputs_.push_back(type(v));
    for (const Attr& a : attrs) attrs_.push_back(attr(kept_.emplace_back(a)));
    call.size = sizeof call;
    call.op_version = 1;
    call.op = op;
    call.n_inputs = uint32_t(inputs_.size());
    call.n_outputs = uint32_t(outputs_.size());
    call.n_attrs = uint32_t(attrs_.size());
    call.inputs = inputs_.data();
    call.outputs = outputs_.data();
    call.attrs = attrs_.data();
  }
  Call(const Call&) = delete;
  weft_type& input(size_t i) { return const_cast<weft_type&>(*inputs_[i]); }

  weft_call call{};

 private:
  const weft_type* type(const Value& v) {
    const auto& dims = dims_.emplace_back(v.dims);
    const DTypeInfo& d = info(v.dtype);
    return &types_.emplace_back(weft_type{.size = sizeof(weft_type),
                                          .dtype = {d.dlpack_code, uint8_t(8 * d.bytes), 1},
                                          .rank = int32_t(dims.size()),
                                          .layout = 0,
                                          .min = dims.data(),
                                          .max = dims.data(),
                                          .strides = nullptr,
                                          .alignment = 64});
  }
  const weft_attr* attr(const Attr& from) {
    weft_attr& a =
        made_.emplace_back(weft_attr{.size = sizeof(weft_attr), .kind = uint32_t(from.value.index())});
    a.name = from.name;
    if (auto* i = std::get_if<int64_t>(&from.value)) a.i = *i;
    if (auto* f = std::get_if<double>(&from.value)) a.f = *f;
    if (auto* list = std::get_if<std::vector<int64_t>>(&from.value))
      a.ints = list->data(), a.n = list->size();
    if (auto* s = std::get_if<std::string>(&from.value)) a.bytes = s->c_str(), a.n = s->size();
    return &a;
  }

  std::deque<std::vector<int64_t>> dims_;
  std::deque<weft_type> types_;
  std::deque<Attr> kept_;
  std::deque<weft_attr> made_;
  std::vector<const weft_type*> inputs_, outputs_;
  std::vector<const weft_attr*> attrs_;
};

/// A host with a given number of threads.
template <int threads>
const weft_host* host() {
  static const weft_host made = {
      .size = sizeof(weft_host),
      .abi_min = WEFT_ABI_MIN,
      .abi_max = WEFT_ABI,
      .reserved = 0,
      .log = [](uint32_t, const char*) {},
      .parallel_for =
          [](int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
            const int64_t piece = std::max(grain, (n + threads - 1) / threads);
            std::vector<std::thread> pool;
            for (int64_t at = 0; at < n; at += piece)
              pool.emplace_back([=] { body(context, at, std::min(n, at + piece)); });
            for (auto& thread : pool) thread.join();
          },
      .cache_get = nullptr,
      .cache_put = nullptr,
      .render = nullptr,
  };
  return &made;
}

struct Options {
  uint64_t accumulate = 0;
  std::vector<uint32_t> updates;  ///< output k is written over the input updates[k]; empty: none is
};
struct Result {
  weft_code code = WEFT_OK;
  std::string text;
  std::vector<Value> outputs;
};

/// A device with one queue.
class Device {
 public:
  Device(weft_negotiate_fn negotiate, const weft_host* host) {
    EXPECT_EQ(negotiate(host, &table, &error), WEFT_OK) << error.text;
    capability.size = sizeof capability;
    EXPECT_EQ(table->open_device(0, &device, &capability, &error), WEFT_OK) << error.text;
    EXPECT_EQ(table->open_queue(device, &queue, &error), WEFT_OK) << error.text;
    EXPECT_EQ(table->kernels(device, &kernels, &n_kernels, &error), WEFT_OK) << error.text;
  }
  Device(const Device&) = delete;
  ~Device() {
    table->close_queue(queue);
    table->close_device(device);
  }
  static weft_negotiate_fn plugin(const char* name) {
    const std::string path = std::string(WEFT_BINARY_DIR "/plugins/") + name + ".so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) ADD_FAILURE() << dlerror();
    return library == nullptr ? nullptr
                              : reinterpret_cast<weft_negotiate_fn>(dlsym(library, "weft_negotiate"));
  }

  /// The first kernel that takes the call; otherwise null, with every refusal in `why`.
  const weft_kernel* find(const weft_call& call, std::string* why = nullptr) {
    for (uint32_t i = 0; i < n_kernels; ++i) {
      if (std::string_view(kernels[i]->op) != call.op) continue;
      const weft_code code = kernels[i]->accepts(kernels[i], device, &call, &error);
      if (code == WEFT_OK) return kernels[i];
      if (why != nullptr) *why += backend::format("{} {}\n", kernels[i]->id, error.text);
    }
    return nullptr;
  }
  void* upload(const Value& v) {
    void* handle = nullptr;
    EXPECT_EQ(table->allocate(device, v.bytes.size(), &handle, &error), WEFT_OK) << error.text;
    weft_copy c{.size = sizeof c, .target = handle, .host_source = v.bytes.data(), .bytes = v.bytes.size()};
    EXPECT_EQ(table->copy(queue, &c, &error), WEFT_OK) << error.text;
    return handle;
  }
  void download(void* handle, Value& v) {
    weft_copy c{.size = sizeof c, .source = handle, .host_target = v.bytes.data(), .bytes = v.bytes.size()};
    EXPECT_EQ(table->copy(queue, &c, &error), WEFT_OK) << error.text;
  }
  weft_code synchronize() { return table->synchronize(queue, &error); }

  /// Enqueues only. The host's structs are destroyed when it returns, as the contract allows.
  weft_code launch(const weft_plan& plan, const std::vector<void*>& in, const std::vector<void*>& out) {
    std::deque<weft_tensor> tensors;
    std::vector<const weft_tensor*> inputs, outputs;
    auto add = [&](const weft_type* type, void* handle, std::vector<const weft_tensor*>& to) {
      weft_tensor& t = tensors.emplace_back();
      t.dl = {
          .data = handle, .ndim = type->rank, .dtype = type->dtype, .shape = const_cast<int64_t*>(type->max)};
      t.size = sizeof t;
      t.alignment = 64;
      to.push_back(&t);
    };
    for (size_t i = 0; i < in.size(); ++i) add(plan.call->inputs[i], in[i], inputs);
    for (size_t i = 0; i < out.size(); ++i) add(plan.call->outputs[i], out[i], outputs);
    const weft_launch l{.size = sizeof l,
                        .plan = &plan,
                        .device = device,
                        .queue = queue,
                        .inputs = inputs.data(),
                        .outputs = outputs.data(),
                        .workspace = nullptr};
    return plan.kernel->launch(&l, &error);
  }

  /// A whole call: select, upload, launch, synchronize, download. `outputs` gives types and previous
  /// contents.
  Result run(const char* op, const std::vector<Value>& inputs, std::vector<Value> outputs,
             const Attrs& attrs = {}, const Options& options = {}) {
    Call c(op, inputs, outputs, attrs);
    c.call.accumulate = options.accumulate;
    c.call.update_inputs = options.updates.empty() ? nullptr : options.updates.data();
    for (size_t k = 0; k < options.updates.size(); ++k)
      if (options.updates[k] != UINT32_MAX) c.call.updates |= uint64_t{1} << k;
    Result result;
    const weft_kernel* kernel = find(c.call, &result.text);
    if (kernel == nullptr) return {WEFT_UNSUPPORTED, result.text, {}};
    const weft_plan plan{
        .size = sizeof plan, .determinism = kernel->determinism, .kernel = kernel, .call = &c.call};
    std::vector<void*> in, out;
    for (const Value& v : inputs) in.push_back(upload(v));
    for (size_t k = 0; k < outputs.size(); ++k) {
      const bool updates = c.call.updates >> k & 1;
      out.push_back(updates ? in[options.updates[k]] : upload(outputs[k]));
    }
    result.code = launch(plan, in, out);
    if (result.code == WEFT_OK) result.code = synchronize();
    if (result.code != WEFT_OK) result.text = error.text;
    (void)synchronize();  // a refused launch leaves uploads pending, whose buffers must not be freed
    for (size_t k = 0; k < outputs.size(); ++k) {
      download(out[k], outputs[k]);
      if (!(c.call.updates >> k & 1)) table->free(device, out[k]);
    }
    for (void* handle : in) table->free(device, handle);
    result.outputs = std::move(outputs);
    return result;
  }

  const weft_backend* table = nullptr;
  weft_device device = nullptr;
  weft_queue queue = nullptr;
  weft_capability capability{};
  const weft_kernel* const* kernels = nullptr;
  uint32_t n_kernels = 0;
  weft_error error{.size = sizeof(weft_error), .text = {}};
};

/// One of each for the whole test: reference on one thread, the others on three.
inline Device& reference() {
  static Device d(weft_negotiate_reference, host<1>());
  return d;
}
inline Device& far() {
  static Device d(Device::plugin("far"), host<3>());
  return d;
}
inline Device& plain_template() {
  static Device d(Device::plugin("template"), host<3>());
  return d;
}

}  // namespace weft::harness

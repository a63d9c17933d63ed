#pragma once
#include <limits>

#include "codegen/interpret.h"
#include "codegen/verify.h"
#include "loops/form.h"
#include "loops/loops.h"
#include "loops/stage.h"
#include "loops_harness.h"

// Drives the C table of the backend and the records of provider `loops` directly, without seam.
extern "C" weft_code weft_negotiate_opencl(const weft_host*, const weft_backend**, weft_error*);

// A device of the backend opencl, its `loops` records, and the check of every run against the interpreter.
namespace weft::loops_test {

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

constexpr uint32_t kSubgroup = 32;  // of the kernels that the interpreter runs

inline const loops::Form* find_form(std::string_view op) {
  for (auto forms : {loops::elementwise_forms(), loops::fold_forms(), loops::fused_forms(),
                     loops::move_forms(), loops::index_forms()})
    for (const loops::Form& f : forms)
      if (op == f.op) return &f;
  return nullptr;
}

/// The form that takes the call, in the order in which the provider lists them.
inline const loops::Form* form_for(const weft_call& call) {
  const std::string_view op = call.region ? "region" : call.op;
  for (auto forms : {loops::elementwise_forms(), loops::fused_forms(), loops::fold_forms(),
                     loops::move_forms(), loops::index_forms()})
    for (const loops::Form& f : forms)
      if (op == f.op && (f.stages ? f.stages(call, kSubgroup).ok() : f.check(call).ok())) return &f;
  return nullptr;
}

/// Runs a kernel in the interpreter.
inline void interpret(const codegen::LoopKernel& kernel, const std::vector<codegen::HostBuffer>& buffers,
                      const loops::Scalars& scalars) {
  const Status good = codegen::verify(kernel);
  EXPECT_TRUE(good.ok()) << good.text();
  const Status ran =
      codegen::interpret(kernel, buffers, std::span<const int32_t>(scalars.data(), scalars.size()));
  EXPECT_TRUE(ran.ok()) << ran.text();
}
inline codegen::HostBuffer host_buffer(const weft_tensor* t) {
  return {t->dl.data, element_count(std::span<const int64_t>(t->dl.shape, static_cast<size_t>(t->dl.ndim)))};
}
inline void interpret_stages(const loops::Stages& stages, const std::vector<const weft_tensor*>& ins,
                             const std::vector<const weft_tensor*>& outs) {
  std::vector<char> workspace(stages.workspace);
  for (const loops::Stage& s : stages.list) {
    std::vector<codegen::HostBuffer> buffers;
    for (const loops::Bound& b : s.buffers) {
      if (b.kind == loops::Bound::Kind::scratch)
        buffers.push_back({workspace.data() + b.offset,
                           static_cast<int64_t>((workspace.size() - b.offset) / byte_size(b.dtype))});
      else
        buffers.push_back(host_buffer((b.kind == loops::Bound::Kind::input ? ins : outs)[b.index]));
    }
    interpret(s.kernel, buffers, s.scalars);
  }
}

/// Runs the kernels of a call in the interpreter.
inline std::vector<T> interpreted(CallBox& box, const std::vector<T>& in,
                                  const std::vector<std::vector<int64_t>>& shapes) {
  const weft_call& call = box.call();
  const loops::Form& form = *form_for(call);
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
  if (form.stages) interpret_stages(form.stages(call, kSubgroup).value(), ins, outs);
  for (uint32_t k = 0; k < 2 && !form.stages; ++k) {
    loops::Job job;
    if (!(form.needed(call) >> k & 1) || !form.bind({call, ins, outs}, k, job)) continue;
    std::vector<codegen::HostBuffer> buffers;
    for (const weft_tensor* t : job.buffers) buffers.push_back(host_buffer(t));
    interpret(form.build(call, k), buffers, job.scalars);
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

using enum DType;
inline constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();
inline constexpr long double kInf = std::numeric_limits<long double>::infinity();
using Sizes = std::vector<int64_t>;

class Loops : public ::testing::Test {
 protected:
  void SetUp() override {
    weft_error e = no_error();
    ASSERT_EQ(weft_negotiate_opencl(&Host::table(), &backend_, &e), WEFT_OK) << e.text;
    weft_probe p{};
    p.size = sizeof p;
    ASSERT_EQ(backend_->probe(&p, &e), WEFT_OK) << e.text;
    if (p.n_devices == 0) GTEST_SKIP() << p.reason;
    capability_.size = sizeof capability_;
    ASSERT_EQ(backend_->open_device(0, &device_, &capability_, &e), WEFT_OK) << e.text;
    ASSERT_EQ(backend_->open_queue(device_, &queue_, &e), WEFT_OK) << e.text;
    records_ = loops::provider.kernels(*backend_, device_, capability_, Host::table());
  }
  void TearDown() override {
    if (queue_) backend_->close_queue(queue_);
    if (device_) backend_->close_device(device_);
  }

  const weft_kernel* record(std::string_view op) const {
    for (const weft_kernel* k : records_)
      if (op == k->op) return k;
    return nullptr;
  }
  /// The record that takes the call, or null; `reasons` of those that do not.
  const weft_kernel* record_for(const weft_call& call, std::string* reasons) {
    const std::string_view op = call.region ? "region" : call.op;
    for (const weft_kernel* k : records_) {
      if (op != k->op) continue;
      weft_error e = no_error();
      const weft_code code = k->accepts(k, device_, &call, &e);
      EXPECT_EQ(code == WEFT_OK, e.text[0] == 0) << "a refusal has a reason, and only a refusal";
      if (code == WEFT_OK) return k;
      *reasons += std::string(e.text) + "\n";
    }
    return nullptr;
  }
  /// The reasons for which the records refuse; empty when one accepts.
  std::string refusal(CallBox& box) {
    std::string reasons;
    return record_for(box.call(), &reasons) ? "" : reasons;
  }
  void says(CallBox box, const char* what) {
    const std::string reason = refusal(box);
    EXPECT_NE(reason.find(what), std::string::npos) << "got: " << reason << "\nwanted: " << what;
  }
  std::vector<T> run(CallBox& box, const std::vector<T>& in) {
    std::vector<Sizes> shapes;
    for (size_t k = 0; k < box.n_outputs(); ++k) shapes.push_back(box.output_shape(k));
    return run(box, in, shapes);
  }
  /// Runs on the device, compares with the interpreter, gives what the device made.
  std::vector<T> run(CallBox& box, const std::vector<T>& in, const std::vector<Sizes>& shapes) {
    EXPECT_EQ(refusal(box), "");
    const weft_call& call = box.call();
    std::deque<Placed> placed;
    std::vector<const weft_tensor*> ins, outs;
    for (const T& t : in) {
      placed.emplace_back(*backend_, device_, queue_, t.dtype, t.shape).write(t);
      ins.push_back(&placed.back().tensor);
    }
    std::vector<Placed*> results;
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (call.updates >> k & 1) {
        results.push_back(&placed[call.update_inputs[k]]);
      } else {
        results.push_back(&placed.emplace_back(*backend_, device_, queue_, box.output_dtype(k), shapes[k]));
      }
      outs.push_back(&results.back()->tensor);
    }
    execute(call, ins, outs);
    std::vector<T> got;
    for (Placed* p : results) got.push_back(p->read());
    const std::vector<T> wanted = interpreted(box, in, shapes);
    for (size_t k = 0; k < got.size(); ++k)
      expect_near(got[k], wanted[k], tolerance_of(got[k].dtype),
                  (std::string(call.op) + " against the interpreter").c_str());
    return got;
  }
  void execute(const weft_call& call, const std::vector<const weft_tensor*>& in,
               const std::vector<const weft_tensor*>& out) {
    std::string reasons;
    const weft_kernel* k = record_for(call, &reasons);
    weft_plan plan{};
    plan.size = sizeof plan;
    plan.kernel = k;
    plan.call = &call;
    weft_error e = no_error();
    ASSERT_EQ(k->prepare(k, device_, &call, &plan, &e), WEFT_OK) << e.text;
    const Placed workspace(*backend_, device_, queue_, i64, {static_cast<int64_t>((plan.workspace + 7) / 8)});
    weft_launch l{sizeof l, 0, &plan, device_, queue_, in.data(), out.data(), &workspace.tensor};
    ASSERT_EQ(k->launch(&l, &e), WEFT_OK) << e.text;
    ASSERT_EQ(backend_->synchronize(queue_, &e), WEFT_OK) << e.text;
    k->release(&plan);
  }

  void expect(CallBox&& box, const std::vector<T>& in, const std::vector<long double>& wanted,
              double tolerance = 0) {
    const std::string op = box.call().op;
    const T got = run(box, in)[0];
    expect_near(got, {got.dtype, got.shape, wanted}, tolerance, (op + " by hand").c_str());
  }
  CallBox binary(const char* op, DType t, DType to, Sizes a, Sizes b, Sizes y) {
    CallBox box(op);
    box.in(t, a).in(t, b).out(to, y);
    return box;
  }
  CallBox unary(const char* op, DType t, DType to, Sizes x, Sizes y) {
    CallBox box(op);
    box.in(t, x).out(to, y);
    return box;
  }

  const weft_backend* backend_ = nullptr;
  weft_device device_ = nullptr;
  weft_queue queue_ = nullptr;
  weft_capability capability_{};
  std::vector<const weft_kernel*> records_;
};

}  // namespace weft::loops_test

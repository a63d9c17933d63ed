#include <memory>

#include "body.h"
#include "product.h"
#include "weft/backend/provider.hpp"

// matmul, linear and a layer that is added to the residual by cuBLASLt, for CUDA devices.
namespace weft::cublaslt {
namespace {

using namespace backend;

// Reading the weight takes the time of so few rows, and the backend's own kernel reads faster.
constexpr int64_t kFewRows = 16;

Outcome stream_of(const Launch&, void** to);
/// Whether the device's own kernel of f32 on tensor cores takes the call: it is faster (docs/performance.md).
bool is_left_to_device(const OpCall&);

Support plain_product(const OpCall& c, Shape& s) {
  if (auto read = product_of(c, s); !read) return read;
  s.tf32 = s.dtype == DType::f32 && c.precision() >= WEFT_PRECISION_TF32;
  if (s.batch >= int64_t{1} << 31) return Support::no("a batch of {}, wanted < 2^31", s.batch);
  if (s.bias && s.adds) return Support::no("cannot add a bias to what is there");
  return Support::yes();
}

Support layer_onto_shape(const OpCall& c, Shape& s) {
  const auto body = layer_onto(c);
  if (!body) return Support::no("wants a linear layer that is added to an operand");
  if (c.accumulate() != 0) return Support::no("adds to one operand only");
  const auto y = c.output(0).max(), weight = c.input(body->weight).max();
  if (auto floats = plain_floats(c); !floats) return floats;
  s.dtype = c.output(0).dtype();
  s.tf32 = s.dtype == DType::f32 && c.precision() >= WEFT_PRECISION_TF32;
  s.transpose_b = s.adds = true, s.bias = body->bias >= 0;
  s.n = y.back(), s.k = weight.back(), s.m = elements(y) / s.n;
  const bool fits = weight.size() == 2 && weight[0] == s.n && elements(c.input(body->x).max()) == s.m * s.k &&
                    elements(c.input(body->onto).max()) == s.m * s.n;
  return fits ? Support::yes() : Support::no("its operands are views of others");
}

Support shape_of(const OpCall& c, Shape& s) {
  if (is_left_to_device(c)) return Support::no("is left to the device's own kernel of {}", c.op());
  if (c.op() == "matmul") return plain_product(c, s);
  const auto layer = c.op() == "linear" ? plain_product(c, s) : layer_onto_shape(c, s);
  if (layer && s.m <= kFewRows && s.dtype != DType::f64)
    return Support::no("products of {} rows or fewer are left to the device's own linear.skinny", kFewRows);
  return layer;
}

/// A product, and which inputs of the call are its operands; -1: there is none.
struct Plan {
  Product product;
  LayerOnto inputs{.x = 0, .weight = 1};
};

Outcome plan_of(const OpCall& c, Plan& plan, bool& tf32) {
  Shape shape;
  if (const auto s = shape_of(c, shape); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  int device = 0;
  cudaGetDevice(&device);
  tf32 = shape.tf32;
  if (c.op() == "linear" && shape.bias) plan.inputs.bias = 2;
  if (c.op() == "linear_add") plan.inputs = *layer_onto(c);
  return plan.product.prepare(shape, device);
}

// cuBLASLt itself says whether it has a bias with something to be added to.
Support accepts(const OpCall& c) {
  Shape shape;
  if (auto s = shape_of(c, shape); !s || !c.region() || c.op() == "linear") return s;
  Plan plan;
  bool tf32 = false;
  const auto told = plan_of(c, plan, tf32);
  return told.good() ? Support::yes() : Support::no("{}", told.text);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  auto p = std::make_unique<Plan>();
  bool tf32 = false;
  if (auto made = plan_of(c, *p, tf32); !made.good()) return made;
  plan.precision = tf32 ? WEFT_PRECISION_TF32 : WEFT_PRECISION_STRICT;
  plan.workspace = p->product.workspace();
  plan.data = p.release();
  return Outcome::ok();
}

void release(weft_plan* plan) {
  delete static_cast<Plan*>(plan->data);
  plan->data = nullptr;
}

Outcome launch(const Launch& l) {
  void* stream = nullptr;
  if (auto got = stream_of(l, &stream); !got.good()) return got;
  const Plan& plan = *static_cast<const Plan*>(l.raw()->plan->data);
  const auto input = [&](int64_t i) -> const void* { return i < 0 ? nullptr : l.input(i).data<void>(); };
  const LayerOnto& in = plan.inputs;
  return plan.product.run({.a = input(in.x),
                           .b = input(in.weight),
                           .bias = input(in.bias),
                           .onto = input(in.onto),
                           .c = l.output(0).data<void>()},
                          l.workspace().has() ? l.workspace().data<void>() : nullptr,
                          static_cast<cudaStream_t>(stream));
}

struct Cublaslt {
  static constexpr const char *kName = "cublaslt", *kServes = "cuda", *kStream = "cuda.stream";
  static const std::string& missing() { return library().missing; }
  static const char* version() { return library().version.c_str(); }
  static std::vector<KernelRecord> records() {
    KernelRecord product{.op = "matmul",
                         .variant = "product",
                         .reads = {"transpose_a", "transpose_b"},
                         .accepts = accepts,
                         .prepare = prepare,
                         .release = release,
                         .launch = launch,
                         .determinism = WEFT_DETERMINISM_RUN,
                         .accumulates = true};
    KernelRecord linear = product;
    linear.op = "linear", linear.reads = {};
    KernelRecord onto = linear;
    onto.op = "linear_add", onto.variant = "onto";
    return {product, linear, onto};
  }
  static Outcome attach(weft_device) { return Outcome::ok(); }
  static void detach(weft_device) {}
};

Outcome stream_of(const Launch& l, void** to) { return Provider<Cublaslt>::stream(l, to); }
bool is_left_to_device(const OpCall& c) {
  return c.output(0).dtype() == DType::f32 && c.precision() < WEFT_PRECISION_TF32 &&
         Provider<Cublaslt>::home_takes(c, ".split");
}

}  // namespace
}  // namespace weft::cublaslt

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::backend::Provider<weft::cublaslt::Cublaslt>::negotiate(host, backend, error);
}

#include <algorithm>
#include <memory>

#include "body.h"
#include "product.h"

// matmul, linear and a layer that is added to the residual by cuBLASLt, for CUDA devices. A provider has no
// device of its own: names, memory and queues are those of the backend that it serves.
namespace weft::cublaslt {
namespace {

using namespace backend;

// The table of the backend that is served: it gives the stream of a queue.
std::atomic<const weft_backend*> served = nullptr;
std::atomic<const weft_host*> the_host = nullptr;
std::atomic<weft_device> served_device = nullptr;

// Reading the weight takes the time of so few rows, and the backend's own kernel reads faster.
constexpr int64_t kFewRows = 16;

int64_t elements(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

Support plain_sizes(const OpCall& c) {
  const auto check = [](TypeView t, const char* what, int64_t i) {
    for (int64_t d = 0; t.has() && d < t.rank(); ++d) {
      const Dim size = t.shape()[d];
      if (!size.known()) return Support::no("{} {} has sizes from {} to {}", what, i, size.min(), size.max());
      if (size.max() == 0) return Support::no("{} {} is empty", what, i);
    }
    return Support::yes();
  };
  for (int64_t i = 0; i < c.n_inputs(); ++i)
    if (auto s = check(c.input(i), "input", i); !s) return s;
  return check(c.output(0), "output", 0);
}

/// Whether the backend's own kernel of tensor cores takes the call: it is faster, and computes more of what
/// surrounds a product (docs/performance.md).
bool is_left_to_device(const OpCall& c) {
  const weft_backend* const device = served.load();
  const DType t = c.output(0).dtype();
  if (!device || (t != DType::f16 && t != DType::bf16)) return false;
  const weft_kernel* const* list = nullptr;
  uint32_t n = 0;
  weft_error error{.size = sizeof error};
  if (device->kernels(served_device, &list, &n, &error) != WEFT_OK) return false;
  return std::any_of(list, list + n, [&](const weft_kernel* k) {
    return c.op() == k->op && std::string_view(k->id).ends_with(".wgmma") &&
           k->determinism >= c.determinism() && k->accepts(k, served_device, c.raw(), &error) == WEFT_OK;
  });
}

Support accepts_types(const OpCall& c) {
  if (!library().missing.empty()) return Support::no("{}", library().missing);
  const DType t = c.output(0).dtype();
  if (t != DType::f64 && t != DType::f32 && t != DType::f16 && t != DType::bf16)
    return Support::no("computes in f64, f32, f16 and bf16, got {}", t);
  if (auto sizes = plain_sizes(c); !sizes) return sizes;
  if (is_left_to_device(c)) return Support::no("{}.{}.wgmma is faster", served.load()->name, c.op());
  return Support::yes();
}

void common(const OpCall& c, Shape& s) {
  s.dtype = c.output(0).dtype();
  s.tf32 = s.dtype == DType::f32 && c.precision() >= WEFT_PRECISION_TF32;
  s.adds = c.accumulates(0);
}

/// The batch of a matmul: matrices one after another on both sides, or one matrix for all on one of them.
Support batch_of(const OpCall& c, Shape& s) {
  const auto leading = [](TypeView t) { return t.max().first(static_cast<size_t>(t.rank() - 2)); };
  const int64_t of_a = elements(leading(c.input(0))), of_b = elements(leading(c.input(1)));
  s.batch = elements(leading(c.output(0)));
  if ((of_a != s.batch && of_a != 1) || (of_b != s.batch && of_b != 1))
    return Support::no("its leading axes broadcast: {} and {}", c.input(0).max(), c.input(1).max());
  if (s.batch >= int64_t{1} << 31) return Support::no("a batch of {}, wanted < 2^31", s.batch);
  if (of_b == 1 && !s.transpose_a) {
    s.m *= s.batch, s.batch = 1;  // rows of one product
    return Support::yes();
  }
  s.a_stride = of_a == 1 ? 0 : s.m * s.k, s.b_stride = of_b == 1 ? 0 : s.k * s.n;
  return Support::yes();
}

Support matmul_shape(const OpCall& c, Shape& s) {
  if (auto types = accepts_types(c); !types) return types;
  common(c, s);
  s.transpose_a = c.attr("transpose_a").integer(), s.transpose_b = c.attr("transpose_b").integer();
  const auto y = c.output(0).max(), a = c.input(0).max();
  s.m = y[y.size() - 2], s.n = y.back(), s.k = a[a.size() - (s.transpose_a ? 2 : 1)];
  return batch_of(c, s);
}

Support linear_shape(const OpCall& c, Shape& s) {
  if (auto types = accepts_types(c); !types) return types;
  common(c, s);
  s.transpose_b = true;
  s.bias = c.input(2).has();
  s.n = c.output(0).max().back(), s.k = c.input(0).max().back();
  s.m = elements(c.output(0).max()) / s.n;
  if (s.bias && s.adds) return Support::no("cannot add a bias to what is there");
  return Support::yes();
}

Support layer_onto_shape(const OpCall& c, Shape& s) {
  if (auto types = accepts_types(c); !types) return types;
  const auto body = layer_onto(c);
  if (!body) return Support::no("wants a linear layer that is added to an operand");
  if (c.accumulate() != 0) return Support::no("adds to one operand only");
  const auto y = c.output(0).max(), weight = c.input(body->weight).max();
  common(c, s);
  s.transpose_b = s.adds = true, s.bias = body->bias >= 0;
  s.n = y.back(), s.k = weight.back(), s.m = elements(y) / s.n;
  const bool fits = weight.size() == 2 && weight[0] == s.n && elements(c.input(body->x).max()) == s.m * s.k &&
                    elements(c.input(body->onto).max()) == s.m * s.n;
  return fits ? Support::yes() : Support::no("its operands are views of others");
}

Support shape_of(const OpCall& c, Shape& s) {
  if (c.op() == "matmul") return matmul_shape(c, s);
  const auto layer = c.op() == "linear" ? linear_shape(c, s) : layer_onto_shape(c, s);
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
  weft_error error{.size = sizeof error};
  const weft_code code =
      served.load()->native(l.raw()->device, l.raw()->queue, "cuda.stream", &stream, &error);
  if (code != WEFT_OK) return Outcome::fail(code, "{}", error.text);
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

KernelTable& kernels() {
  static const std::vector<KernelRecord> records = [] {
    KernelRecord product{.op = "matmul",
                         .variant = "product",
                         .reads = {"transpose_a", "transpose_b"},
                         .accepts = accepts,
                         .prepare = prepare,
                         .release = release,
                         .launch = launch,
                         .determinism = WEFT_DETERMINISM_RUN,
                         .accumulates = true,
                         .contents = library().version.c_str()};
    KernelRecord linear = product;
    linear.op = "linear", linear.reads = {};
    KernelRecord onto = linear;
    onto.op = "linear_add", onto.variant = "onto";
    return std::vector{product, linear, onto};
  }();
  static KernelTable table("cublaslt", {records}, &KernelTable::launch_now, WEFT_KERNEL_RECORDABLE);
  return table;
}

weft_code probe(weft_probe* p, weft_error* error) {
  return guarded(error, [&] {
    write(p, &weft_probe::n_devices, library().missing.empty() ? 1 : 0);
    write_text(p, &weft_probe::reason, library().missing);
    return Outcome::ok();
  });
}

weft_code list_kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (!library().missing.empty()) return Outcome::fail(WEFT_UNAVAILABLE, "{}", library().missing);
    kernels().set_host(the_host);
    *list = kernels().data();
    *n = kernels().size();
    return Outcome::ok();
  });
}

weft_code attach(const weft_backend* table, weft_device device, const weft_capability*, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (!table->native) return Outcome::fail(WEFT_UNSUPPORTED, "{} does not give its streams", table->name);
    served = table, served_device = device;
    return Outcome::ok();
  });
}

constexpr weft_backend kProvider = {.size = sizeof(weft_backend),
                                    .abi = WEFT_ABI,
                                    .name = "cublaslt",
                                    .version = "0.1.0",
                                    .probe = probe,
                                    .kernels = list_kernels,
                                    .serves = "cuda",
                                    .attach = attach,
                                    .detach = [](weft_device) {}};

}  // namespace
}  // namespace weft::cublaslt

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  using namespace weft::cublaslt;
  return guarded(error, [&]() -> Outcome {
    if (auto outcome = Host(host).speaks(); !outcome.good()) return outcome;
    the_host = host;
    *backend = &kProvider;
    return Outcome::ok();
  });
}

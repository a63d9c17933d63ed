#include <limits>
#include <map>
#include <memory>

#include "library.h"

// matmul, and linear without a bias, by rocBLAS, for HIP devices. A provider has no device of its own: names,
// memory and queues are those of the backend that it serves.
namespace weft::rocblas {
namespace {

using namespace backend;

// The table of the backend that is served: it gives the stream of a queue.
std::atomic<const weft_backend*> served = nullptr;
std::atomic<const weft_host*> the_host = nullptr;

constexpr size_t kWorkspace = size_t{32} << 20, kWorkspaceAlignment = 256;

/// A product of row-major matrices, for each of a batch: y = a b, or y += a b.
struct Product {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  int64_t a_stride = 0, b_stride = 0;  ///< elements between the matrices of the batch; 0: one for all
  bool transpose_a = false, transpose_b = false, accumulate = false;
  DType dtype = DType::f32;
};

/// rocBLAS's state of one device. Its stream and its workspace are set for each call.
struct Device {
  std::mutex mutex;
  Handle handle = nullptr;
};
struct Devices {
  std::mutex mutex;
  std::map<weft_device, std::unique_ptr<Device>> all;
};
Devices& devices() {
  static Devices& d = *new Devices;
  return d;
}

int64_t elements(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

Support known_sizes(TypeView t, const char* what) {
  for (int64_t d = 0; d < t.rank(); ++d) {
    const Dim size = t.shape()[d];
    if (!size.known()) return Support::no("{} has sizes from {} to {}", what, size.min(), size.max());
    if (size.max() == 0) return Support::no("{} is empty", what);
  }
  return Support::yes();
}

/// The batch of a matmul: matrices one after another on both sides, or one matrix for all on one of them.
Support batch_of(const OpCall& c, Product& p) {
  const auto leading = [](TypeView t) { return t.max().first(static_cast<size_t>(t.rank() - 2)); };
  const int64_t of_a = elements(leading(c.input(0))), of_b = elements(leading(c.input(1)));
  p.batch = elements(leading(c.output(0)));
  if ((of_a != p.batch && of_a != 1) || (of_b != p.batch && of_b != 1))
    return Support::no("its leading axes broadcast: {} and {}", c.input(0).max(), c.input(1).max());
  p.a_stride = of_a == 1 ? 0 : p.m * p.k, p.b_stride = of_b == 1 ? 0 : p.k * p.n;
  return Support::yes();
}

Support product_of(const OpCall& c, Product& p) {
  if (!library().missing.empty()) return Support::no("{}", library().missing);
  p.dtype = c.output(0).dtype();
  if (p.dtype != DType::f64 && p.dtype != DType::f32 && p.dtype != DType::f16 && p.dtype != DType::bf16)
    return Support::no("computes in f64, f32, f16 and bf16, got {}", p.dtype);
  if (auto s = known_sizes(c.input(0), "input 0"); !s) return s;
  if (auto s = known_sizes(c.input(1), "input 1"); !s) return s;
  if (auto s = known_sizes(c.output(0), "output 0"); !s) return s;
  p.accumulate = c.accumulates(0);
  const auto y = c.output(0).max(), a = c.input(0).max();
  p.n = y.back();
  if (c.op() == "linear") {
    if (c.input(2).has()) return Support::no("adds no bias");
    p.transpose_b = true, p.k = a.back(), p.m = elements(y) / p.n;
  } else {
    p.transpose_a = c.attr("transpose_a").integer(), p.transpose_b = c.attr("transpose_b").integer();
    p.m = y[y.size() - 2], p.k = a[a.size() - (p.transpose_a ? 2 : 1)];
    if (auto s = batch_of(c, p); !s) return s;
  }
  const int64_t largest = std::max({p.m, p.n, p.k, p.batch});
  if (largest > std::numeric_limits<int>::max()) return Support::no("a size of {}, wanted < 2^31", largest);
  return Support::yes();
}

Support accepts(const OpCall& c) {
  Product unused;
  return product_of(c, unused);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  auto p = std::make_unique<Product>();
  if (const auto s = product_of(c, *p); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
  plan.precision = WEFT_PRECISION_STRICT;
  plan.workspace = kWorkspace + kWorkspaceAlignment;
  plan.data = p.release();
  return Outcome::ok();
}

void release(weft_plan* plan) {
  delete static_cast<Product*>(plan->data);
  plan->data = nullptr;
}

DataType type_of(DType t) {
  switch (t) {
    case DType::f64: return kF64;
    case DType::f16: return kF16;
    case DType::bf16: return kBf16;
    default: return kF32;
  }
}

// rocBLAS's matrices are column-major: y = a b of row-major matrices is its y' = b' a', so its a is our b.
Outcome multiply(Handle handle, const Product& p, const void* a, const void* b, void* y) {
  const float one = 1, beta = p.accumulate ? 1 : 0;
  const double one64 = 1, beta64 = beta;
  const bool f64 = p.dtype == DType::f64;
  const DataType type = type_of(p.dtype);
  const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const void *alpha_at = f64 ? static_cast<const void*>(&one64) : &one,
             *beta_at = f64 ? static_cast<const void*>(&beta64) : &beta;
  WEFT_ROCBLAS_TRY(rocblas_gemm_strided_batched_ex(
      handle, p.transpose_b ? kTransposed : kPlain, p.transpose_a ? kTransposed : kPlain, n, m, k, alpha_at,
      b, type, p.transpose_b ? k : n, p.b_stride, a, type, p.transpose_a ? m : k, p.a_stride, beta_at, y,
      type, n, p.m * p.n, y, type, n, p.m * p.n, static_cast<int>(p.batch), f64 ? kF64 : kF32, 0, 0, 0));
  return Outcome::ok();
}

Outcome launch(const Launch& l) {
  void* stream = nullptr;
  weft_error error{.size = sizeof error, .text = {}};
  const weft_code code =
      served.load()->native(l.raw()->device, l.raw()->queue, "hip.stream", &stream, &error);
  if (code != WEFT_OK) return Outcome::fail(code, "{}", error.text);
  Device* device = nullptr;
  {
    const std::lock_guard lock(devices().mutex);
    device = devices().all.at(l.raw()->device).get();
  }
  const auto scratch = reinterpret_cast<uintptr_t>(l.workspace().data<void>()) + kWorkspaceAlignment - 1;
  auto* const workspace = reinterpret_cast<void*>(scratch / kWorkspaceAlignment * kWorkspaceAlignment);
  const std::lock_guard lock(device->mutex);
  WEFT_ROCBLAS_TRY(rocblas_set_stream(device->handle, stream));
  WEFT_ROCBLAS_TRY(rocblas_set_workspace(device->handle, workspace, kWorkspace));
  return multiply(device->handle, *static_cast<const Product*>(l.raw()->plan->data), l.input(0).data<void>(),
                  l.input(1).data<void>(), l.output(0).data<void>());
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
    return std::vector{product, linear};
  }();
  static KernelTable table("rocblas", {records}, &KernelTable::launch_now, WEFT_KERNEL_RECORDABLE);
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

// A handle is of the device that is current for the thread, which the backend's entries leave current.
weft_code attach(const weft_backend* table, weft_device device, const weft_capability*, weft_error* error) {
  return guarded(error, [&]() -> Outcome {
    if (!table->native || !table->memory_free)
      return Outcome::fail(WEFT_UNSUPPORTED, "{} does not give its streams", table->name);
    table->memory_free(device);
    auto d = std::make_unique<Device>();
    WEFT_ROCBLAS_TRY(rocblas_create_handle(&d->handle));
    WEFT_ROCBLAS_TRY(rocblas_set_atomics_mode(d->handle, 0));
    served = table;
    const std::lock_guard lock(devices().mutex);
    devices().all[device] = std::move(d);
    return Outcome::ok();
  });
}

void detach(weft_device device) {
  const std::lock_guard lock(devices().mutex);
  const auto at = devices().all.find(device);
  if (at == devices().all.end()) return;
  served.load()->memory_free(device);
  library().rocblas_destroy_handle(at->second->handle);
  devices().all.erase(at);
}

constexpr weft_backend kProvider = {.size = sizeof(weft_backend),
                                    .abi = WEFT_ABI,
                                    .name = "rocblas",
                                    .version = "0.1.0",
                                    .probe = probe,
                                    .kernels = list_kernels,
                                    .serves = "hip",
                                    .attach = attach,
                                    .detach = detach};

}  // namespace
}  // namespace weft::rocblas

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  using namespace weft::rocblas;
  return guarded(error, [&]() -> Outcome {
    if (auto outcome = Host(host).speaks(); !outcome.good()) return outcome;
    the_host = host;
    *backend = &kProvider;
    return Outcome::ok();
  });
}

#include <limits>
#include <map>
#include <memory>

#include "library.h"
#include "weft/backend/product.hpp"
#include "weft/backend/provider.hpp"

// matmul, and linear without a bias, by rocBLAS, for HIP devices.
namespace weft::rocblas {
namespace {

using namespace backend;

constexpr size_t kWorkspace = size_t{32} << 20, kWorkspaceAlignment = 256;

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

Outcome stream_of(const Launch&, void** to);

Support takes(const OpCall& c, Product& p) {
  if (auto s = product_of(c, p); !s) return s;
  if (p.bias) return Support::no("adds no bias");
  const int64_t largest = std::max({p.m, p.n, p.k, p.batch});
  if (largest > std::numeric_limits<int>::max()) return Support::no("a size of {}, wanted < 2^31", largest);
  return Support::yes();
}

Support accepts(const OpCall& c) {
  Product unused;
  return takes(c, unused);
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  auto p = std::make_unique<Product>();
  if (const auto s = takes(c, *p); !s) return Outcome::fail(WEFT_UNSUPPORTED, "{}", s.reason);
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
  const float one = 1, beta = p.adds ? 1 : 0;
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
  if (auto got = stream_of(l, &stream); !got.good()) return got;
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

struct Rocblas {
  static constexpr const char *kName = "rocblas", *kServes = "hip", *kStream = "hip.stream";
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
    return {product, linear};
  }
  static Outcome attach(weft_device device) {
    auto d = std::make_unique<Device>();
    WEFT_ROCBLAS_TRY(rocblas_create_handle(&d->handle));
    WEFT_ROCBLAS_TRY(rocblas_set_atomics_mode(d->handle, 0));
    const std::lock_guard lock(devices().mutex);
    devices().all[device] = std::move(d);
    return Outcome::ok();
  }
  static void detach(weft_device device) {
    const std::lock_guard lock(devices().mutex);
    const auto at = devices().all.find(device);
    if (at == devices().all.end()) return;
    library().rocblas_destroy_handle(at->second->handle);
    devices().all.erase(at);
  }
};

Outcome stream_of(const Launch& l, void** to) { return Provider<Rocblas>::stream(l, to); }

}  // namespace
}  // namespace weft::rocblas

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  return weft::backend::Provider<weft::rocblas::Rocblas>::negotiate(host, backend, error);
}

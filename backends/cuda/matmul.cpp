#include <cublasLt.h>
#include <dlfcn.h>

#include <memory>

#include "gpu.hpp"

// Products of two matrices by cuBLASLt, opened on first use. Its matrices are column-major: a row-major
// C = A B is its C' = B' A'.
namespace weft::cuda {

using namespace backend;

namespace {

constexpr size_t kMostWorkspace = size_t{32} << 20;

struct CublasLt {
  // clang-format off
#define WEFT_CUBLASLT(X) \
  X(cublasLtCreate) X(cublasLtMatmulDescCreate) \
  X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute) \
  X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy) \
  X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) \
  X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtMatmulAlgoGetHeuristic) \
  X(cublasLtMatmul)
// clang-format on
#define WEFT_DECLARE(f) decltype(&::f) f = nullptr;
  WEFT_CUBLASLT(WEFT_DECLARE)
#undef WEFT_DECLARE
  cublasLtHandle_t handle = nullptr;
  std::string missing;  // why it can't be used; empty if it can
};

CublasLt open_library() {
  CublasLt l;
  void* library = nullptr;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"})
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    l.missing = "libcublasLt.so.13 was not found";
    return l;
  }
#define WEFT_LOAD(f)                                         \
  l.f = reinterpret_cast<decltype(l.f)>(dlsym(library, #f)); \
  if (!l.f) l.missing = "libcublasLt.so has no " #f;
  WEFT_CUBLASLT(WEFT_LOAD)
#undef WEFT_LOAD
  if (l.missing.empty() && l.cublasLtCreate(&l.handle) != CUBLAS_STATUS_SUCCESS)
    l.missing = "cublasLtCreate failed";
  return l;
}

const CublasLt& lt() {
  static const CublasLt& l = *new CublasLt(open_library());  // drivers do not survive being unloaded
  return l;
}

Outcome told(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return Outcome::ok();
  return Outcome::fail(status == CUBLAS_STATUS_NOT_SUPPORTED ? WEFT_UNSUPPORTED : WEFT_DEVICE,
                       "{}: cuBLAS status {}", what, static_cast<int>(status));
}
#define WEFT_LT_TRY(call) \
  if (auto tried = told(lt().call, #call); !tried.good()) return tried

struct Product {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;  // in cuBLASLt's order: its a is our b
  cublasLtMatmulAlgo_t algorithm{};
  Product() = default;
  Product(const Product&) = delete;
  ~Product() {
    if (operation) lt().cublasLtMatmulDescDestroy(operation);
    for (const auto layout : {a, b, c})
      if (layout) lt().cublasLtMatrixLayoutDestroy(layout);
  }
};

cudaDataType_t type_of(DType t) {
  return t == DType::f32 ? CUDA_R_32F : t == DType::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

Support accepts(const OpCall& c) {
  if (!lt().missing.empty()) return Support::no("{}", lt().missing);
  const DType t = c.output(0).dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16)
    return Support::no("dtype must be f32, f16 or bf16, got {}", t);
  for (int64_t i = 0; i < 2; ++i) {
    if (c.input(i).rank() != 2)
      return Support::no("operands must be matrices, got rank {}", c.input(i).rank());
    for (int64_t d = 0; d < 2; ++d)
      if (c.input(i).shape()[d].min() == 0) return Support::no("sizes must be above 0");
  }
  return Support::yes();
}

Outcome layout(cublasLtMatrixLayout_t* to, TypeView t) {
  const auto rows = static_cast<uint64_t>(t.shape()[0].max()),
             columns = static_cast<uint64_t>(t.shape()[1].max());
  WEFT_LT_TRY(
      cublasLtMatrixLayoutCreate(to, type_of(t.dtype()), columns, rows, static_cast<int64_t>(columns)));
  return Outcome::ok();
}

Outcome describe(const OpCall& c, Product& p) {
  const bool f32 = c.output(0).dtype() == DType::f32;
  const auto compute =
      f32 && c.precision() == WEFT_PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  WEFT_LT_TRY(cublasLtMatmulDescCreate(&p.operation, compute, CUDA_R_32F));
  const auto transposed = [&](const char* name) -> cublasOperation_t {
    return c.attr(name).integer() ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  const cublasOperation_t of_a = transposed("transpose_b"), of_b = transposed("transpose_a");
  WEFT_LT_TRY(cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, &of_a, sizeof of_a));
  WEFT_LT_TRY(cublasLtMatmulDescSetAttribute(p.operation, CUBLASLT_MATMUL_DESC_TRANSB, &of_b, sizeof of_b));
  if (auto made = layout(&p.a, c.input(1)); !made.good()) return made;
  if (auto made = layout(&p.b, c.input(0)); !made.good()) return made;
  return layout(&p.c, c.output(0));
}

Outcome choose(const OpCall& c, Product& p, uint64_t* workspace) {
  cublasLtMatmulPreference_t preference = nullptr;
  WEFT_LT_TRY(cublasLtMatmulPreferenceCreate(&preference));
  const size_t most = kMostWorkspace;
  lt().cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                            sizeof most);
  const auto at = static_cast<uint32_t>(c.output(0).alignment());  // replays may come with other addresses
  for (const auto which :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    lt().cublasLtMatmulPreferenceSetAttribute(preference, which, &at, sizeof at);
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const auto chosen = told(lt().cublasLtMatmulAlgoGetHeuristic(lt().handle, p.operation, p.a, p.b, p.c, p.c,
                                                               preference, 1, &result, &found),
                           "choosing an algorithm");
  lt().cublasLtMatmulPreferenceDestroy(preference);
  if (!chosen.good()) return chosen;
  if (found == 0) return Outcome::fail(WEFT_UNSUPPORTED, "cuBLASLt has no algorithm for it");
  p.algorithm = result.algo;
  *workspace = result.workspaceSize;
  return Outcome::ok();
}

Outcome prepare(const OpCall& c, weft_plan& plan) {
  auto p = std::make_unique<Product>();
  if (auto described = describe(c, *p); !described.good()) return described;
  if (auto chosen = choose(c, *p, &plan.workspace); !chosen.good()) return chosen;
  plan.precision = c.output(0).dtype() == DType::f32 && c.precision() == WEFT_PRECISION_TF32
                       ? WEFT_PRECISION_TF32
                       : WEFT_PRECISION_STRICT;
  plan.data = p.release();
  return Outcome::ok();
}

void release(weft_plan* plan) {
  delete static_cast<Product*>(plan->data);
  plan->data = nullptr;
}

Outcome launch(const Launch& l) {
  const Product& p = *static_cast<const Product*>(l.raw()->plan->data);
  const float one = 1, zero = 0;
  void* c = l.output(0).data<void>();
  const TensorView workspace = l.workspace();
  return told(lt().cublasLtMatmul(lt().handle, p.operation, &one, l.input(1).data<void>(), p.a,
                                  l.input(0).data<void>(), p.b, &zero, c, p.c, c, p.c, &p.algorithm,
                                  workspace.has() ? workspace.data<void>() : nullptr,
                                  l.raw()->plan->workspace, stream_of(l)),
              "cublasLtMatmul");
}

}  // namespace

std::span<const KernelRecord> matmul_kernels() {
  static const KernelRecord all[] = {{.op = "matmul",
                                      .variant = "cublaslt",
                                      .reads = {"transpose_a", "transpose_b"},
                                      .accepts = accepts,
                                      .prepare = prepare,
                                      .release = release,
                                      .launch = launch,
                                      .determinism = WEFT_DETERMINISM_RUN}};
  return all;
}

}  // namespace weft::cuda

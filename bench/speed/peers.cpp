#include "peers.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

namespace weft::speed {
namespace {

// ---- libraries of matrix products: c = a b in row-major order

using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                            float*, int);
using DnnlSgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
                          int64_t, float, float*, int64_t);
using SetThreads = void (*)(int);

struct Blas {
  CblasSgemm cblas = nullptr;
  DnnlSgemm dnnl = nullptr;
  SetThreads threads = nullptr;
};
struct Product {
  const Blas* blas;
  int m, n, k;
  const float *a, *b;
  std::vector<float> c;
};

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

Blas g_openblas, g_onednn, g_mkl;

void* make_product(const Blas& blas, const char* op, const PeerTensor* x, int n) {
  if (std::string_view(op) != "matmul" || n != 2 || x[0].rank != 2) return nullptr;
  const auto m = x[0].shape[0], k = x[0].shape[1], columns = x[1].shape[1];
  return new Product{&blas,
                     static_cast<int>(m),
                     static_cast<int>(columns),
                     static_cast<int>(k),
                     static_cast<const float*>(x[0].data),
                     static_cast<const float*>(x[1].data),
                     std::vector<float>(static_cast<size_t>(m * columns))};
}
void run_product(void* task) {
  auto& p = *static_cast<Product*>(task);
  if (p.blas->cblas) {
    p.blas->cblas(101, 111, 111, p.m, p.n, p.k, 1, p.a, p.k, p.b, p.n, 0, p.c.data(), p.n);
  } else {
    p.blas->dnnl('N', 'N', p.m, p.n, p.k, 1, p.a, p.k, p.b, p.n, 0, p.c.data(), p.n);
  }
}
const float* product_result(void* task, int64_t* n) {
  auto& p = *static_cast<Product*>(task);
  *n = static_cast<int64_t>(p.c.size());
  return p.c.data();
}
void release_product(void* task) { delete static_cast<Product*>(task); }

template <Blas& blas>
PeerLibrary product_library(const char* name) {
  return {name,
          "",
          [](const char* op, const PeerTensor* x, int n, const double*, int) {
            return make_product(blas, op, x, n);
          },
          run_product,
          product_result,
          release_product,
          [](int n) {
            if (blas.threads) blas.threads(n);
          },
          nullptr};
}

std::vector<const PeerLibrary*>& libraries() {
  static std::vector<const PeerLibrary*> all;
  return all;
}
void* open_any(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

void open_products() {
  // In a virtual machine OpenBLAS may mistake the processor for one of 2004: names the AVX-512 kernel if
  // there is one.
  if (__builtin_cpu_supports("avx512f")) setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
  if (void* l = open_any({"libopenblas.so.0"})) {
    g_openblas = {symbol<CblasSgemm>(l, "cblas_sgemm"), nullptr,
                  symbol<SetThreads>(l, "openblas_set_num_threads")};
    static const PeerLibrary library = product_library<g_openblas>("OpenBLAS");
    libraries().push_back(&library);
    if (auto* core = symbol<const char* (*)()>(l, "openblas_get_corename"))
      fmt::print("OpenBLAS runs its kernels for {}\n", core());
  } else {
    fmt::print("OpenBLAS is not here\n");
  }
  if (void* l = open_any({"libdnnl.so.3", "libdnnl.so.2"})) {
    void* omp = open_any({"libgomp.so.1"});
    g_onednn = {nullptr, symbol<DnnlSgemm>(l, "dnnl_sgemm"),
                omp ? symbol<SetThreads>(omp, "omp_set_num_threads") : nullptr};
    static const PeerLibrary library = product_library<g_onednn>("oneDNN");
    libraries().push_back(&library);
  } else {
    fmt::print("oneDNN is not here\n");
  }
  if (void* l = open_any({"libmkl_rt.so.3", "libmkl_rt.so.2"})) {
    g_mkl = {symbol<CblasSgemm>(l, "cblas_sgemm"), nullptr, symbol<SetThreads>(l, "MKL_Set_Num_Threads")};
    static const PeerLibrary library = product_library<g_mkl>("MKL");
    libraries().push_back(&library);
  }
}

}  // namespace

Operand random_operand(std::vector<int64_t> shape, uint64_t seed, double scale) {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  Operand o{std::move(shape), std::vector<float>(static_cast<size_t>(n)), {}};
  // Numbers of a fixed sequence, uniform: mean 0, variance `scale` squared.
  uint64_t s = seed * 0x9E3779B97F4A7C15ull + 1;
  for (float& v : o.values) {
    s ^= s << 13, s ^= s >> 7, s ^= s << 17;
    v = static_cast<float>((static_cast<double>(s >> 11) * 0x1p-53 - 0.5) * 3.4641016151377544 * scale);
  }
  return o;
}

void open_peers(const std::string& module_folder) {
  if (std::filesystem::is_directory(module_folder))
    for (const auto& file : std::filesystem::directory_iterator(module_folder)) {
      if (file.path().extension() != ".so") continue;
      void* l = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
      const auto entry = l ? symbol<PeerEntry>(l, "weft_peer") : nullptr;
      if (!entry) {
        fmt::print("{}: {}\n", file.path().filename().string(), dlerror());
        continue;
      }
      libraries().push_back(entry());
    }
  open_products();
  for (const auto* l : libraries()) fmt::print("peer: {} {}\n", l->name, l->version);
}

void set_peer_threads(int n) {
  for (const auto* l : libraries()) l->threads(n);
}

std::vector<PeerTask> peer_tasks(const std::string& op, const std::vector<Operand>& operands,
                                 const std::vector<double>& numbers) {
  std::vector<PeerTensor> x;
  for (const auto& o : operands) x.push_back(o.c());
  std::vector<PeerTask> all;
  for (const auto* l : libraries()) {
    void* raw = l->make(op.c_str(), x.data(), static_cast<int>(x.size()), numbers.data(),
                        static_cast<int>(numbers.size()));
    if (!raw) continue;
    const std::shared_ptr<void> task(raw, l->release);
    all.push_back({l->name,
                   {[l, task] { l->run(task.get()); },
                    [l, task] {
                      int64_t n = 0;
                      const float* from = l->result(task.get(), &n);
                      return std::vector<float>(from, from + n);
                    }},
                   {}});
    if (l->peak_bytes) all.back().peak_bytes = [l, task] { return l->peak_bytes(task.get()); };
  }
  return all;
}

}  // namespace weft::speed

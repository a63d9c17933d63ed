// The products of 16-bit matrices of backends/cuda/hopper against cuBLASLt, on a GPU of architecture 9.0:
//
//   nvcc -std=c++20 -O3 -gencode arch=compute_90a,code=sm_90a -Iinclude bench/gpu/matmul.cu
//     bench/gpu/matmul_peer.cpp backends/cublaslt/library.cpp backends/cuda/hopper/tensor_map.cpp
//     -o build/matmul
//   build/matmul check        results against a plain product, of small and odd sizes in all layouts
//   build/matmul time         medians, in TFLOP/s, of each way to tile and of cuBLASLt, taken in turns
//   build/matmul endings [NAME]  microseconds at GPT-2's sizes, alone and with what is computed from results
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../../backends/cuda/hopper/matmul_call.hpp"
#include "matmul_peer.h"

namespace {

using namespace weft::cuda;
using namespace weft::cuda::hopper;
using weft::DType;
using weft::backend::Outcome;

void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define REQUIRE(call) require((call), #call)

// ---- data

/// Normal numbers from a hash of the index.
__device__ float normal_at(uint64_t i, uint32_t seed) {
  uint64_t x = i * 0x9e3779b97f4a7c15u + seed * 0xd1b54a32d192ed03u + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u, x = (x ^ (x >> 27)) * 0x94d049bb133111ebu, x ^= x >> 31;
  const float u = (static_cast<float>(x >> 40) + 1) * 0x1p-24f,
              v = static_cast<float>(x & 0xffffff) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
}
template <class T>
__global__ void fill(T* to, int64_t n, uint32_t seed) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x)
    to[i] = narrowed<T>(normal_at(static_cast<uint64_t>(i), seed));
}

/// A matrix of each batch member, with room behind it that must stay as it is.
struct Memory {
  static constexpr size_t kGuard = 4096;
  explicit Memory(int64_t elements, DType dtype, uint32_t seed) : bytes(static_cast<size_t>(elements) * 2) {
    REQUIRE(cudaMalloc(&at, bytes + kGuard));
    REQUIRE(cudaMemset(at, 0x5a, bytes + kGuard));
    if (dtype == DType::bf16)
      fill<<<1024, 256>>>(static_cast<bf16*>(at), elements, seed);
    else
      fill<<<1024, 256>>>(static_cast<f16*>(at), elements, seed);
  }
  ~Memory() { cudaFree(at); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  bool guard_is_whole() const {
    std::vector<unsigned char> guard(kGuard);
    REQUIRE(cudaMemcpy(guard.data(), static_cast<char*>(at) + bytes, kGuard, cudaMemcpyDefault));
    return std::ranges::all_of(guard, [](unsigned char c) { return c == 0x5a; });
  }
  size_t bytes;
  void* at = nullptr;
};

// ---- the plain product

struct Errors {
  unsigned long long wrong = 0, first = ~0ull, largest = 0;  // in 2^-20
};
template <class T>
__device__ void judge(Errors* errors, int64_t at, T got, float wanted, float terms) {
  const float error = fabsf(wanted - widened(got));
  const float allowed = fabsf(wanted) * 0x1p-7f + 1e-5f * terms;
  atomicMax(&errors->largest, static_cast<unsigned long long>(fminf(error, 1e6f) * 0x1p20f));
  if (error <= allowed) return;
  atomicAdd(&errors->wrong, 1);
  atomicMin(&errors->first, static_cast<unsigned long long>(at));
}

__device__ float gelu_by_tanh(float x) {
  return x * 0.5f * (1 + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
}
__device__ float gelu_slope(float x) {
  const float s = tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x));
  return 0.5f * (1 + s + x * (1 - s * s) * 0.7978845608028654f * (1 + 3 * 0.044715f * x * x));
}

/// `other`: the operand, or what was written as the second result.
template <class T>
__global__ void compare(MatmulCall call, const T* other, const T* got, Errors* errors) {
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, of_matrix = call.m * call.n;
  if (at >= call.batch * of_matrix) return;
  const int64_t batch = at / of_matrix, m = at % of_matrix / call.n, n = at % call.n;
  const T* const a = static_cast<const T*>(call.a) + (call.one_a ? 0 : batch * call.m * call.k);
  const T* const b = static_cast<const T*>(call.b) + (call.one_b ? 0 : batch * call.k * call.n);
  float sum = 0;
  for (int64_t k = 0; k < call.k; ++k)
    sum += widened(a[call.transpose_a ? k * call.m + m : m * call.k + k]) *
           widened(b[call.transpose_b ? n * call.k + k : k * call.n + n]);
  if (call.bias) sum += widened(static_cast<const T*>(call.bias)[n]);
  if (call.ending == Ending::sum) sum += widened(other[at]);
  if (call.ending == Ending::gelu_slope) sum *= gelu_slope(widened(other[at]));
  judge(errors, at, got[at], sum, static_cast<float>(call.k));
  if (call.ending == Ending::gelu)
    judge(errors, at, other[at], gelu_by_tanh(widened(got[at])), static_cast<float>(call.k));
}

// ---- the ways to tile

/// Memory for the sums of shares, which all products use in turn.
float* sums(const MatmulCall& call) {
  static size_t size = 0;
  static float* memory = nullptr;
  const size_t wanted =
      call.shares == 1 ? 0 : static_cast<size_t>(call.elements()) * sizeof(float) * call.shares;
  if (wanted > size) {
    cudaFree(memory);
    REQUIRE(cudaMalloc(&memory, size = wanted));
  }
  return memory;
}
int* counters() {
  static int* const memory = [] {
    void* made = nullptr;
    REQUIRE(cudaMalloc(&made, 2 * sizeof(int)));
    REQUIRE(cudaMemset(made, 0, 2 * sizeof(int)));
    return static_cast<int*>(made);
  }();
  return memory;
}

/// Of k. Without shares, all ways add up in the same order.
int most_shares = 16;

struct Way {
  std::string name;
  std::function<Outcome(const MatmulCall&, cudaStream_t)> run;
};

int multiprocessors() {
  int n = 0;
  REQUIRE(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
  return n;
}

/// As the backend launches: a kernel may start while the one before it drains.
template <class... P>
void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, uint32_t shared, cudaStream_t stream,
            P... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks, config.blockDim = threads, config.dynamicSmemBytes = shared,
  config.stream = stream;
  config.attrs = &early, config.numAttrs = 1;
  REQUIRE(cudaLaunchKernelEx(&config, kernel, arguments...));
}

Outcome run(MatmulCall call, int way, cudaStream_t stream) {
  const auto start = [&](unsigned blocks, unsigned threads, uint32_t shared, auto* kernel,
                         const auto&... arguments) {
    REQUIRE(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
    launch(kernel, blocks, threads, shared, stream, arguments...);
    return Outcome::ok();
  };
  static const int n = multiprocessors();
  return with_tiles(way, [&]<class Tiles>(Tiles*) {
    call.shares = division_of<Tiles>(call, most_shares).shares;
    call.sums = sums(call), call.counters = counters();
    return call.dtype == DType::bf16 ? run_matmul_of<bf16, Tiles>(call, n, start)
                                     : run_matmul_of<f16, Tiles>(call, n, start);
  });
}

/// Each way to tile, and the one that the backend takes.
std::vector<Way> ways() {
  std::vector<Way> all;
  for (int i = 0; i < kWays; ++i)
    all.push_back({std::to_string(with_tiles(i, []<class Tiles>(Tiles*) { return Tiles::kColumns; })),
                   [i](const MatmulCall& call, cudaStream_t stream) { return run(call, i, stream); }});
  all.push_back({"best", [](const MatmulCall& call, cudaStream_t stream) {
                   int way = 0;
                   best_division(call, most_shares, &way);
                   return run(call, way, stream);
                 }});
  return all;
}

// ---- check

/// Whether a way computes this product. `bits` are those of another way, unless they are empty.
bool check(const Way& w, MatmulCall call, std::vector<uint16_t>& bits) {
  const Memory a(call.m * call.k * (call.one_a ? 1 : call.batch), call.dtype, 1),
      b(call.k * call.n * (call.one_b ? 1 : call.batch), call.dtype, 2),
      c(call.m * call.n * call.batch, call.dtype, 3), other(call.m * call.n * call.batch, call.dtype, 3),
      bias(call.n, call.dtype, 4);
  Errors* errors = nullptr;
  REQUIRE(cudaMalloc(&errors, sizeof *errors));
  const Errors none;
  REQUIRE(cudaMemcpy(errors, &none, sizeof none, cudaMemcpyDefault));
  call.a = a.at, call.b = b.at, call.c = c.at, call.bias = call.bias ? bias.at : nullptr;
  // Every second sum is added to c, whose elements are those of `other`.
  call.other = call.ending == Ending::sum && call.batch > 1 ? c.at : other.at;
  const Outcome ran = w.run(call, nullptr);
  if (!ran.good()) std::printf("%s: %s\n", w.name.c_str(), ran.text.c_str());
  const auto blocks = static_cast<unsigned>((call.m * call.n * call.batch + 255) / 256);
  if (call.dtype == DType::bf16)
    compare<bf16><<<blocks, 256>>>(call, static_cast<bf16*>(other.at), static_cast<bf16*>(c.at), errors);
  else
    compare<f16><<<blocks, 256>>>(call, static_cast<f16*>(other.at), static_cast<f16*>(c.at), errors);
  Errors found;
  REQUIRE(cudaMemcpy(&found, errors, sizeof found, cudaMemcpyDefault));
  cudaFree(errors);
  std::vector<uint16_t> got(c.bytes / 2);
  REQUIRE(cudaMemcpy(got.data(), c.at, c.bytes, cudaMemcpyDefault));
  if (bits.empty()) bits = got;
  const bool same = bits == got;
  const bool whole = c.guard_is_whole() && other.guard_is_whole();
  const bool good = ran.good() && found.wrong == 0 && whole && same;
  if (!good)
    std::printf(
        "WRONG %s: %lld x %lld x %lld, batch %lld, a%s b%s, bias %d, ending %d: %llu wrong, "
        "first at row %lld column %lld, largest error %.3g, memory behind it %s, bits %s\n",
        w.name.c_str(), (long long)call.m, (long long)call.n, (long long)call.k, (long long)call.batch,
        call.transpose_a ? "'" : "", call.transpose_b ? "'" : "", call.bias != nullptr,
        static_cast<int>(call.ending), found.wrong,
        found.wrong ? (long long)found.first / call.n % call.m : -1,
        found.wrong ? (long long)found.first % call.n : -1, found.largest * 0x1p-20,
        whole ? "whole" : "written", same ? "the same" : "differ");
  return good;
}

int check_all() {
  int wrong = 0;
  const int64_t sizes[][4] = {{128, 256, 64, 1},    {128, 256, 512, 1},   {256, 256, 64, 1},
                              {8, 8, 8, 1},         {200, 264, 72, 1},    {72, 520, 1000, 3},
                              {1000, 1512, 328, 2}, {4104, 776, 2048, 1}, {264, 136, 8200, 1},
                              {8, 1032, 4096, 2}};
  constexpr size_t kEndings = 4;
  std::vector<std::vector<uint16_t>> bits(std::size(sizes) * 8 * kEndings), none(1);
  for (const Way& w : ways())
    for (const int shares : {1, 16}) {
      int right = 0;
      most_shares = shares;
      for (size_t s = 0; s < std::size(sizes); ++s)
        for (size_t i = 0; i < 8 * kEndings; ++i) {
          MatmulCall call{.m = sizes[s][0], .n = sizes[s][1], .k = sizes[s][2], .batch = sizes[s][3]};
          call.transpose_a = i & 1, call.transpose_b = i & 2, call.dtype = i & 4 ? DType::f16 : DType::bf16;
          call.ending = static_cast<Ending>(i / 8);
          if (i / 8 % 2) call.bias = &call, call.one_b = true;
          none[0].clear();
          check(w, call, shares == 1 ? bits[s * 8 * kEndings + i] : none[0]) ? ++right : ++wrong;
          if (wrong > 20) return 1;
        }
      std::printf("%s, up to %d shares: %d right\n", w.name.c_str(), shares, right);
    }
  return wrong != 0;
}

// ---- time

double median_ms(std::vector<float> times) {
  std::ranges::sort(times);
  return times[times.size() / 2];
}

/// Each way's median of some launches, all ways in turns, so that they share the GPU's temperature.
void time_all(MatmulCall call, const char* name, int rounds) {
  const Memory a(call.m * call.k * call.batch, call.dtype, 1), b(call.k * call.n * call.batch, call.dtype, 2),
      c(call.m * call.n * call.batch, call.dtype, 3);
  call.a = a.at, call.b = b.at, call.c = c.at;
  std::vector<Way> all = ways();
  const Peer peer(call.m, call.n, call.k, call.batch, call.transpose_a, call.transpose_b, call.dtype);
  all.push_back({"cuBLASLt", [&](const MatmulCall& to, cudaStream_t stream) {
                   return peer.run(to.a, to.b, to.c, stream) ? Outcome::ok()
                                                             : Outcome::fail(WEFT_DEVICE, "cuBLASLt");
                 }});
  cudaEvent_t begin, end;
  REQUIRE(cudaEventCreate(&begin));
  REQUIRE(cudaEventCreate(&end));
  const double flops = 2.0 * static_cast<double>(call.m) * static_cast<double>(call.n) *
                       static_cast<double>(call.k) * static_cast<double>(call.batch);
  const int launches = std::max(1, static_cast<int>(8e12 / flops));
  std::vector<std::vector<float>> times(all.size());
  for (int round = -1; round < rounds; ++round)
    for (size_t i = 0; i < all.size(); ++i) {
      REQUIRE(cudaEventRecord(begin));
      for (int n = 0; n < launches; ++n)
        if (const Outcome ran = all[i].run(call, nullptr); !ran.good())
          std::printf("%s: %s\n", all[i].name.c_str(), ran.text.c_str());
      REQUIRE(cudaEventRecord(end));
      REQUIRE(cudaEventSynchronize(end));
      float ms = 0;
      REQUIRE(cudaEventElapsedTime(&ms, begin, end));
      if (round >= 0) times[i].push_back(ms / static_cast<float>(launches));
    }
  std::printf("%s %lld x %lld x %lld:", name, (long long)call.m, (long long)call.n, (long long)call.k);
  for (size_t i = 0; i < all.size(); ++i)
    std::printf("  %s %.0f", all[i].name.c_str(), flops / median_ms(times[i]) * 1e-9);
  std::printf("\n");
  cudaEventDestroy(begin), cudaEventDestroy(end);
}

void time_shapes() {
  const auto time = [](const char* name, int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
    time_all({.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb}, name, 5);
  };
  for (const int64_t n : {4096, 8192}) {
    time("a b'", n, n, n, false, true);
    time("a b", n, n, n, false, false);
    time("a' b", n, n, n, true, false);
  }
  time("a b'", 2048, 2048, 2048, false, true);
  time("few rows", 128, 4096, 4096, false, true);
  const int64_t rows = 32768;  // tokens of a step of GPT-2
  for (const auto& [in, out] :
       {std::pair<int64_t, int64_t>{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}}) {
    time("linear", rows, out, in, false, true);
    time("its dx", rows, in, out, false, false);
    time("its dw", out, in, rows, true, false);
  }
  time("scores", rows, 50304, 768, false, true);
  time("their dx", rows, 768, 50304, false, false);
  time("their dw", 50304, 768, rows, true, false);
}

/// Microseconds of the way that the backend takes, with each ending at GPT-2's sizes, in turns.
void time_endings(std::string_view wanted) {
  struct Case {
    const char* name;
    MatmulCall call;
  };
  const int64_t rows = 32768;
  const MatmulCall out{.m = rows, .n = 768, .k = 768, .transpose_b = true},
      up{.m = rows, .n = 3072, .k = 768, .transpose_b = true},
      down{.m = rows, .n = 768, .k = 3072, .transpose_b = true}, dx{.m = rows, .n = 3072, .k = 768};
  std::vector<Case> cases;
  const auto add = [&](const char* name, MatmulCall call, Ending ending, bool bias) {
    if (!std::string_view(name).starts_with(wanted)) return;
    call.bias = bias ? &cases : nullptr;
    cases.push_back({name, call});
    call.ending = ending;
    cases.push_back({name, call});
  };
  add("out + residual", out, Ending::sum, true);
  add("down + residual", down, Ending::sum, true);
  add("up, gelu", up, Ending::gelu, true);
  add("dx of down, slope of gelu", dx, Ending::gelu_slope, false);
  require(cases.empty() ? cudaErrorInvalidValue : cudaSuccess, "no case has a name that begins so");
  const int64_t most = rows * 3072;
  const Memory a(most, DType::bf16, 1), b(most, DType::bf16, 2), c(most, DType::bf16, 3),
      other(most, DType::bf16, 4), bias(3072, DType::bf16, 5);
  const Way best = ways().back();
  cudaEvent_t begin, end;
  REQUIRE(cudaEventCreate(&begin));
  REQUIRE(cudaEventCreate(&end));
  std::vector<std::vector<float>> times(cases.size());
  constexpr int kLaunches = 20;
  for (int round = -1; round < 5; ++round)
    for (size_t i = 0; i < cases.size(); ++i) {
      MatmulCall call = cases[i].call;
      call.a = a.at, call.b = b.at, call.c = c.at, call.other = other.at;
      if (call.bias) call.bias = bias.at;
      REQUIRE(cudaEventRecord(begin));
      for (int n = 0; n < kLaunches; ++n)
        if (const Outcome ran = best.run(call, nullptr); !ran.good()) std::printf("%s\n", ran.text.c_str());
      REQUIRE(cudaEventRecord(end));
      REQUIRE(cudaEventSynchronize(end));
      float ms = 0;
      REQUIRE(cudaEventElapsedTime(&ms, begin, end));
      if (round >= 0) times[i].push_back(ms / kLaunches);
    }
  for (size_t i = 0; i < cases.size(); i += 2)
    std::printf("%s: %.0f us, plain %.0f\n", cases[i].name, median_ms(times[i + 1]) * 1e3,
                median_ms(times[i]) * 1e3);
}

}  // namespace

int main(int n, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (n == 2 && !std::strcmp(arguments[1], "check")) return check_all();
  if (n == 2 && !std::strcmp(arguments[1], "time")) return time_shapes(), 0;
  if ((n == 2 || n == 3) && !std::strcmp(arguments[1], "endings"))
    return time_endings(n > 2 ? arguments[2] : ""), 0;
  std::fprintf(stderr, "matmul check | time | endings [NAME]\n");
  return 2;
}

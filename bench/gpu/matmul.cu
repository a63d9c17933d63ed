// The products of 16-bit matrices of backends/cuda/hopper against cuBLASLt, on a GPU of architecture 9.0:
//
//   nvcc -std=c++20 -O3 -gencode arch=compute_90a,code=sm_90a -Iinclude bench/gpu/matmul.cu
//     bench/gpu/matmul_peer.cpp backends/cuda/hopper/tensor_map.cpp -lcublasLt -o build/matmul
//   build/matmul check        results against a plain product, of small and odd sizes in all layouts
//   build/matmul time         medians, in TFLOP/s, of each way to tile and of cuBLASLt, taken in turns
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
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

/// errors[0]: the number of wrong elements, [1]: the first of them, [2]: the largest error, in 2^-20.
template <class T>
__global__ void compare(MatmulCall call, const T* before, const T* got, unsigned long long* errors) {
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
  if (call.accumulate) sum += widened(before[at]);
  const float error = fabsf(sum - widened(got[at]));
  const float allowed = fabsf(sum) * 0x1p-8f + 1e-5f * static_cast<float>(call.k);
  atomicMax(errors + 2, static_cast<unsigned long long>(fminf(error, 1e6f) * 0x1p20f));
  if (error <= allowed) return;
  atomicAdd(errors, 1);
  atomicMin(errors + 1, static_cast<unsigned long long>(at));
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
    call.sums = sums(call);
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
      c(call.m * call.n * call.batch, call.dtype, 3), before(call.m * call.n * call.batch, call.dtype, 3),
      bias(call.n, call.dtype, 4);
  unsigned long long* errors = nullptr;
  REQUIRE(cudaMalloc(&errors, 3 * sizeof *errors));
  const unsigned long long none[3] = {0, ~0ull, 0};
  REQUIRE(cudaMemcpy(errors, none, sizeof none, cudaMemcpyDefault));
  call.a = a.at, call.b = b.at, call.c = c.at, call.bias = call.bias ? bias.at : nullptr;
  const Outcome ran = w.run(call, nullptr);
  if (!ran.good()) std::printf("%s: %s\n", w.name.c_str(), ran.text.c_str());
  const auto blocks = static_cast<unsigned>((call.m * call.n * call.batch + 255) / 256);
  if (call.dtype == DType::bf16)
    compare<bf16><<<blocks, 256>>>(call, static_cast<bf16*>(before.at), static_cast<bf16*>(c.at), errors);
  else
    compare<f16><<<blocks, 256>>>(call, static_cast<f16*>(before.at), static_cast<f16*>(c.at), errors);
  unsigned long long found[3];
  REQUIRE(cudaMemcpy(found, errors, sizeof found, cudaMemcpyDefault));
  cudaFree(errors);
  std::vector<uint16_t> got(c.bytes / 2);
  REQUIRE(cudaMemcpy(got.data(), c.at, c.bytes, cudaMemcpyDefault));
  if (bits.empty()) bits = got;
  const bool same = bits == got;
  const bool good = ran.good() && found[0] == 0 && c.guard_is_whole() && same;
  if (!good)
    std::printf(
        "WRONG %s: %lld x %lld x %lld, batch %lld, a%s b%s, bias %d, accumulate %d: %llu wrong, "
        "first at row %lld column %lld, largest error %.3g, memory behind it %s, bits %s\n",
        w.name.c_str(), (long long)call.m, (long long)call.n, (long long)call.k, (long long)call.batch,
        call.transpose_a ? "'" : "", call.transpose_b ? "'" : "", call.bias != nullptr, call.accumulate,
        found[0], found[0] ? (long long)found[1] / call.n % call.m : -1,
        found[0] ? (long long)found[1] % call.n : -1, found[2] * 0x1p-20,
        c.guard_is_whole() ? "whole" : "written", same ? "the same" : "differ");
  return good;
}

int check_all() {
  int wrong = 0;
  const int64_t sizes[][4] = {{128, 256, 64, 1},    {128, 256, 512, 1},   {256, 256, 64, 1},
                              {8, 8, 8, 1},         {200, 264, 72, 1},    {72, 520, 1000, 3},
                              {1000, 1512, 328, 2}, {4104, 776, 2048, 1}, {264, 136, 8200, 1},
                              {8, 1032, 4096, 2}};
  std::vector<std::vector<uint16_t>> bits(std::size(sizes) * 16), none(1);
  for (const Way& w : ways())
    for (const int shares : {1, 16}) {
      int right = 0;
      most_shares = shares;
      for (size_t s = 0; s < std::size(sizes); ++s)
        for (size_t i = 0; i < 16; ++i) {
          MatmulCall call{.m = sizes[s][0], .n = sizes[s][1], .k = sizes[s][2], .batch = sizes[s][3]};
          call.transpose_a = i & 1, call.transpose_b = i & 2, call.dtype = i & 4 ? DType::f16 : DType::bf16;
          if (i & 8) (i & 1 ? call.accumulate : (call.bias = &call, call.one_b)) = true;
          none[0].clear();
          check(w, call, shares == 1 ? bits[s * 16 + i] : none[0]) ? ++right : ++wrong;
          if (wrong > 40) return 1;
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
  const Peer peer(call.m, call.n, call.k, call.batch, call.transpose_a, call.transpose_b,
                  call.dtype == DType::bf16);
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
    time_all({.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb}, name, 9);
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
  time("scores", rows / 2, 50304, 768, false, true);
}

}  // namespace

int main(int n, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (n == 2 && !std::strcmp(arguments[1], "check")) return check_all();
  if (n == 2 && !std::strcmp(arguments[1], "time")) return time_shapes(), 0;
  std::fprintf(stderr, "matmul check | time\n");
  return 2;
}

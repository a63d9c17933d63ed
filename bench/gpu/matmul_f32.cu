// The products of f32 matrices of backends/cuda/hopper on tensor cores, against cuBLASLt's, which take none,
// on a GPU of architecture 9.0:
//
//   nvcc -std=c++20 -O3 -gencode arch=compute_90a,code=sm_90a -Iinclude bench/gpu/matmul_f32.cu
//     bench/gpu/matmul_peer.cpp backends/cublaslt/library.cpp backends/cuda/hopper/tensor_map.cpp
//     -o build/matmul_f32
//   build/matmul_f32 check    results against sums in f64, in units of the bound gamma(k) sum |a| |b|
//   build/matmul_f32 time     medians in microseconds of each way to tile and of cuBLASLt, taken in turns
#include <cmath>
#include <cstring>
#include <string>

#include "../../backends/cuda/hopper/split_call.hpp"
#include "matmul_launch.hpp"
#include "matmul_peer.h"

namespace {

using namespace weft::cuda;
using namespace weft::cuda::hopper;
using weft::DType;
using weft::backend::Outcome;

// ---- data

enum class Numbers { normal, positive, tiny, spread, huge, infinite };
constexpr const char* kNames[] = {"normal", "positive", "tiny", "spread", "huge", "infinite"};

/// A product of two of them is within the range of f32, for each kind.
__device__ float number_at(Numbers kind, uint64_t i, uint32_t seed) {
  const float x = normal_at(i, seed);
  const auto hash = static_cast<uint32_t>((i + seed) * 2654435761u);
  switch (kind) {
    case Numbers::positive: return 1 + fabsf(x);
    case Numbers::tiny: return seed == 1 ? ldexpf(x, -120 - static_cast<int>(hash >> 28)) : ldexpf(x, 40);
    case Numbers::spread: return ldexpf(x, static_cast<int>(hash >> 26) - 32);
    case Numbers::huge:
      if (seed == 1 && hash % 131 == 0) return hash & 0x10000 ? 3.4028235e38f : -3.4e38f;
      return seed == 1 ? x : ldexpf(x, -10);
    case Numbers::infinite:
      if (hash % 4099 == 0) return hash & 0x10000 ? INFINITY : -INFINITY;
      if (hash % 8209 == 0) return NAN;
      if (hash % 127 == 0) return 0;
      return x;
    default: return x;
  }
}
__global__ void fill(float* to, int64_t n, Numbers kind, uint32_t seed) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * blockDim.x)
    to[i] = number_at(kind, static_cast<uint64_t>(i), seed);
}

struct Memory {
  static constexpr size_t kGuard = 1024;
  Memory(int64_t elements, Numbers kind, uint32_t seed) : n(static_cast<size_t>(elements)) {
    REQUIRE(cudaMalloc(&at, (n + kGuard) * sizeof *at));
    REQUIRE(cudaMemset(at + n, 0x5a, kGuard * sizeof *at));
    fill<<<1024, 256>>>(at, elements, kind, seed);
  }
  ~Memory() { cudaFree(at); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  bool guard_is_whole() const {
    std::vector<uint32_t> guard(kGuard);
    REQUIRE(cudaMemcpy(guard.data(), at + n, kGuard * sizeof *at, cudaMemcpyDefault));
    return std::ranges::all_of(guard, [](uint32_t x) { return x == 0x5a5a5a5a; });
  }
  size_t n;
  float* at = nullptr;
};

// ---- the truth

struct Found {
  unsigned long long wrong = 0, first = ~0ull;
  unsigned worst = 0, peers_worst = 0;  ///< the bits of a float: error / bound
};

/// f64's own roundings are far below the bound.
__global__ void compare(SplitCall call, const float* before, const float* got, const float* peers,
                        Found* found) {
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, of_matrix = call.m * call.n;
  if (at >= call.batch * of_matrix) return;
  const int64_t batch = at / of_matrix, m = at % of_matrix / call.n, n = at % call.n;
  const float* const a = call.a + (call.one_a ? 0 : batch * call.m * call.k);
  const float* const b = call.b + (call.one_b ? 0 : batch * call.k * call.n);
  double sum = 0, size = 0;
  const auto add = [&](double x) { sum += x, size += fabs(x); };
  for (int64_t k = 0; k < call.k; ++k)
    add(double{a[call.transpose_a ? k * call.m + m : m * call.k + k]} *
        b[call.transpose_b ? n * call.k + k : k * call.n + n]);
  if (call.bias) add(call.bias[n]);
  if (call.onto) add(before[at]);
  const double bound = (call.k + 2.0) * (0x1p-24 * size + 0x1p-149);
  const auto off = [&](float y) {
    if (isnan(sum) || isnan(y)) return isnan(sum) && isnan(y) ? 0.0f : INFINITY;
    if (size > 1.7e38) return isinf(sum) && isfinite(y) ? INFINITY : 0.0f;
    return static_cast<float>(fabs(sum - y) / bound);
  };
  const float error = off(got[at]);
  atomicMax(&found->worst, __float_as_uint(error));
  if (peers) atomicMax(&found->peers_worst, __float_as_uint(off(peers[at])));
  if (error <= 1) return;
  atomicAdd(&found->wrong, 1);
  atomicMin(&found->first, static_cast<unsigned long long>(at));
}

// ---- the ways to tile

/// Memory that all products use in turn.
struct Workspace {
  void* at = nullptr;
  size_t size = 0;
  void* of(size_t wanted) {
    if (wanted > size) {
      cudaFree(at);
      REQUIRE(cudaMalloc(&at, size = wanted));
    }
    return at;
  }
} planes, sums;

int most_shares = kMostSplitShares;

constexpr int kOnlyPlanes = -2, kBest = -1;
Outcome run(SplitCall call, int way, cudaStream_t stream) {
  if (way == kBest) best_split(call, most_shares, &way);
  call.planes = static_cast<uint16_t*>(planes.of(static_cast<size_t>(call.plane_elements()) * 2));
  return with_split_tiles(way == kOnlyPlanes ? 0 : way, [&]<class Tiles>(Tiles*) {
    call.shares = split_division_of<Tiles>(call, most_shares).shares;
    if (call.shares > 1)
      call.sums = static_cast<float*>(sums.of(static_cast<size_t>(call.shares * call.elements()) * 4));
    if (way == kOnlyPlanes) return start_planes(call, Starter{stream});
    return run_split_of<Tiles>(call, multiprocessors(), Starter{stream});
  });
}

// ---- check

enum class Adds { nothing, bias, itself, other };

bool check(int way, SplitCall call, Numbers kind, Adds adds, Found* worst) {
  const Memory a(call.m * call.k * (call.one_a ? 1 : call.batch), kind, 1),
      b(call.k * call.n * (call.one_b ? 1 : call.batch), kind, 2), c(call.elements(), Numbers::normal, 3),
      before(call.elements(), Numbers::normal, 3), bias(call.n, Numbers::normal, 4),
      peers(call.elements(), kind, 5);
  call.a = a.at, call.b = b.at, call.c = c.at;
  if (adds == Adds::bias || adds == Adds::other) call.bias = bias.at;
  if (adds == Adds::itself) call.onto = c.at;
  if (adds == Adds::other) call.onto = before.at;
  const Outcome ran = run(call, way, nullptr);
  if (!ran.good()) std::printf("%s\n", ran.text.c_str());
  const bool has_peer = adds == Adds::nothing && !call.one_a && !call.one_b;
  if (has_peer)
    Peer(call.m, call.n, call.k, call.batch, call.transpose_a, call.transpose_b, DType::f32)
        .run(a.at, b.at, peers.at, nullptr);
  Found found, *on_device = nullptr;
  REQUIRE(cudaMalloc(&on_device, sizeof found));
  REQUIRE(cudaMemcpy(on_device, &found, sizeof found, cudaMemcpyDefault));
  compare<<<static_cast<unsigned>((call.elements() + 255) / 256), 256>>>(
      call, before.at, c.at, has_peer ? peers.at : nullptr, on_device);
  REQUIRE(cudaMemcpy(&found, on_device, sizeof found, cudaMemcpyDefault));
  cudaFree(on_device);
  worst->worst = std::max(worst->worst, found.worst);
  worst->peers_worst = std::max(worst->peers_worst, found.peers_worst);
  const bool good = ran.good() && found.wrong == 0 && c.guard_is_whole();
  if (!good)
    std::printf(
        "WRONG way %d: %lld x %lld x %lld, batch %lld, a%s b%s, %s, adds %d: %llu wrong, first at row %lld "
        "column %lld, memory behind it %s\n",
        way, (long long)call.m, (long long)call.n, (long long)call.k, (long long)call.batch,
        call.transpose_a ? "'" : "", call.transpose_b ? "'" : "", kNames[static_cast<int>(kind)],
        static_cast<int>(adds), found.wrong, found.wrong ? (long long)found.first / call.n % call.m : -1,
        found.wrong ? (long long)found.first % call.n : -1, c.guard_is_whole() ? "whole" : "written");
  return good;
}

float as_number(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

int check_all() {
  int wrong = 0;
  // The last axis of a is a multiple of 4: copied rows begin at 16 bytes.
  const int64_t sizes[][4] = {{128, 128, 64, 1},  {128, 96, 512, 1},  {4, 5, 4, 1},
                              {200, 263, 72, 1},  {72, 522, 1000, 3}, {1000, 1511, 328, 2},
                              {256, 96, 8200, 1}, {4104, 776, 64, 1}, {8, 1032, 4096, 2}};
  for (int way = 0; way < kSplitWays; ++way)
    for (const Numbers kind : {Numbers::normal, Numbers::positive, Numbers::tiny, Numbers::spread,
                               Numbers::huge, Numbers::infinite}) {
      int right = 0;
      Found worst;
      for (const auto& [m, n, k, batch] : sizes)
        for (int i = 0; i < 8; ++i) {
          SplitCall call;
          call.m = m, call.n = n, call.k = k, call.batch = batch;
          call.transpose_a = i & 1, call.transpose_b = i & 2;
          call.one_a = batch > 1 && i == 5, call.one_b = batch > 1 && i == 3;
          most_shares = i & 4 ? 1 : kMostSplitShares;
          check(way, call, kind, static_cast<Adds>((i + way) % 4), &worst) ? ++right : ++wrong;
          if (wrong > 20) return 1;
        }
      std::printf("way %d, %s: %d right, errors up to %.3f of the bound, of cuBLASLt %.3f\n", way,
                  kNames[static_cast<int>(kind)], right, as_number(worst.worst),
                  as_number(worst.peers_worst));
    }
  return wrong != 0;
}

// ---- time

void time(const char* name, int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
  SplitCall call;
  call.m = m, call.n = n, call.k = k, call.transpose_a = transpose_a, call.transpose_b = transpose_b;
  most_shares = kMostSplitShares;
  const Memory a(m * k, Numbers::normal, 1), b(k * n, Numbers::normal, 2), c(m * n, Numbers::normal, 3);
  call.a = a.at, call.b = b.at, call.c = c.at;
  const Peer peer(m, n, k, 1, transpose_a, transpose_b, DType::f32);
  std::vector<std::function<Outcome(cudaStream_t)>> all;
  for (int way = kOnlyPlanes; way < kSplitWays; ++way)
    all.push_back([&call, way](cudaStream_t stream) { return run(call, way, stream); });
  all.push_back([&](cudaStream_t stream) {
    return peer.run(call.a, call.b, call.c, stream) ? Outcome::ok() : Outcome::fail(WEFT_DEVICE, "cuBLASLt");
  });
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const auto us = medians_ms(all, std::clamp(static_cast<int>(4e11 / flops), 2, 50), 5);
  int way = 0;
  const Division best = best_split(call, most_shares, &way);
  std::printf(
      "%-8s %4lld x %4lld x %4lld: planes %.1f, cuBLASLt %.1f, best %.1f us (way %d, %d shares, %.1f "
      "foreseen), ",
      name, (long long)m, (long long)n, (long long)k, us[0] * 1e3, us.back() * 1e3, us[1] * 1e3, way,
      best.shares, best.microseconds);
  std::printf("%.0f and %.0f TFLOP/s; ways", flops / us[1] * 1e-9, flops / us.back() * 1e-9);
  for (int i = 0; i < kSplitWays; ++i) std::printf(" %.1f", us[static_cast<size_t>(i) + 2] * 1e3);
  std::printf("\n");
}

void time_all() {
  const int64_t rows = 4096;  // tokens of a step of GPT 6 x 384
  for (const auto& [in, out] :
       {std::pair<int64_t, int64_t>{384, 384}, {384, 1152}, {384, 1536}, {1536, 384}}) {
    time("linear", rows, out, in, false, true);
    time("its dx", rows, in, out, false, false);
    time("its dw", out, in, rows, true, false);
  }
  time("a b'", 4096, 4096, 4096, false, true);
  time("a' b", 4096, 4096, 4096, true, false);
  time("small", 512, 512, 512, false, true);
  time("small", 256, 384, 384, false, true);
}

}  // namespace

int main(int n, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (n == 2 && !std::strcmp(arguments[1], "check")) return check_all();
  if (n == 2 && !std::strcmp(arguments[1], "time")) return time_all(), 0;
  std::fprintf(stderr, "matmul_f32 check | time\n");
  return 2;
}

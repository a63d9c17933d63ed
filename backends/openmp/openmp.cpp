#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "backends/native/native.h"
#include "backends/reference/records.h"
#include "weft/shared/host_device.hpp"

// The kernels of `native`, scheduled by OpenMP: OMP_NUM_THREADS, OMP_SCHEDULE and OMP_PROC_BIND apply, and a
// program that uses OpenMP anyway has one set of threads instead of two.
namespace {

struct OpenMp {
  static constexpr const char* kName = "openmp";
  static constexpr const char* kKind = "cpu";
  static const char* label() {
    static const std::string text = weft::backend::format("host memory, kernels for {}, {} threads of OpenMP",
                                                          weft::native::target_name(), omp_get_max_threads());
    return text.c_str();
  }
  static constexpr const char* kNumerics = "computes in f32 and wider, keeps denormals";
  static weft::backend::KernelTable& kernels() {
    static weft::backend::KernelTable table(
        kName, {weft::native::own(), weft::native::tile_records(), weft::reference::records()});
    return table;
  }
};

// The host's parallel_for, by OpenMP. Nested calls run on the calling thread, as there.
void spread(int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t), void* context) {
  const int64_t threads = omp_in_parallel() ? 1 : omp_get_max_threads();
  const int64_t pieces = std::min(n / std::max<int64_t>(grain, 1), 4 * threads);
  if (threads == 1 || pieces <= 1) return body(context, 0, n);
#pragma omp parallel for schedule(runtime)
  for (int64_t i = 0; i < pieces; ++i) body(context, n * i / pieces, n * (i + 1) / pieces);
}

}  // namespace

weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
  if (auto outcome = weft::backend::Host(host).speaks(); !outcome.good())
    return weft::backend::fill(error, outcome.code, outcome.text);
  // The host's other services are kept; an older host's table is shorter.
  static weft_host ours{};
  std::memcpy(&ours, host, std::min<size_t>(host->size, sizeof ours));
  ours.size = sizeof ours;
  ours.parallel_for = spread;
  // After a fork the runtime's threads are gone, and it would wait for them forever.
  [[maybe_unused]] static const int once = pthread_atfork(nullptr, nullptr, [] { omp_set_num_threads(1); });
  return weft::shared::HostDevice<OpenMp>::negotiate(&ours, backend, error);
}

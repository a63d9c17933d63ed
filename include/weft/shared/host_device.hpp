#pragma once
#include <cstdlib>
#include <cstring>
#include <limits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "weft/backend.hpp"

// A device of host memory with an inline queue: all of a backend but its kernels and its names.
namespace weft::shared {

/// `Traits` gives kName (of the backend), kKind (of the device), label(), kNumerics and kernels(), the
/// KernelTable; kRank, where it may be the default; and kDTypes, where it does not have all.
///
///     weft_code WEFT_NEGOTIATE(const weft_host* host, const weft_backend** backend, weft_error* error) {
///       return HostDevice<Reference>::negotiate(host, backend, error);
///     }
template <class Traits>
struct HostDevice {
  static weft_code negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
    return backend::guarded(error, [&]() -> backend::Outcome {
      if (auto outcome = backend::Host(host).speaks(); !outcome.good()) return outcome;
      Traits::kernels().set_host(host);
      *backend = &kTable;
      return backend::Outcome::ok();
    });
  }

 private:
  static constexpr uint32_t rank() {
    if constexpr (requires { Traits::kRank; }) return Traits::kRank;
    return 0;
  }
  static constexpr uint64_t dtypes() {
    if constexpr (requires { Traits::kDTypes; }) return Traits::kDTypes;
    return (uint64_t{1} << kDTypeCount) - 1;
  }
  static weft_code probe(weft_probe* probe, weft_error*) {
    backend::write(probe, &weft_probe::n_devices, 1);
    return WEFT_OK;
  }
  static weft_code describe(uint32_t ordinal, weft_capability* c, weft_error* error) {
    if (ordinal != 0) return backend::fill(error, WEFT_INVALID_ARGUMENT, "there is one device, number 0");
    constexpr uint64_t no_limit = std::numeric_limits<int64_t>::max();
    backend::write(c, &weft_capability::available, 1);
    backend::write_text(c, &weft_capability::kind, Traits::kKind);
    backend::write_text(c, &weft_capability::label, Traits::label());
    backend::write(c, &weft_capability::queue_kind, WEFT_QUEUE_INLINE);
    backend::write(c, &weft_capability::host_memory, 1);
    backend::write(c, &weft_capability::units, 1);
    backend::write(c, &weft_capability::dtypes, dtypes());
    backend::write(c, &weft_capability::max_buffer, no_limit);
    backend::write(c, &weft_capability::max_binding, no_limit);
    backend::write(c, &weft_capability::offset_alignment, 1);
    backend::write(c, &weft_capability::read_write_buffer, 1);
    backend::write_text(c, &weft_capability::numerics, Traits::kNumerics);
    return WEFT_OK;
  }
  static weft_code open_device(uint32_t ordinal, weft_device* device, weft_capability* c, weft_error* error) {
    static char the_device;
    const weft_code code = describe(ordinal, c, error);
    if (code == WEFT_OK) *device = reinterpret_cast<weft_device>(&the_device);
    return code;
  }
  static void close_device(weft_device) {}
  // A large buffer is touched page by page; large pages make that 512 times fewer faults.
  static void want_large_pages([[maybe_unused]] char* block, [[maybe_unused]] uint64_t bytes) {
#if defined(__linux__)
    constexpr uint64_t page = uint64_t{1} << 21, least = 2 * page;
    if (bytes < least) return;
    const auto start = (reinterpret_cast<uintptr_t>(block) + page - 1) / page * page;
    const auto end = (reinterpret_cast<uintptr_t>(block) + bytes) / page * page;
    (void)madvise(block + (start - reinterpret_cast<uintptr_t>(block)), end - start, MADV_HUGEPAGE);
#endif
  }
  static weft_code allocate(weft_device, uint64_t bytes, void** handle, weft_error* error) {
    // Not std::aligned_alloc: that of glibc before 2.38 finds no room where a buffer of the same size has
    // been, and takes more from the system each time. Where the block begins stands before what is aligned.
    constexpr uint64_t alignment = 64, most = std::numeric_limits<int64_t>::max() - 2 * alignment;
    auto* block = bytes > most ? nullptr : static_cast<char*>(std::malloc(bytes + 2 * alignment));
    if (block != nullptr) {
      want_large_pages(block, bytes);
      const auto at = (reinterpret_cast<uintptr_t>(block) / alignment + 2) * alignment;
      *handle = block + (at - reinterpret_cast<uintptr_t>(block));
      static_cast<void**>(*handle)[-1] = block;
      return WEFT_OK;
    }
    return backend::fill(error, WEFT_OUT_OF_MEMORY,
                         backend::format("no {} bytes of host memory are left", bytes));
  }
  static void free(weft_device, void* handle) {
    if (handle != nullptr) std::free(static_cast<void**>(handle)[-1]);
  }
  static weft_code open_queue(weft_device device, weft_queue* queue, weft_error*) {
    *queue = reinterpret_cast<weft_queue>(device);
    return WEFT_OK;
  }
  static void close_queue(weft_queue) {}
  static weft_code copy(weft_queue, const weft_copy* c, weft_error*) {
    const void* from = c->source ? static_cast<char*>(c->source) + c->source_offset : c->host_source;
    void* to = c->target ? static_cast<char*>(c->target) + c->target_offset : c->host_target;
    if (c->bytes > 0) std::memmove(to, from, c->bytes);
    return WEFT_OK;
  }
  static weft_code synchronize(weft_queue, weft_error*) { return WEFT_OK; }
  static weft_code kernels(weft_device, const weft_kernel* const** list, uint32_t* n, weft_error*) {
    *list = Traits::kernels().data();
    *n = Traits::kernels().size();
    return WEFT_OK;
  }

  static constexpr weft_backend kTable = {
      .size = sizeof(weft_backend),
      .abi = WEFT_ABI,
      .name = Traits::kName,
      .version = "0.1.0",
      .probe = probe,
      .open_device = open_device,
      .close_device = close_device,
      .allocate = allocate,
      .free = free,
      .open_queue = open_queue,
      .close_queue = close_queue,
      .copy = copy,
      .synchronize = synchronize,
      .kernels = kernels,
      .rank = rank(),
      .describe = describe,
  };
};

}  // namespace weft::shared

#pragma once
#include "../cuda/kernel.hpp"

// The language of chains (backends/cuda/chain/language.hpp), on a CPU: copies end at once.
namespace weft::cuda::chains {

/// A barrier of shared memory that counts arrivals and bytes.
class Barrier {
 public:
  void init(uint32_t arrivals) { wanted_ = left_ = arrivals, bytes_ = 0, phase_ = 0; }
  void arrive() { --left_, go_on(); }
  void arrive_expecting(uint32_t bytes) { bytes_ += bytes, arrive(); }
  void come(uint32_t bytes) { bytes_ -= bytes, go_on(); }
  void wait(uint32_t phase) {
    while ((phase_ & 1) == phase) emulated::rest();
  }

 private:
  void go_on() {
    if (left_ == 0 && bytes_ == 0) left_ = wanted_, ++phase_;
  }
  uint32_t wanted_, left_, bytes_, phase_;
};

inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline void show_barriers() {}
inline void sync_threads(int id, int threads) { emulated::sync_threads(id, static_cast<unsigned>(threads)); }

inline uint64_t read_once() { return 0; }
inline void copy_bytes(void* to, const void* from, uint32_t bytes, Barrier& barrier, uint64_t) {
  std::memcpy(to, from, bytes);
  barrier.come(bytes);
}

template <class P>
P load_shared(const P* from) {
  return *from;
}

/// Other blocks have a turn before it.
template <class T>
T load_now(const void* from) {
  emulated::rest();
  T x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
template <class T>
void store_now(void* to, T x) {
  std::memcpy(to, &x, sizeof x);
}

}  // namespace weft::cuda::chains

#pragma once
#include <array>

#include "elements.hpp"

// What becomes of a gradient in f32: it is clipped, a step of AdamW goes along it, and the new parameter is
// copied in 16 bits. The three calls are one pass over memory where each still waits when the next one comes.
namespace weft::cuda {

/// y = x scale, for a block's share of the elements.
template <class T>
__device__ void scale_elements(T* y, const T* x, float scale, int64_t begin, int64_t end) {
  const auto multiply = [&]<int n>(int64_t i) {
    float elements[n];
    read(elements, x + i);
#pragma unroll
    for (int k = 0; k < n; ++k) elements[k] *= scale;
    write(y + i, elements);
  };
  each_element(begin, end, multiply, x, y);
}

struct Update {
  struct Piece {
    const float* gradient;
    const float* norm;  ///< of all gradients, or null: they are not clipped
    float* clipped;     ///< the clipped gradient
    float* parameter;   ///< or null: no step
    float *mean, *square;
    const float* rate;
    float *mean_weight, *square_weight;
    uint16_t* copy;  ///< of the parameter, or null
    int64_t n;
  };
  static constexpr int kMost = 40;

  struct Clip {
    float most, epsilon;
    bool operator==(const Clip&) const = default;
    /// What gradients are multiplied by; a NaN norm counts.
    __device__ float scale(float norm) const {
      const float wanted = most / (norm + epsilon);
      return 1 < wanted ? 1 : wanted;
    }
  };
  struct Step {
    float beta1, rest1, beta2, rest2, epsilon, decay;
    bool operator==(const Step&) const = default;
  };
  /// Of pieces that have them: the first one decides.
  struct Common {
    bool clips, steps, copies, copies_bf16;
    Clip clip;
    Step step;
    bool agrees(const Common& o) const {
      return (!clips || !o.clips || clip == o.clip) && (!steps || !o.steps || step == o.step) &&
             (!copies || !o.copies || copies_bf16 == o.copies_bf16);
    }
    void join(const Common& o) {
      if (o.clips) clips = true, clip = o.clip;
      if (o.steps) steps = true, step = o.step;
      if (o.copies) copies = true, copies_bf16 = o.copies_bf16;
    }
  };

  static __device__ void run(const Piece& p, const Common& c, int64_t begin, int64_t end) {
    const float scale = p.norm ? c.clip.scale(*p.norm) : 1;
    if (p.parameter) return advance(p, c, scale, begin, end);
    scale_elements(p.clipped, p.gradient, scale, begin, end);
  }
  /// All blocks have read the weights of the step before.
  static __device__ void end(const Pieces<Update>& pieces, int i) {
    const Piece& p = pieces.all[i];
    if (threadIdx.x != 0 || !p.parameter) return;
    *p.mean_weight = next_mean_weight(p, pieces.common.step);
    *p.square_weight = next_square_weight(p, pieces.common.step);
  }

 private:
  static __device__ float next_mean_weight(const Piece& p, const Step& s) {
    return *p.mean_weight * s.beta1 + s.rest1;
  }
  static __device__ float next_square_weight(const Piece& p, const Step& s) {
    return *p.square_weight * s.beta2 + s.rest2;
  }
  static __device__ void advance(const Piece& p, const Common& c, float scale, int64_t begin, int64_t end) {
    const Step s = c.step;
    const float rate = *p.rate, of_mean = 1 / next_mean_weight(p, s),
                of_square = 1 / next_square_weight(p, s), decay = 1 - rate * s.decay;
    const auto advance = [&]<int n>(int64_t i) {
      float g[n], m[n], v[n], x[n];
      read(g, p.gradient + i), read(m, p.mean + i), read(v, p.square + i), read(x, p.parameter + i);
      if (p.norm) {
#pragma unroll
        for (int k = 0; k < n; ++k) g[k] *= scale;
        write(p.clipped + i, g);
      }
#pragma unroll
      for (int k = 0; k < n; ++k) {
        m[k] = m[k] * s.beta1 + g[k] * s.rest1, v[k] = v[k] * s.beta2 + g[k] * g[k] * s.rest2;
        x[k] = x[k] * decay - rate * (m[k] * of_mean / (sqrtf(v[k] * of_square) + s.epsilon));
      }
      write(p.mean + i, m), write(p.square + i, v), write(p.parameter + i, x);
      if (p.copy) c.copies_bf16 ? copy<bf16>(p, i, x) : copy<f16>(p, i, x);
    };
    each_element(begin, end, advance, p.gradient, p.clipped, p.mean, p.square, p.parameter, p.copy);
  }
  template <class T, int n>
  static __device__ void copy(const Piece& p, int64_t i, const float (&x)[n]) {
    write(reinterpret_cast<T*>(p.copy) + i, x);
  }
};
static_assert(sizeof(Pieces<Update>) <= 4000);

/// The piece of a work that waits and of which `is` says so, with the work, if calls that agree with it and
/// read and write this may become a part of it.
struct WaitingUpdate {
  CollectedOf<Update>* all = nullptr;
  Update::Piece* piece = nullptr;
  explicit operator bool() const { return all != nullptr; }
};
/// For the owner of `collecting`. The piece itself makes what is `made` here.
template <class F>
WaitingUpdate find_update(Queue& queue, const Update::Common& common, Range made,
                          std::span<const Range> reads, std::span<const Range> writes, F is) {
  WaitingUpdate found;
  std::vector<Range> all_reads(reads.begin(), reads.end());
  all_reads.push_back(made);
  found.all = queue.collected.find<CollectedOf<Update>>(all_reads, writes, [&](CollectedOf<Update>& all) {
    found.piece = all.find(is);
    return found.piece && all.agrees(common) && !all.depends(reads, writes);
  });
  return found;
}

/// Whether a step that waits makes this copy of its parameter, too.
template <class T>
bool copied_by_update(Queue& queue, const float* from, T* to, int64_t n) {
  const std::lock_guard lock(queue.collecting);
  const Update::Common common{.clips = false,
                              .steps = false,
                              .copies = true,
                              .copies_bf16 = std::is_same_v<T, bf16>,
                              .clip = {},
                              .step = {}};
  const std::array writes = {range_of(to, n)};
  const auto found = find_update(queue, common, range_of(from, n), {}, writes, [&](const Update::Piece& p) {
    return p.parameter == from && p.n == n && !p.copy;
  });
  if (!found) return false;
  found.piece->copy = reinterpret_cast<uint16_t*>(to);
  found.all->join(common);
  found.all->uses({}, writes);
  return true;
}

}  // namespace weft::cuda

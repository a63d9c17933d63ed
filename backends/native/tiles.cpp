#include "backends/native/tiles.h"

#include "backends/native/scratch.h"
#include "weft/shared/walk.hpp"

namespace weft::native {
namespace {

using backend::Launch;
using backend::OpCall;
using backend::Outcome;
using backend::Support;
using backend::TensorView;

// ---- the tensors of a launch, as a tile sees them

struct Operand {
  enum class Kind : uint8_t { direct, single, copied };
  Kind kind;
  Stored stored;
  const char* data;
  float value = 0;                // of a single one
  std::span<const int64_t> dims;  // of a copied one
};

int64_t bytes_of(Stored s) { return s == Stored::f32 ? 4 : s == Stored::truth ? 1 : 2; }

struct Job {
  const TileProgram& program;
  std::span<const Operand> in;
  std::span<char* const> out;
  std::span<const int64_t> dims;
  int64_t total = 1;
  bool whole_tiles =
      false;  ///< results go to memory at the end of a tile: they lie over inputs, or past the caches
  bool streamed = false;
};

Operand operand_of(TensorView t, Stored stored, int64_t total) {
  Operand o{Operand::Kind::copied, stored, t.data(), 0, t.dims()};
  if (t.size() == total && stored == Stored::f32) {
    o.kind = Operand::Kind::direct;  // the same elements in the same order, apart from axes of size one
  } else if (t.size() == 1) {
    o.kind = Operand::Kind::single;
    widen(stored, o.data, &o.value, 1);
  }
  return o;
}

// Elements [begin, begin + n) of an operand, in the order of the results.
void fill(const Operand& o, const Job& job, int64_t begin, int64_t n, float* to) {
  const int64_t size = bytes_of(o.stored);
  const shared::Walk<1> walk(job.dims, {o.dims});
  walk.run(begin, begin + n, [&](int64_t out, const auto& at, int64_t count) {
    float* y = to + (out - begin);
    const char* x = o.data + at[0] * size;
    if (walk.stride(0) == 1) return widen(o.stored, x, y, count);
    if (walk.stride(0) == 0) {
      widen(o.stored, x, y, 1);
      std::fill_n(y + 1, count - 1, y[0]);
      return;
    }
    for (int64_t i = 0; i < count; ++i) widen(o.stored, x + i * walk.stride(0) * size, y + i, 1);
  });
}

/// Lists that the thread keeps, so a launch allocates none.
struct Lists {
  std::vector<Operand> in;
  std::vector<char*> out;
  std::vector<const float*> at;
  std::vector<char> single;
};
thread_local Lists lists;

// ---- one tile

class Worker {
 public:
  explicit Worker(const Job& job)
      : job_(job),
        n_inputs_(job.program.inputs.size()),
        tiles_(scratch<float>(Scratch::rows, (job.program.places + static_cast<int64_t>(n_inputs_)) * kTile)),
        at_(lists.at),
        single_(lists.single) {
    const auto& p = job.program;
    at_.assign(p.place.size(), nullptr), single_.assign(p.place.size(), 0);
    for (size_t k = 0; k < n_inputs_; ++k) {
      single_[k] = job.in[k].kind == Operand::Kind::single;
      at_[k] = single_[k] ? &job.in[k].value : tiles_ + (p.places + static_cast<int64_t>(k)) * kTile;
    }
    for (size_t k = 0; k < p.constants.size(); ++k)
      single_[n_inputs_ + k] = true, at_[n_inputs_ + k] = &p.constants[k];
  }

  void tile(int64_t begin, int64_t n) {
    const auto& p = job_.program;
    for (size_t k = 0; k < n_inputs_; ++k) {
      const Operand& o = job_.in[k];
      if (o.kind == Operand::Kind::direct) {
        at_[k] = reinterpret_cast<const float*>(o.data) + begin;
      } else if (o.kind == Operand::Kind::copied) {
        fill(o, job_, begin, n, tiles_ + (p.places + static_cast<int64_t>(k)) * kTile);
      }
    }
    for (const Instruction& i : p.instructions) step(i, begin, n);
    for (size_t k = 0; k < p.outputs.size(); ++k) finish(k, begin, n);
  }

 private:
  void step(const Instruction& i, int64_t begin, int64_t n) {
    float* y = tiles_ + job_.program.place[i.to] * kTile;
    if (!job_.whole_tiles)
      for (size_t k = 0; k < job_.out.size(); ++k)
        if (job_.program.outputs[k] == i.to && job_.program.stored[k] == Stored::f32)
          y = reinterpret_cast<float*>(job_.out[k]) + begin;
    // A result of the last step that is only stored needs no tile of its own, even if it overwrites an input:
    // each element is read before it is written.
    const bool last = &i == &job_.program.instructions.back() && lone_output(i.to);
    if (last) y = reinterpret_cast<float*>(job_.out[0]) + begin;
    const bool past = last && job_.streamed;
    const float* x[3] = {};
    uint32_t single = 0;
    for (int k = 0; k < i.operands; ++k)
      x[k] = at_[i.from[k]], single |= static_cast<uint32_t>(single_[i.from[k]]) << k;
    if (i.run) {
      i.run(x, single, y, n, past);
    } else if (!i.links.empty()) {
      Link links[Instruction::kMostLinks];
      for (size_t k = 0; k < i.links.size(); ++k) {
        const auto& l = i.links[k];
        links[k] = {l.op, l.swapped, single_[l.other] != 0, at_[l.other]};
      }
      run_links(x[0], single & 1, links, static_cast<int>(i.links.size()), y, n, past);
    } else {
      uint16_t halves[kTile];
      const int64_t count = single & 1 ? 1 : n;
      narrow(i.rounded, x[0], halves, count);
      widen(i.rounded, halves, y, count);
      if (single & 1) std::fill_n(y + 1, n - 1, y[0]);
    }
    at_[i.to] = y;
  }

  bool lone_output(uint16_t value) const {
    const auto& p = job_.program;
    return p.outputs.size() == 1 && p.outputs[0] == value && p.stored[0] == Stored::f32;
  }

  void finish(size_t k, int64_t begin, int64_t n) {
    const Stored stored = job_.program.stored[k];
    const uint16_t value = job_.program.outputs[k];
    const float* from = at_[value];
    char* to = job_.out[k] + begin * bytes_of(stored);
    if (from == reinterpret_cast<float*>(to)) return;
    if (single_[value]) {
      float* spread = tiles_ + (job_.program.places - 1) * kTile;
      std::fill_n(spread, n, *from);
      from = spread;
    }
    if (job_.streamed && stored == Stored::f32) return stream(from, reinterpret_cast<float*>(to), n);
    narrow(stored, from, to, n);
  }

  const Job& job_;
  size_t n_inputs_;
  float* tiles_;
  std::vector<const float*>& at_;
  std::vector<char>& single_;
};

// One step over operands that fit one tile and need no copy, as a small eager op is; allocates nothing.
bool run_at_once(const TileProgram& p, const Launch& l) {
  const TensorView y = l.output(0);
  const int64_t total = y.size();
  if (p.instructions.size() != 1 || p.outputs.size() != 1 || p.stored[0] != Stored::f32 || total > kTile)
    return false;
  const Instruction& i = p.instructions[0];
  if (!i.run || p.outputs[0] != i.to) return false;
  const float* x[3] = {};
  uint32_t single = 0;
  for (int k = 0; k < i.operands; ++k) {
    const size_t from = i.from[k];
    if (from >= p.inputs.size()) {
      x[k] = &p.constants[from - p.inputs.size()], single |= 1u << k;
      continue;
    }
    const TensorView t = l.input(static_cast<int64_t>(from));
    const int64_t size = t.size();
    if (p.inputs[from] != Stored::f32 || (size != total && size != 1)) return false;
    x[k] = t.data<float>();
    if (size == 1) single |= 1u << k;
  }
  i.run(x, single, y.data<float>(), total, false);
  return true;
}

}  // namespace

void run(const TileProgram& program, const Launch& launch) {
  if (run_at_once(program, launch)) return;
  // Results of this size don't stay in the caches; bypassing them avoids reading the lines first.
  constexpr int64_t kStreamed = int64_t{16} << 20;
  const TensorView first = launch.output(0);
  Job job{program, {}, {}, first.dims()};
  job.total = first.size();
  std::vector<Operand>& in = lists.in;
  std::vector<char*>& out = lists.out;
  in.clear(), out.clear();
  for (size_t k = 0; k < program.inputs.size(); ++k)
    in.push_back(operand_of(launch.input(static_cast<int64_t>(k)), program.inputs[k], job.total));
  bool aligned = true;
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    out.push_back(launch.output(static_cast<int64_t>(k)).data());
    aligned &= reinterpret_cast<uintptr_t>(out.back()) % 64 == 0;
  }
  job.in = in, job.out = out;
  job.streamed = aligned && job.total * 4 >= kStreamed;
  job.whole_tiles = job.streamed || launch.call().updates() != 0;
  launch.host().parallel_for((job.total + kTile - 1) / kTile, 16, [&](int64_t begin, int64_t end) {
    Worker worker(job);
    for (int64_t t = begin; t < end; ++t) worker.tile(t * kTile, std::min(kTile, job.total - t * kTile));
    if (job.streamed) end_stream();
  });
}

}  // namespace weft::native

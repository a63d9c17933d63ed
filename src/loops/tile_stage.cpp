#include "loops/fused.h"

// Kernels of products. A group of 16 x 16 items makes a tile of y: it loads a strip of each factor into
// shared memory, 16 steps of the sum at a time, and each item accumulates its own 4 x 4 or 8 x 8 elements in
// registers. Sums are in the order of k, whatever the tile.
namespace weft::loops {
namespace {

using codegen::Id;
using codegen::Ids;
using codegen::kNone;
using codegen::Op;
using codegen::Type;
using codegen::type_of;

constexpr int64_t kSide = 16;   // items along a tile
constexpr int64_t kDepth = 16;  // steps of the sum in a strip
/// The number of tiles that keeps a large device busy; larger tiles are used if there are that many.
constexpr int64_t kManyTiles = 264;

class TileWriter {
 public:
  TileWriter(const FusedCall& plan, const FusedKernel& group, Pull& p)
      : plan_(plan), body_(plan.body), group_(group), p_(p), b(p.b), y_(body_, group.key.tile) {
    const int64_t matrices = product(y_.batch);
    const auto tiles = [&](int64_t side) {
      return matrices * ((y_.m + side - 1) / side) * ((y_.n + side - 1) / side);
    };
    // Smaller for 8-byte elements, which take twice the registers.
    const bool narrow = byte_size(body_.type(y_.y)) <= 4;
    own_ = narrow && tiles(8 * kSide) >= kManyTiles ? 8 : 4;
    groups_ = tiles(own_ * kSide);
  }

  Result<int64_t> run() {
    number_items();
    const Type t = codegen::accumulator_of(type_of(body_.type(y_.a)));
    const int64_t width = own_ * kSide + 1;  // one more, so that columns lie in different banks
    const Id strip_a = b.shared(t, static_cast<uint64_t>(kDepth * width)),
             strip_b = b.shared(t, static_cast<uint64_t>(kDepth * width));
    Ids totals;
    const Id zero = b.number(t, 0);
    for (int64_t i = 0; i < own_ * own_; ++i) totals.push_back(b.accumulator(zero));
    const Id depth = p_.argument("k", y_.k);
    const Id strips = p_.loop(b.binary(Op::div, b.add(depth, b.index(kDepth - 1)), b.index(kDepth)));
    const Id first = b.mul(strips, b.index(kDepth));
    fill(strip_a, width, first, depth, true), fill(strip_b, width, first, depth, false);
    b.barrier();
    multiply(strip_a, strip_b, width, totals);
    b.barrier();
    p_.end(strips);
    write_results(totals);
    return groups_;
  }

 private:
  void number_items() {
    b.groups_of(kGroupItems);
    local_ = b.local();
    x_ = b.binary(Op::mod, local_, b.index(kSide)), row_ = b.binary(Op::div, local_, b.index(kSide));
    const int64_t side = own_ * kSide;
    const int64_t columns = (y_.n + side - 1) / side, rows = (y_.m + side - 1) / side;
    const Id number = b.group(), across = p_.argument("tiles across", columns);
    const Id rest = b.binary(Op::div, number, across);
    first_j_ = b.mul(b.binary(Op::mod, number, across), b.index(side));
    const Id down = p_.argument("tiles down", rows);
    first_i_ = b.mul(b.binary(Op::mod, rest, down), b.index(side));
    m_ = p_.argument("m", y_.m), n_ = p_.argument("n", y_.n);
    const Place batch = p_.place_of(b.binary(Op::div, rest, down), long_axes(y_.batch));
    size_t next = 0;
    for (const int64_t size : y_.batch) batch_.push_back(size == 1 ? kNone : batch[next++]);
  }
  /// A clamped index: results computed from it beyond the edge are not stored.
  Id within(Id at, Id size) { return b.binary(Op::min, at, b.binary(Op::sub, size, b.index(1))); }

  /// A strip of a factor: kDepth x side elements, zero beyond the end of the sum.
  void fill(Id strip, int64_t width, Id first, Id depth, bool of_a) {
    const int64_t side = own_ * kSide;
    // Adjacent items read adjacent elements: along k if that is the last axis.
    const bool along_k = of_a ? !y_.transpose_a : y_.transpose_b;
    for (int64_t e = 0; e < own_; ++e) {
      Id r, k;
      if (along_k) {
        k = x_, r = b.add(row_, b.index(e * kSide));
      } else {
        static_assert(8 * kSide <= kGroupItems);  // own_ is at most 8
        r = b.binary(Op::mod, local_, b.index(side));
        k = b.add(b.binary(Op::div, local_, b.index(side)), b.index(e * (kGroupItems / side)));
      }
      const Id step = b.add(first, k), step_inside = within(step, depth);
      std::vector<Id> at = batch_;
      const Id edge = of_a ? within(b.add(first_i_, r), m_) : within(b.add(first_j_, r), n_);
      at.push_back(of_a ? edge : kNone), at.push_back(of_a ? kNone : edge);
      const Id value = of_a ? p_.at(y_.a, y_.place_a(body_, at, step_inside))
                            : p_.at(y_.b, y_.place_b(body_, at, step_inside));
      const Type t = codegen::accumulator_of(b.type(value));
      const Id wide = b.cast(value, t);
      b.store_shared(strip, b.nest(k, b.index(width), r),
                     b.select(b.compare(Op::less, step, depth), wide, b.number(t, 0)));
    }
  }

  void multiply(Id strip_a, Id strip_b, int64_t width, const Ids& totals) {
    const Id k = b.loop(b.index(kDepth));
    const Id from = b.mul(k, b.index(width));
    const Id from_a = b.add(from, row_), from_b = b.add(from, x_);
    Ids p, q;
    for (int64_t i = 0; i < own_; ++i) {
      p.push_back(b.load_shared(strip_a, b.add(from_a, b.index(i * kSide))));
      q.push_back(b.load_shared(strip_b, b.add(from_b, b.index(i * kSide))));
    }
    for (int64_t i = 0; i < own_; ++i)
      for (int64_t j = 0; j < own_; ++j) {
        const Id total = totals[static_cast<size_t>(i * own_ + j)];
        b.assign(total, b.fma(p[static_cast<size_t>(i)], q[static_cast<size_t>(j)], total));
      }
    b.end(k);
  }

  void write_results(const Ids& totals) {
    const DType t = body_.type(y_.y);
    const Sizes axes = long_axes(body_.sizes(y_.y));
    for (int64_t i = 0; i < own_; ++i)
      for (int64_t j = 0; j < own_; ++j) {
        const Id row = b.add(first_i_, b.add(row_, b.index(i * kSide)));
        const Id column = b.add(first_j_, b.add(x_, b.index(j * kSide)));
        const Id inside = b.compare(Op::both, b.compare(Op::less, row, m_), b.compare(Op::less, column, n_));
        Place place;
        for (const Id at : batch_)
          if (at != kNone) place.push_back(at);
        if (y_.m != 1) place.push_back(within(row, m_));
        if (y_.n != 1) place.push_back(within(column, n_));
        const Id total = b.cast(totals[static_cast<size_t>(i * own_ + j)], type_of(t));
        p_.know(y_.y, place, total);
        const Id flat = p_.flat_of(place, axes);
        if (const auto kept = plan_.kept.find(y_.y); kept != plan_.kept.end())
          p_.store(kept->second, flat, total, inside);
        for (const uint32_t k : group_.outputs) {
          const uint32_t v = body_.outputs[k];
          const Place to = p_.along(path_to(body_, v, y_.y), place);
          p_.store({Bound::Kind::output, k, body_.type(v)}, p_.flat_of(to, long_axes(body_.sizes(v))),
                   p_.at(v, to), inside);
        }
      }
  }

  const FusedCall& plan_;
  const Body& body_;
  const FusedKernel& group_;
  Pull& p_;
  codegen::LoopBuilder& b;
  const Product y_;
  int64_t own_ = 4, groups_ = 0;  // elements of an item along each side of the tile; tiles
  Id local_ = kNone, x_ = kNone, row_ = kNone, first_i_ = kNone, first_j_ = kNone, m_ = kNone, n_ = kNone;
  std::vector<Id> batch_;  // for each axis of y before the last two
};

}  // namespace

Result<int64_t> write_tile(const FusedCall& plan, const FusedKernel& group, Pull& p) {
  return TileWriter(plan, group, p).run();
}

}  // namespace weft::loops

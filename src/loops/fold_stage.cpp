#include "loops/fold.h"
#include "loops/fused.h"

// Reduction kernels. A group of 256 items handles some kept indices, each with `lanes` items; a lane folds
// every lanes-th element, and the lanes combine their partial results in a butterfly, after which all hold
// the total.
namespace weft::loops {
namespace {

using codegen::Id;
using codegen::Ids;
using codegen::kNone;
using codegen::Op;
using codegen::Type;
using codegen::type_of;

/// Lanes for one kept index, from the device and the number of folded elements alone: a row's result does not
/// depend on the number of rows. Devices with subgroups take more lanes, so that rows that are read twice
/// stay in the cache; without subgroups, extra lanes cost more than they save.
int64_t lanes_of(const KernelKey& key, uint32_t subgroup) {
  if (key.kind == Kind::all) return kGroupItems;
  if (key.kind == Kind::column) return key.folded <= 8 ? 1 : 32;
  if (key.folded <= 64) return key.folded <= 4 ? 1 : 8;
  return key.folded <= 512 ? 32 : key.folded > 2048 ? kGroupItems : subgroup == 1 ? 32 : 128;
}

constexpr int64_t kMostHeld = 48;  // elements that an item may hold in registers, over all operands

class FoldWriter {
 public:
  FoldWriter(const FusedCall& plan, const FusedKernel& group, Pull& p)
      : plan_(plan),
        body_(plan.body),
        group_(group),
        key_(group.key),
        p_(p),
        b(p.b),
        lanes_(lanes_of(key_, plan.subgroup)) {}

  Result<int64_t> run() {
    int waves = 0;
    for (const Heavy* h : group_.heavy) waves = std::max(waves, h->wave + 1);
    number_items();
    if (held(waves)) hold();
    for (int w = 0; w < waves; ++w) {
      std::vector<const Heavy*> now;
      for (const Heavy* h : group_.heavy)
        if (h->wave == w) now.push_back(h);
      fold(now);
    }
    const int64_t tile = kGroupItems / lanes_, tiles = (key_.kept + tile - 1) / tile;
    if (parts()) return group_.parts * tiles;
    WEFT_CHECK(write_results());
    return tiles;
  }

 private:
  void number_items() {
    const int64_t tile = kGroupItems / lanes_;
    b.groups_of(kGroupItems);
    const Id local = b.local();
    Id mine = local;
    lane_ = kNone, distance_ = 1;
    if (lanes_ > 1 && key_.kind == Kind::column) {
      mine = b.binary(Op::mod, local, b.index(tile)), lane_ = b.binary(Op::div, local, b.index(tile));
      distance_ = tile;
    } else if (lanes_ > 1) {
      mine = b.binary(Op::div, local, b.index(lanes_)), lane_ = b.binary(Op::mod, local, b.index(lanes_));
    }
    local_ = local;
    Id group = b.group();
    if (parts()) {
      const Id n = p_.argument("parts", group_.parts);
      part_ = b.binary(Op::mod, group, n), group = b.binary(Op::div, group, n);
    }
    kept_at_ = tile == 1 ? group : b.nest(group, b.index(tile), mine);
    if (tile > 1) {
      inside_ = b.compare(Op::less, kept_at_, p_.argument("kept", key_.kept));
      kept_at_ = b.select(inside_, kept_at_, b.index(0));
    }
    first_ = inside_;
    if (lanes_ > 1) first_ = both(inside_, b.compare(Op::equal, lane_, b.index(0)));
    trips_ = p_.argument("folded", group_.last ? group_.parts : key_.folded);
    if (lanes_ == 1) return;
    from_ = lane_, by_ = b.index(lanes_);
    if (parts()) from_ = b.nest(part_, by_, lane_), by_ = p_.argument("lanes", lanes_ * group_.parts);
    const Id rest = b.add(b.binary(Op::sub, trips_, from_), b.binary(Op::sub, by_, b.index(1)));
    trips_ = b.binary(Op::div, rest, by_);
  }
  /// Whether each group folds only a part.
  bool parts() const { return group_.parts > 0 && !group_.last; }
  Id both(Id x, Id y) { return x == kNone ? y : b.compare(Op::both, x, y); }

  int64_t trips() const { return (key_.folded + lanes_ - 1) / lanes_; }
  /// Whether a lane keeps its elements of a row in registers, because the kernel reads the row several times.
  /// Devices without subgroups run the items of a group one after another, and would keep them in memory.
  bool held(int waves) const {
    const auto of_element = [&](uint32_t k) { return product(body_.sizes(body_.outputs[k])) != key_.kept; };
    const int walks = waves + std::any_of(group_.outputs.begin(), group_.outputs.end(), of_element);
    return plan_.subgroup > 1 && key_.kind == Kind::row && lanes_ > 1 && walks > 1 &&
           trips() * body_.call.n_inputs <= kMostHeld;
  }
  /// Unrolls the loop, with an index for each element of a lane: values computed for an element once are then
  /// known. Only the last index may be beyond the row's end.
  void hold() {
    for (int64_t i = 0; i < trips(); ++i) held_.push_back(b.nest(b.index(i), by_, from_));
    if (key_.folded % lanes_ == 0) return;
    in_row_ = b.compare(Op::less, held_.back(), p_.argument("folded", key_.folded));
    held_.back() = b.select(in_row_, held_.back(), b.index(0));
  }

  /// Runs `visit(c, guard)` for the folded indices of this lane; c is valid only if the guard holds.
  template <class F>
  void each(F visit) {
    for (const Id c : held_) visit(c, c == held_.back() ? in_row_ : kNone);
    if (!held_.empty()) return;
    const Id l = p_.loop(trips_);
    visit(lanes_ > 1 ? b.nest(l, by_, from_) : l, kNone);
    p_.end(l);
  }

  /// Independent folds, in one loop.
  void fold(const std::vector<const Heavy*>& now) {
    Ids totals;
    for (const Heavy* h : now) totals.push_back(b.accumulator(start(*h)));
    each([&](Id c, Id guard) {
      for (size_t i = 0; i < now.size(); ++i) {
        const Id more = add_term(*now[i], totals[i], c);
        b.assign(totals[i], guard == kNone ? more : b.select(guard, more, totals[i]));
      }
    });
    for (size_t i = 0; i < now.size(); ++i) {
      const Heavy& h = *now[i];
      if (parts()) {
        p_.store(group_.partial.at(h.value), partial_at(part_), across_lanes(h, totals[i]), first_);
        continue;
      }
      const Id total = b.cast(across_lanes(h, totals[i]), type_of(body_.type(h.value)));
      const Place place = p_.place_of(kept_at_, h.kept_axes);
      p_.know(h.value, place, total);
      if (const auto kept = plan_.kept.find(h.value); kept != plan_.kept.end())
        p_.store(kept->second, p_.flat_of(place, h.kept_axes), total, first_);
    }
  }
  /// Where the partial result of this kept index lies, of this part.
  Id partial_at(Id part) {
    return key_.kind == Kind::all ? part : b.nest(part, p_.argument("kept", key_.kept), kept_at_);
  }
  bool is_product(const Heavy& h) const { return std::string_view(op(h)) == "matmul"; }
  const char* op(const Heavy& h) const { return body_.step_of(h.value)->call->op; }
  Id start(const Heavy& h) {
    return fold_start(b, is_product(h) ? "sum" : op(h), body_.type(body_.step_of(h.value)->in[0]));
  }
  Id add_term(const Heavy& h, Id total, Id c) {
    if (group_.last)
      return fold_step(b, op(h), total, b.load(p_.reads(group_.partial.at(h.value)), partial_at(c)));
    if (!is_product(h)) {
      const Place kept = p_.place_of(kept_at_, h.kept_axes), folded = p_.place_of(c, h.folded_axes);
      const Id v = p_.at(body_.step_of(h.value)->in[0],
                         key_.kind == Kind::column ? joined(folded, kept) : joined(kept, folded));
      return fold_step(b, op(h), total, b.cast(v, b.type(total)));
    }
    const Product y(body_, h.value);
    const Place place = p_.place_of(kept_at_, h.kept_axes);
    std::vector<Id> wide;
    size_t next = 0;
    for (const int64_t n : body_.sizes(h.value)) wide.push_back(n == 1 ? kNone : place[next++]);
    const Id one = b.cast(p_.at(y.a, y.place_a(body_, wide, c)), b.type(total));
    const Id other = b.cast(p_.at(y.b, y.place_b(body_, wide, c)), b.type(total));
    return b.fma(one, other, total);
  }
  static Place joined(const Place& x, const Place& y) {
    Place all = x;
    for (const Id id : y) all.push_back(id);
    return all;
  }

  Id across_lanes(const Heavy& h, Id total) {
    if (lanes_ == 1) return total;
    const Type t = b.type(total);
    auto [array, fresh] = arrays_.try_emplace(t, kNone);
    if (fresh) array->second = b.shared(t, kGroupItems);
    const char* step = is_product(h) ? "sum" : op(h);
    for (int64_t s = lanes_ / 2; s > 0; s /= 2) {
      b.store_shared(array->second, local_, total);
      b.barrier();
      // Lane `lane ^ s`, without bit operations on indices.
      const Id even = b.compare(
          Op::equal, b.binary(Op::mod, b.binary(Op::div, lane_, b.index(s)), b.index(2)), b.index(0));
      const Id by = b.index(s * distance_);
      const Id other = b.select(even, b.add(local_, by), b.binary(Op::sub, local_, by));
      total = fold_step(b, step, total, b.load_shared(array->second, other));
      b.barrier();
    }
    return total;
  }

  /// Results with an element for each kept index, and those with one for each folded index too.
  Status write_results() {
    std::vector<uint32_t> of_elements;
    for (const uint32_t k : group_.outputs) {
      const uint32_t v = body_.outputs[k];
      const Sizes axes = long_axes(body_.sizes(v));
      if (product(axes) != key_.kept) {
        of_elements.push_back(k);
        continue;
      }
      const Place place = kept_place(v);
      p_.store({Bound::Kind::output, k, body_.type(v)}, p_.flat_of(place, axes), p_.at(v, place), first_);
    }
    if (of_elements.empty()) return {};
    Status good;
    const auto place_of = [&](uint32_t k, Id c) {
      auto place = element_place(k, c);
      if (!place.ok() && good.ok()) good = place.status();
      return place.ok() ? std::move(place).value() : Place();
    };
    for (const Id c : held_)  // before the first store: compilers don't move loads across stores
      for (const uint32_t k : of_elements)
        if (const Place place = place_of(k, c); good.ok()) p_.at(body_.outputs[k], place);
    each([&](Id c, Id guard) {
      for (const uint32_t k : of_elements)
        if (const Place place = place_of(k, c); good.ok())
          write_element(k, place, guard == kNone ? inside_ : both(inside_, guard));
    });
    return good;
  }
  /// The place of a result that has the elements of a heavy value.
  Place kept_place(uint32_t v) {
    for (const Heavy* h : group_.heavy)
      if (const auto path = path_to(body_, v, h->value); !path.empty())
        return p_.along(path, p_.place_of(kept_at_, h->kept_axes));
    return p_.place_of(kept_at_, long_axes(body_.sizes(v)));
  }
  /// The place of a result's element for a kept and a folded index.
  Result<Place> element_place(uint32_t k, Id c) {
    const Sizes axes = long_axes(body_.sizes(body_.outputs[k]));
    const int64_t head = key_.kind == Kind::column ? key_.folded : key_.kept;
    size_t split = 0;
    while (split < axes.size() && product(axes, 0, split) < head) ++split;
    if (product(axes, 0, split) != head)
      return fail(Code::unsupported, "result {} {} has not the axes of what it is made of", k, text(axes));
    const Sizes first(axes.begin(), axes.begin() + static_cast<ptrdiff_t>(split)),
        second(axes.begin() + static_cast<ptrdiff_t>(split), axes.end());
    return key_.kind == Kind::column ? joined(p_.place_of(c, first), p_.place_of(kept_at_, second))
                                     : joined(p_.place_of(kept_at_, first), p_.place_of(c, second));
  }
  void write_element(uint32_t k, const Place& place, Id guard) {
    const uint32_t v = body_.outputs[k];
    const Id at = p_.flat_of(place, long_axes(body_.sizes(v)));
    p_.store({Bound::Kind::output, k, body_.type(v)}, at, p_.at(v, place), guard);
  }

  const FusedCall& plan_;
  const Body& body_;
  const FusedKernel& group_;
  const KernelKey& key_;
  Pull& p_;
  codegen::LoopBuilder& b;
  const int64_t lanes_;
  int64_t distance_ = 1;          // in items, between neighbouring lanes
  Id part_ = kNone;               // which part of its fold a group has
  Id from_ = kNone, by_ = kNone;  // the first element of a lane, and the distance to its next one
  std::vector<Id> held_;          // the folded indices of a lane, if its elements are held
  Id in_row_ = kNone;             // whether the last of them is valid
  Id local_ = kNone, lane_ = kNone, kept_at_ = kNone, inside_ = kNone, first_ = kNone, trips_ = kNone;
  std::map<Type, Id> arrays_;
};

}  // namespace

Result<int64_t> write_folds(const FusedCall& plan, const FusedKernel& group, Pull& p) {
  return FoldWriter(plan, group, p).run();
}

Result<int64_t> write_flat(const FusedCall& plan, const FusedKernel& group, Pull& p) {
  const Body& body = plan.body;
  const Id item = p.b.item();
  const auto write = [&](uint32_t v, const Bound& to) {
    const Sizes axes = long_axes(body.sizes(v));
    const Place place = p.place_of(item, axes);
    p.store(to, p.flat_of(place, axes), p.at(v, place), kNone);
  };
  for (const Heavy* h : group.heavy) write(h->value, plan.kept.at(h->value));
  for (const uint32_t k : group.outputs)
    write(body.outputs[k], {Bound::Kind::output, k, body.type(body.outputs[k])});
  return group.key.kept;
}

}  // namespace weft::loops

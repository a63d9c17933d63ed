#include "loops/fused.h"

#include "loops/elementwise.h"
#include "loops/fold.h"

namespace weft::loops {
namespace {

constexpr size_t kMostStages = 8;
constexpr int64_t kAloneInOneGroup = 1 << 14;  // elements that a single group folds alone
constexpr int64_t kLongColumn = 1 << 11;       // elements of a column that several groups fold
constexpr int64_t kMostParts = 32;
constexpr int64_t kLeastTile = 16;  // rows and columns of a product that justify tiles
constexpr int64_t kShortFold = 4;   // elements of a fold that each reader may recompute

bool is_product(std::string_view op) { return op == "matmul"; }

class Planner {
 public:
  Planner(const Body& body, uint32_t subgroup, bool short_folds_are_light)
      : body_(body), plan_{body, {}, {}, {}, subgroup}, short_folds_are_light_(short_folds_are_light) {}

  Result<Stages> run() {
    WEFT_CHECK(find_heavy());
    for (auto& [v, h] : plan_.heavy) place(h);
    find_homes();
    delay();
    find_homes();
    gather_groups();
    keep();
    return write();
  }
  bool has_short_folds() const { return has_short_folds_; }

 private:
  const Body::Step* step(uint32_t v) const { return body_.step_of(v); }
  int64_t elements(uint32_t v) const { return product(body_.sizes(v)); }
  Heavy& heavy(uint32_t v) { return plan_.heavy.at(v); }

  Status find_heavy() {
    for (uint32_t v = 0; v < body_.values.size(); ++v) {
      const auto* t = body_.values[v];
      if (!t) continue;
      if (!exact(*t)) return fail(Code::unsupported, "sizes are not known yet");
      if (elements(v) == 0) return fail(Code::unsupported, "value {} is empty", v);
    }
    std::set<uint32_t> wanted;
    std::vector<uint32_t> open(body_.outputs.begin(), body_.outputs.end());
    while (!open.empty()) {
      const uint32_t v = open.back();
      open.pop_back();
      if (v == UINT32_MAX || !wanted.insert(v).second || !step(v)) continue;
      for (uint32_t k = 0; k < step(v)->call->n_inputs; ++k) open.push_back(step(v)->in[k]);
    }
    for (const uint32_t v : wanted) {
      if (!step(v)) continue;
      const std::string_view op = step(v)->call->op;
      if (is_product(op)) WEFT_CHECK(check_matmul(*step(v)->call));
      if (is_product(op)) add_product(v);
      if (is_fold(op)) WEFT_CHECK(check_fold(*step(v)->call));
      if (is_fold(op)) WEFT_CHECK(add_fold(v));
    }
    return {};
  }

  Status add_fold(uint32_t v) {
    const Sizes sizes = body_.sizes(step(v)->in[0]), axes = ints_attr(*step(v)->call, "axes");
    Heavy h{.value = v, .key = {}, .needs = {}, .kept_axes = {}, .folded_axes = {}};
    int changes = 0;
    bool last = false;
    Kind of_one = Kind::all;  // if only axes of size 1 are kept: as for many rows, so the bits are the same
    for (size_t d = 0; d < sizes.size(); ++d) {
      const bool folded = axes.empty() || std::find(axes.begin(), axes.end(), d) != axes.end();
      if (sizes[d] == 1 && !folded && of_one == Kind::all)
        of_one = h.folded_axes.empty() ? Kind::row : Kind::column;
      if (sizes[d] == 1) continue;
      changes += (!h.kept_axes.empty() || !h.folded_axes.empty()) && folded != last;
      (folded ? h.folded_axes : h.kept_axes).push_back(sizes[d]);
      last = folded;
    }
    if (h.folded_axes.empty()) return {};  // folds single elements: light
    const bool is_short = product(h.folded_axes) <= kShortFold && !follows_heavy(step(v)->in[0]);
    has_short_folds_ |= is_short;
    if (is_short && short_folds_are_light_) return plan_.light_folds.insert(v), Status();
    if (changes > 1) return fail(Code::unsupported, "{} folds axes between others", step(v)->call->op);
    h.key.kind = h.kept_axes.empty() ? of_one : last ? Kind::row : Kind::column;
    h.key.kept = product(h.kept_axes), h.key.folded = product(h.folded_axes);
    plan_.heavy.emplace(v, std::move(h));
    return {};
  }
  /// Whether `v` depends on a fold or a product, which each element of a short fold would recompute.
  bool follows_heavy(uint32_t v) const {
    std::set<uint32_t> seen;
    std::vector<uint32_t> open{v};
    while (!open.empty()) {
      const uint32_t u = open.back();
      open.pop_back();
      if (u == UINT32_MAX || !step(u) || !seen.insert(u).second) continue;
      const auto& s = *step(u);
      if (is_fold(s.call->op) || is_product(s.call->op)) return true;
      open.insert(open.end(), s.in, s.in + s.call->n_inputs);
    }
    return false;
  }
  void add_product(uint32_t v) {
    const Product y(body_, v);
    Heavy h{.value = v, .key = {}, .needs = {}, .kept_axes = long_axes(body_.sizes(v)), .folded_axes = {}};
    h.key.kept = elements(v), h.key.folded = y.k;
    if (y.k != 1) h.folded_axes.push_back(y.k);
    // At this level a row of a product must not depend on the number of rows.
    const bool any_size = body_.call.determinism >= WEFT_DETERMINISM_BATCH;
    if (any_size || std::min(y.m, y.n) >= kLeastTile)
      h.key.kind = Kind::tile, h.key.tile = v;
    else
      h.key.kind = (y.n >= y.m ? y.transpose_b : !y.transpose_a) ? Kind::row : Kind::column,
      determinism_ = WEFT_DETERMINISM_RUN;
    plan_.heavy.emplace(v, std::move(h));
    const bool tile = h.key.kind == Kind::tile;
    keep_factor(y.a, tile ? (y.n + 63) / 64 : y.n), keep_factor(y.b, tile ? (y.m + 63) / 64 : y.m);
  }
  /// A factor that is expensive to compute and needed often is computed once.
  void keep_factor(uint32_t v, int64_t times) {
    if (times <= 2 || times * elements(v) < (1 << 18) || !dear(v)) return;
    Heavy h{.value = v,
            .key = {.kind = Kind::flat, .kept = elements(v)},
            .needs = {},
            .kept_axes = {},
            .folded_axes = {}};
    plan_.heavy.emplace(v, std::move(h));
  }
  bool dear(uint32_t v) const {
    const auto* s = step(v);
    if (!s || plan_.heavy.count(v)) return false;
    const std::string_view op = s->call->op;
    if (op == "cast" || op == "broadcast" || op == "reshape" || op == "permute" || op == "slice")
      return dear(s->in[0]);
    return op != "full";
  }

  /// The heavy values that `v` needs, not counting what those need.
  const std::set<uint32_t>& needs(uint32_t v) {
    const auto [found, fresh] = needs_.try_emplace(v);
    if (!fresh || !step(v)) return found->second;
    std::set<uint32_t> all;
    for (uint32_t k = 0; k < step(v)->call->n_inputs; ++k) {
      const uint32_t in = step(v)->in[k];
      if (in == UINT32_MAX) continue;
      if (plan_.heavy.count(in))
        all.insert(in);
      else
        all.insert(needs(in).begin(), needs(in).end());
    }
    return needs_[v] = std::move(all);
  }

  /// Sets the level: after the values that it needs, in the same kernel if they are alike.
  void place(Heavy& h) {
    h.needs = needs(h.value);
    for (const uint32_t n : h.needs)
      h.key.level = std::max(h.key.level, heavy(n).key.level + !h.key.alike(heavy(n).key));
  }

  void find_homes() {
    homes_.clear();
    for (const uint32_t v : body_.outputs) homes_.push_back(home_of(v));
  }
  /// The kernel that writes a result: that of a heavy value that it needs, or one of its own.
  KernelKey home_of(uint32_t v) {
    std::set<uint32_t> all = plan_.heavy.count(v) ? std::set<uint32_t>{v} : needs(v);
    const int64_t n = elements(v);
    for (const uint32_t h : all) {
      KernelKey key = heavy(h).key;
      const bool each = n == key.kept * key.folded && (key.kind != Kind::all || n <= kAloneInOneGroup);
      const bool own = n == key.kept && !path_to(body_, v, h).empty();
      if (key.kind == Kind::flat || apart_.count(v) || !(own || (each && key.kind != Kind::tile))) continue;
      int level = 0;
      for (const uint32_t o : all)
        level = std::max(level, heavy(o).key.level + !(o == h || key.alike(heavy(o).key)));
      if (key.kind == Kind::tile && level != key.level) continue;
      key.level = level;
      return key;
    }
    KernelKey flat{.kind = Kind::flat, .kept = n};
    for (const uint32_t h : all) flat.level = std::max(flat.level, heavy(h).key.level + 1);
    return flat;
  }

  /// Delays folds to a later kernel of their kind, if there is one anyway.
  void delay() {
    for (auto at = plan_.heavy.rbegin(); at != plan_.heavy.rend(); ++at) {
      Heavy& h = at->second;
      if (h.key.kind == Kind::tile || h.key.kind == Kind::flat) continue;
      int limit = INT32_MAX;
      std::vector<KernelKey> alike;
      const auto consider = [&](const KernelKey& user, bool uses) {
        if (h.key.alike(user)) alike.push_back(user);
        if (uses) limit = std::min(limit, user.level - !h.key.alike(user));
      };
      for (const auto& [v, o] : plan_.heavy)
        if (v != h.value) consider(o.key, o.needs.count(h.value) != 0);
      for (size_t k = 0; k < homes_.size(); ++k) {
        const uint32_t v = body_.outputs[k];
        const bool uses = v == h.value || needs(v).count(h.value) != 0;
        consider(homes_[k], uses && !h.key.alike(homes_[k]));  // a result is written as late as necessary
      }
      for (const KernelKey& s : alike)
        if (s.level <= limit) h.key.level = std::max(h.key.level, s.level);
    }
  }

  void gather_groups() {
    std::map<KernelKey, FusedKernel> groups;
    for (auto& [v, h] : plan_.heavy) {
      for (const uint32_t n : h.needs)
        if (heavy(n).key == h.key) h.wave = std::max(h.wave, heavy(n).wave + 1);
      groups[h.key].heavy.push_back(&h);
    }
    for (uint32_t k = 0; k < homes_.size(); ++k) groups[homes_[k]].outputs.push_back(k);
    for (auto& [key, group] : groups) group.key = key, groups_.push_back(std::move(group));
    // Of one level, the larger first: a step's counters are written after the parameters that read them.
    std::stable_sort(groups_.begin(), groups_.end(), [](const FusedKernel& a, const FusedKernel& b) {
      return std::pair(a.key.level, -a.key.kept) < std::pair(b.key.level, -b.key.kept);
    });
  }

  /// Values that another kernel reads get memory in the workspace.
  void keep() {
    for (const auto& [v, h] : plan_.heavy) {
      bool read = h.key.kind == Kind::flat;
      for (const auto& [u, o] : plan_.heavy) read |= o.needs.count(v) && !(o.key == h.key);
      for (size_t k = 0; k < homes_.size(); ++k) {
        const uint32_t o = body_.outputs[k];
        read |= (o == v || needs(o).count(v)) && !(homes_[k] == h.key);
      }
      if (!read) continue;
      const DType t = body_.type(v);
      scratch_[v] = {Bound::Kind::scratch, 0, t, workspace_};
      workspace_ += (static_cast<uint64_t>(elements(v)) * byte_size(t) + 63) / 64 * 64;
    }
  }

  Result<Stages> write() {
    if (groups_.size() > kMostStages)
      return fail(Code::unsupported, "{} kernels are needed, wanted <= {}", groups_.size(), kMostStages);
    Stages stages;
    uint64_t overwritten = 0;  // inputs
    split_long_folds();
    for (const FusedKernel& group : groups_) {
      FusedCall view{body_, plan_.heavy, scratch_, plan_.light_folds, plan_.subgroup};
      Kept before;  // the results of earlier kernels
      for (const auto& [v, bound] : made_) before.emplace(v, bound);
      Pull p(body_, before, plan_.light_folds);
      WEFT_TRY(const int64_t items, write(view, group, p));
      if (!p.status().ok() && !group.outputs.empty() && group.key.kind != Kind::flat)
        return retry_apart(group, p.status());
      WEFT_CHECK(Status(p.status()));
      for (uint32_t i = 0; i < body_.call.n_inputs; ++i)
        if ((overwritten >> i & 1) && p.reads_input(i))
          return fail(Code::unsupported, "input {} is written over before all have read it", i);
      for (const uint32_t k : group.outputs) WEFT_CHECK(check_overwrite(k, group, p, overwritten));
      for (const Heavy* h : group.heavy)
        if (const auto found = group.parts && !group.last ? scratch_.end() : scratch_.find(h->value);
            found != scratch_.end())
          made_.insert(*found);
      stages.list.push_back(p.take(items));
      const Stage& s = stages.list.back();
      if (16 * s.buffers.size() + 4 * s.scalars.size() > kMaxParameterBytes)
        return fail(Code::unsupported, "{} buffers and {} scalars, wanted <= {} bytes of them",
                    s.buffers.size(), s.scalars.size(), kMaxParameterBytes);
    }
    stages.workspace = workspace_, stages.determinism = determinism_;
    return stages;
  }
  /// Splits long folds: many groups fold parts, then others fold those.
  void split_long_folds() {
    std::vector<FusedKernel> all;
    for (FusedKernel& group : groups_) {
      group.parts = parts_of(group);
      if (group.parts == 0) {
        all.push_back(std::move(group));
        continue;
      }
      for (const Heavy* h : group.heavy) {
        const DType t = codegen::dtype_of(codegen::accumulator_of(codegen::type_of(body_.type(h->value))));
        group.partial[h->value] = {Bound::Kind::scratch, 0, t, workspace_};
        workspace_ += (static_cast<uint64_t>(group.parts * group.key.kept) * byte_size(t) + 63) / 64 * 64;
      }
      FusedKernel first = group;
      first.outputs.clear();
      group.last = true;
      all.push_back(std::move(first)), all.push_back(std::move(group));
    }
    groups_ = std::move(all);
  }
  /// How many groups share a fold; 0: it stays whole. It follows from the number of folded elements alone, so
  /// that what a column adds up to does not depend on the number of columns.
  int64_t parts_of(const FusedKernel& group) const {
    const KernelKey& key = group.key;
    for (const Heavy* h : group.heavy)
      if (h->wave > 0 || is_product(step(h->value)->call->op)) return 0;
    if (key.kind == Kind::all && key.folded > kAloneInOneGroup)
      return std::min<int64_t>(kGroupItems, key.folded / (16 * kGroupItems));
    for (const uint32_t k : group.outputs)
      if (elements(body_.outputs[k]) != key.kept) return 0;
    const bool split = key.kind == Kind::column && key.folded >= kLongColumn;
    return split ? std::min(kMostParts, key.folded / kGroupItems) : 0;
  }
  /// Results that their kernel can't write get their own kernel.
  Result<Stages> retry_apart(const FusedKernel& group, const Status& why) {
    Planner again(body_, plan_.subgroup, short_folds_are_light_);
    again.apart_ = apart_;
    for (const uint32_t k : group.outputs) again.apart_.insert(body_.outputs[k]);
    if (again.apart_ == apart_) return Status(why);
    return again.run();
  }
  static Result<int64_t> write(const FusedCall& plan, const FusedKernel& group, Pull& p) {
    switch (group.key.kind) {
      case Kind::flat: return write_flat(plan, group, p);
      case Kind::tile: return write_tile(plan, group, p);
      default: return write_folds(plan, group, p);
    }
  }
  /// For a result that overwrites an input: no other element of the input may be read, then or later.
  Status check_overwrite(uint32_t k, const FusedKernel& group, const Pull& p, uint64_t& overwritten) const {
    const weft_call& call = body_.call;
    if (!(call.updates >> k & 1)) return {};
    const uint32_t over = call.update_inputs[k];
    if (over >= call.n_inputs || !call.inputs[over]) return invalid("output {} is written over no input", k);
    // Items of a group load elements for each other, so there it must not be read at all.
    const bool stands_apart =
        group.key.kind == Kind::flat ? p.reads_only_where_written(over, k) : !p.reads_input(over);
    if (dtype(*call.inputs[over]) != dtype(*call.outputs[k]) || !stands_apart)
      return fail(Code::unsupported, "output {} is written over input {}, which other items still read", k,
                  over);
    overwritten |= uint64_t{1} << over;
    return {};
  }

  const Body& body_;
  FusedCall plan_;
  const bool short_folds_are_light_;
  bool has_short_folds_ = false;
  std::map<uint32_t, std::set<uint32_t>> needs_;
  std::vector<KernelKey> homes_;  // of the outputs
  std::set<uint32_t> apart_;      // results that have a kernel of their own
  std::vector<FusedKernel> groups_;
  Kept scratch_, made_;
  uint64_t workspace_ = 0;
  uint32_t determinism_ = WEFT_DETERMINISM_THREADS;
};

constexpr const char* kFusedFoldAttrs[] = {"axes", "keep"};
constexpr const char* kProductAttrs[] = {"transpose_a", "transpose_b"};
constexpr Form form(const char* op, std::span<const char* const> reads) {
  return {.op = op,
          .variant = "fused",
          .reads = reads,
          .determinism = WEFT_DETERMINISM_THREADS,
          .overwrite = Overwrite::any,
          .check = nullptr,
          .needed = nullptr,
          .build = nullptr,
          .bind = nullptr,
          .absent = true,
          .stages = fused_stages};
}
constexpr Form kFusedForms[] = {form("sum", kFusedFoldAttrs),  form("prod", kFusedFoldAttrs),
                                form("max", kFusedFoldAttrs),  form("min", kFusedFoldAttrs),
                                form("matmul", kProductAttrs), form("region", {})};

}  // namespace

std::span<const Form> fused_forms() { return kFusedForms; }

Product::Product(const Body& body, uint32_t value) : y(value) {
  const auto& step = *body.step_of(value);
  a = step.in[0], b = step.in[1];
  transpose_a = int_attr(*step.call, "transpose_a", 0) != 0;
  transpose_b = int_attr(*step.call, "transpose_b", 0) != 0;
  const Sizes sa = body.sizes(a), sy = body.sizes(y);
  m = sy[sy.size() - 2], n = sy[sy.size() - 1], k = sa[sa.size() - (transpose_a ? 2 : 1)];
  batch = Sizes(sy.begin(), sy.end() - 2);
}

/// The axes of an operand are the last ones of the result.
static Place factor_place(const Body& body, uint32_t v, const std::vector<codegen::Id>& y_at, codegen::Id row,
                          codegen::Id column) {
  const Sizes sizes = body.sizes(v);
  Place place;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    const size_t from_end = sizes.size() - d;
    place.push_back(from_end == 2 ? row : from_end == 1 ? column : y_at[y_at.size() - from_end]);
  }
  return place;
}
Place Product::place_a(const Body& body, const std::vector<codegen::Id>& y_at, codegen::Id k_at) const {
  const codegen::Id i = y_at[y_at.size() - 2];
  return factor_place(body, a, y_at, transpose_a ? k_at : i, transpose_a ? i : k_at);
}
Place Product::place_b(const Body& body, const std::vector<codegen::Id>& y_at, codegen::Id k_at) const {
  const codegen::Id j = y_at[y_at.size() - 1];
  return factor_place(body, b, y_at, transpose_b ? j : k_at, transpose_b ? k_at : j);
}

Result<Stages> fused_stages(const weft_call& call, uint32_t subgroup) {
  const Body body(call);
  Planner planner(body, subgroup, false);
  auto stages = planner.run();
  if (!planner.has_short_folds() || (stages.ok() && stages.value().list.size() == 1)) return stages;
  // Short folds recomputed by each reader save a dispatch, but read their operands more often.
  auto fewer = Planner(body, subgroup, true).run();
  const bool better = fewer.ok() && (!stages.ok() || fewer.value().list.size() < stages.value().list.size());
  return better ? std::move(fewer) : std::move(stages);
}

}  // namespace weft::loops

#include "plan.hpp"

#include <algorithm>
#include <optional>

// Finds out which step reads what other steps of its chain write. That comes by exchange memory; what
// outlives the chain is written where it belongs, either by its step or, if steps have read it, at the end.
// So nothing is written twice, and no step has to wait until memory is free.
namespace weft::cuda::chains {

namespace {

using skinny::Items;

int size_of(Format f) { return f == Format::f32 ? 4 : 2; }
template <class T>
Range bytes_at(const T* at, int64_t bytes) {
  const auto* begin = reinterpret_cast<const char*>(at);
  return {begin, begin + bytes};
}
Range rows_at(const bf16* at, int64_t n) { return bytes_at(at, n * 2); }
bool contains(const Range& all, const Range& part) { return all.begin <= part.begin && part.end <= all.end; }

// What a step writes.
struct Value {
  Range range;
  size_t step;
  Target* target;
  Format format;
  enum Kind { result, normed, turned } kind;
  bool read = false;
  std::vector<Range> left;  // of the range: what no later step writes
};

class Planner {
 public:
  Planner(std::span<const RawStep> raw, int blocks) : raw_(raw), blocks_(blocks) {}

  // A plan of as many of the first `most` steps as can follow each other.
  ChainPlan plan(size_t most) {
    size_t descriptions = 0;
    for (const RawStep& r : raw_.first(most))
      descriptions += r.is_attention ? 1 : static_cast<size_t>(r.products.n);
    plan_.steps.resize(descriptions);  // what points to them stays
    for (size_t i = 0; i < most && add(raw_[i]); ++i) ++plan_.n;
    if (plan_.n < most) return std::move(plan_);  // too long: `n` of them may do
    if (const auto conflict = settle_values()) plan_.n = std::min(*conflict + 1, most - 1);
    plan_.steps.resize(used_);
    return std::move(plan_);
  }

 private:
  struct Read {
    Source* source;
    size_t value;
    Range bytes;   // of it
    bool awaited;  // by all blocks that write results
  };
  struct Outside {
    Range range;
    size_t step;
  };

  // The value that has these bytes; none if they are not of the chain. `clear`: not of the chain in part.
  std::optional<size_t> value_of(const Range& r, bool& clear) const {
    for (size_t v = values_.size(); v-- > 0;)
      if (values_[v].range.meets(r)) {
        clear = contains(values_[v].range, r);
        return v;
      }
    clear = !std::ranges::any_of(stored_, [&](const Range& s) { return s.meets(r); });
    return std::nullopt;
  }
  // Reads elements of a format; what was written in another one can't be waited for.
  bool read(Source& to, const Range& r, Format format, bool awaited) {
    bool clear = false;
    const auto value = value_of(r, clear);
    if (!clear) return false;
    to = {r.begin, -1};
    if (!value) return outside_.push_back({r, plan_.n}), true;
    if (values_[*value].format != format) return false;
    values_[*value].read = true;
    reads_.push_back({&to, *value, r, awaited});
    return true;
  }
  // What can't come by exchange memory.
  bool read_outside(const Range& r) {
    bool clear = false;
    if (r.begin == r.end) return true;
    if (value_of(r, clear) || !clear) return false;
    outside_.push_back({r, plan_.n});
    return true;
  }
  void write(Target& to, const Range& r, Format format, Value::Kind kind) {
    to = {nullptr, -1};
    for (Value& v : values_) take_away(v.left, r);
    values_.push_back({r, plan_.n, &to, format, kind, false, {r}});
  }
  static void take_away(std::vector<Range>& from, const Range& r) {
    std::vector<Range> left;
    for (const Range& f : from) {
      if (!f.meets(r)) {
        left.push_back(f);
        continue;
      }
      if (f.begin < r.begin) left.push_back({f.begin, r.begin});
      if (r.end < f.end) left.push_back({r.end, f.end});
    }
    from = std::move(left);
  }

  bool add(const RawStep& raw) {
    const size_t reads = reads_.size(), values = values_.size();
    const bool added = raw.is_attention ? add_attention(raw.attention) : add_products(raw.products);
    if (!added) return reads_.resize(reads), values_.resize(values), false;
    note_order(reads, values, raw);
    return true;
  }

  bool add_products(const Items& items) {
    for (int i = 0; i < items.n; ++i)
      if (!read_item(items, i, plan_.steps[used_ + static_cast<size_t>(i)].item)) return false;
    ChainedItem& first = plan_.steps[used_].item;
    first.normed_row = {nullptr, -1};
    if (items.has_norm) {
      note_normed(items.norm);
      write(first.normed_row, rows_at(items.norm.y, items.norm.columns), Format::bf16, Value::normed);
    }
    for (int i = 0; i < items.n; ++i) {
      ChainedItem& to = plan_.steps[used_ + static_cast<size_t>(i)].item;
      write_item(items.all[i], to);
      to.epsilon = items.norm.epsilon;
    }
    share_rows(items);
    used_ += static_cast<size_t>(items.n);
    return true;
  }
  // What is normed for others is read once more while the next step may begin.
  void note_normed(const SkinnyNorm& norm) {
    bool clear = false;
    for (const bf16* row : {norm.x, norm.weight})
      if (row && !value_of(rows_at(row, norm.columns), clear))
        outside_.push_back({rows_at(row, norm.columns), plan_.n + 1});
  }
  bool read_item(const Items& items, int number, ChainedItem& to) {
    const skinny::Item& item = items.all[number];
    if (!read(to.x, rows_at(static_cast<const bf16*>(item.x), item.k), Format::bf16, true)) return false;
    to.norm_weight = item.normed ? items.norm.weight : nullptr;
    if (to.norm_weight && !read_outside(rows_at(to.norm_weight, item.k))) return false;
    for (int p = 0; p < item.products; ++p)
      if (!read_outside(rows_at(static_cast<const bf16*>(item.weights[p]), int64_t{item.n} * item.k)))
        return false;
    for (int o = 0; o < kMostOperands; ++o) {
      to.operands[o] = {nullptr, -1};
      if (item.operands[o] && !read(to.operands[o],
                                    bytes_at(static_cast<const char*>(item.operands[o]),
                                             int64_t{item.n} * size_of(item.operand_formats[o])),
                                    item.operand_formats[o], false))
        return false;
    }
    return true;
  }
  // What most items do has a way of its own: the product, or its sum with an operand, as the only result.
  static ChainedItem::Ending ending_of(const skinny::Item& item, const std::vector<Operation>& all) {
    const auto is = [](const Operation& o, StepCode code, Other other) {
      return o.code == code && o.other == other;
    };
    if (item.products > 1 || item.n_results != 1) return ChainedItem::operations_of_it;
    if (all.size() == 1 && is(all[0], StepCode::convert, Other::first_product) &&
        item.result_formats[0] == item.steps[0].rounded_to)
      return ChainedItem::product;
    if (all.size() != 2 || all[1].code != StepCode::add || item.result_formats[0] != all[1].rounded_to)
      return ChainedItem::operations_of_it;
    const bool adds =
        (is(all[0], StepCode::convert, Other::first_product) && all[1].other == Other::operand) ||
        (is(all[0], StepCode::convert, Other::operand) && all[1].other == Other::first_product);
    return adds ? ChainedItem::sum : ChainedItem::operations_of_it;
  }
  void write_item(const skinny::Item& item, ChainedItem& to) {
    const auto operations = operations_of(item);
    std::ranges::copy(*operations, to.operations);
    to.ending = ending_of(item, *operations);
    to.n_operations = static_cast<uint8_t>(operations->size());
    std::ranges::copy(item.operand_formats, to.operand_formats);
    std::ranges::copy(item.result_formats, to.result_formats);
    for (int s = 0; s < item.leaves; ++s)
      if (item.steps[s].code == StepCode::product)
        to.product_formats[item.steps[s].a] = item.steps[s].rounded_to;
    to.n_operands = static_cast<uint8_t>(
        std::ranges::count_if(item.operands, [](const void* o) { return o != nullptr; }));
    to.normed = item.normed, to.k = item.k, to.per_column = 1 / static_cast<float>(item.k);
    for (int r = 0; r < item.n_results; ++r)
      write(to.results[r],
            bytes_at(static_cast<const char*>(item.results[r]),
                     int64_t{item.n} * size_of(item.result_formats[r])),
            item.result_formats[r], Value::result);
  }

  // Which blocks have a row more than others is another matter for each step.
  void share_rows(Items items) {
    skinny::share_blocks(items, blocks_);
    const size_t begin = plan_.rows.size();
    plan_.rows.resize(begin + static_cast<size_t>(blocks_));
    for (int i = 0; i < items.n; ++i) {
      const skinny::Item& item = items.all[i];
      const int first = items.first_blocks[i], of = items.first_blocks[i + 1] - first;
      for (int at = 0; at < of; ++at) {
        BlockRows& r = plan_.rows[begin + (static_cast<size_t>(first + at) + 37 * plan_.n) %
                                              static_cast<size_t>(blocks_)];
        r.step = static_cast<int>(used_) + i, r.products = item.products, r.row_bytes = item.k * 2;
        r.first = static_cast<int>(int64_t{item.n} * at / of);
        r.rows = static_cast<int>(int64_t{item.n} * (at + 1) / of) - r.first;
        r.from = static_cast<const char*>(item.weights[0]) + int64_t{r.first} * r.row_bytes;
        r.to_second = item.products > 1 ? static_cast<const char*>(item.weights[1]) -
                                              static_cast<const char*>(item.weights[0])
                                        : 0;
        r.writes_normed = items.has_norm && i == 0 && at == 0;
      }
    }
  }

  bool add_attention(const ChainedAttention& a) {
    ChainedStep& step = plan_.steps[used_];
    step.kind = ChainedStep::attention;
    ChainedQuery& q = step.query = {};
    const queries::Sizes& s = q.sizes = a.sizes;
    q.fresh = a.fresh, q.turned = a.fresh.q.x != nullptr, q.lanes = s.dim <= 64 ? 8 : 16;
    const int units = s.kv_heads * s.groups;
    const int64_t row = int64_t{s.heads} * s.dim, kv_row = int64_t{s.kv_heads} * s.dim,
                  cache = kv_row * s.ragged.capacity * s.ragged.batch;
    const Range keys = rows_at(a.keys, cache), values = rows_at(a.values, cache);
    for (const Range& c : {keys, values})
      if (std::ranges::any_of(outside_, [&](const Outside& o) { return o.range.meets(c); })) return false;
    if (!read(q.q, rows_at(q.turned ? a.fresh.q.x : a.q, row), Format::bf16, true) ||
        !read(q.k, rows_at(a.fresh.k.x, kv_row), Format::bf16, true) ||
        !read(q.v, rows_at(a.fresh.v.x, kv_row), Format::bf16, true) || !read_outside(keys) ||
        !read_outside(values) || !read_lists(s.ragged) || !read_tables(a.fresh.q) || !read_tables(a.fresh.k))
      return false;
    stored_.push_back(keys), stored_.push_back(values);
    q.q_normed = q.q_turned = q.k_normed = q.k_turned = {nullptr, -1};
    write_turned(a.fresh.q, row, q.q_normed, q.q_turned);
    write_turned(a.fresh.k, kv_row, q.k_normed, q.k_turned);
    write(q.y, rows_at(a.y, row), Format::bf16, Value::result);
    const int dim = 8 * q.lanes;
    q.partial = allocate(int64_t{units} * s.splits * 2 * (dim + 2) * 4);
    for (int b = 0; b < blocks_; ++b) {
      BlockRows r{};
      r.step = static_cast<int>(used_), r.row_bytes = 2 * s.dim;
      r.first = b / s.splits, r.split = b % s.splits, r.attends = r.first < units;
      const int64_t head = int64_t{r.first / s.groups} * s.ragged.capacity * r.row_bytes;
      r.from = reinterpret_cast<const char*>(a.keys) + head;
      r.to_second = reinterpret_cast<const char*>(a.values) - reinterpret_cast<const char*>(a.keys);
      plan_.rows.push_back(r);
    }
    ++used_;
    return true;
  }
  using Turned = Rotation<bf16>::Piece;
  void write_turned(const Turned& p, int64_t n, Target& normed, Target& turned) {
    if (!p.x) return;
    if (p.normed) write(normed, rows_at(p.normed, n), Format::bf16, Value::turned);
    if (p.y) write(turned, rows_at(p.y, n), Format::bf16, Value::turned);
  }
  bool read_lists(const Ragged& r) {
    const auto list = [](const Numbers& n, int64_t count) {
      return bytes_at(static_cast<const char*>(n.data), count * (n.wide ? 8 : 4));
    };
    return read_outside(list(r.length, r.batch)) && read_outside(list(r.offsets, r.batch + 1));
  }
  bool read_tables(const Turned& p) {
    if (!p.x) return true;
    int64_t rows = 1;
    for (int d = 0; d < p.tables.axes; ++d) rows += int64_t{p.tables.sizes[d] - 1} * p.tables.strides[d];
    return (!p.cosine || (read_outside(rows_at(p.cosine, rows * p.half)) &&
                          read_outside(rows_at(p.sine, rows * p.half)))) &&
           (!p.weight || read_outside(rows_at(p.weight, 2 * p.half)));
  }

  // Notes which steps have ended, in all blocks that read what can be overwritten, when a block writes
  // results of this one: those before `ended`. `joins`: once all its results are there, it and all before it
  // have ended.
  void note_order(size_t first_read, size_t first_value, const RawStep& raw) {
    const size_t j = plan_.n;
    std::vector<Read> awaited;  // without which nothing is written
    for (size_t r = first_read; r < reads_.size(); ++r)
      if (reads_[r].awaited) awaited.push_back(reads_[r]);
    bool joins = j == 0 || joins_[j - 1];
    for (size_t v = 0; v < first_value && joins; ++v)
      if (values_[v].step + 1 == j && values_[v].kind == Value::result) joins = are_all_of(awaited, v);
    const size_t sources = raw.is_attention ? 3 : static_cast<size_t>(raw.products.n);
    size_t ended = awaited.size() < sources ? 0 : j;
    // A block of a product has seen all of its x, one of attention a part of each.
    const bool whole = joins && !raw.is_attention && std::ranges::all_of(awaited, [&](const Read& r) {
                         return r.value == awaited.front().value && contains(r.bytes, values_[r.value].range);
                       });
    if (!whole)
      for (const Read& r : awaited) ended = std::min(ended, ended_[values_[r.value].step]);
    ended_.push_back(ended), joins_.push_back(joins);
  }
  // Whether they are all bytes of a value together.
  bool are_all_of(const std::vector<Read>& reads, size_t value) const {
    std::vector<Range> left = {values_[value].range};
    for (const Read& r : reads)
      if (r.value == value) take_away(left, r.bytes);
    return left.empty();
  }

  int allocate(int64_t bytes) {
    const int at = plan_.half;
    plan_.half += static_cast<int>((bytes + 127) / 128 * 128);
    return at;
  }
  // Values get their places. Returns a step that reads, from outside of the chain, what is overwritten before
  // it has surely ended.
  std::optional<size_t> settle_values() {
    const size_t ended = ended_.back();
    for (Value& v : values_) {
      const bool whole =
          v.left.size() == 1 && v.left[0].begin == v.range.begin && v.left[0].end == v.range.end;
      if (v.kind != Value::turned && whole && !v.read) {
        v.target->plain = const_cast<char*>(v.range.begin);
        if (const auto c = conflict(v.range, ended_[v.step])) return c;
        continue;
      }
      if (!v.read && v.left.empty()) continue;
      // Parts of it are read 16 bytes at a time, if they begin at such a place.
      const auto beside = static_cast<int>(reinterpret_cast<uintptr_t>(v.range.begin) % 16);
      v.target->place = allocate(v.range.end - v.range.begin + beside) + beside;
      for (const Range& l : v.left) {
        if (const auto c = conflict(l, ended)) return c;
        plan_.copies.push_back({const_cast<char*>(l.begin),
                                v.target->place + static_cast<int>(l.begin - v.range.begin),
                                static_cast<int>(l.end - l.begin), v.format == Format::f32});
      }
    }
    for (const Read& r : reads_) {
      const Value& v = values_[r.value];
      r.source->place = v.target->place + static_cast<int>(r.bytes.begin - v.range.begin);
    }
    return std::nullopt;
  }
  std::optional<size_t> conflict(const Range& r, size_t ended) const {
    for (const Outside& o : outside_)
      if (o.step >= ended && o.range.meets(r)) return o.step;
    return std::nullopt;
  }

  std::span<const RawStep> raw_;
  int blocks_;
  ChainPlan plan_;
  size_t used_ = 0;  // descriptions
  std::vector<Value> values_;
  std::vector<Read> reads_;
  std::vector<Outside> outside_;
  std::vector<Range> stored_;  // by steps themselves
  std::vector<size_t> ended_;
  std::vector<char> joins_;
};

}  // namespace

ChainPlan plan_chain(std::span<const RawStep> raw, int blocks) {
  size_t most = raw.size();
  for (;;) {
    ChainPlan plan = Planner(raw, blocks).plan(most);
    if (plan.n == most || plan.n == 0) return plan;
    most = plan.n;
  }
}

}  // namespace weft::cuda::chains

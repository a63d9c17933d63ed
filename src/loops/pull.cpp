#include "loops/pull.h"

#include "loops/elementwise.h"
#include "loops/fold.h"

namespace weft::loops {

using codegen::Id;
using codegen::Ids;
using codegen::kNone;
using codegen::Op;
using codegen::Type;
using codegen::type_of;
using Wide = std::vector<Id>;

Sizes long_axes(std::span<const int64_t> sizes) {
  Sizes axes;
  for (const int64_t n : sizes)
    if (n != 1) axes.push_back(n);
  return axes;
}

static std::vector<int64_t> list(const Sizes& sizes) { return {sizes.begin(), sizes.end()}; }
static std::vector<Id> list(const Place& place) { return {place.begin(), place.end()}; }

Wide Pull::widened(uint32_t v, const Place& place) const {
  Wide wide;
  size_t next = 0;
  for (const int64_t n : body_.sizes(v)) wide.push_back(n == 1 ? kNone : place[next++]);
  return wide;
}
Place Pull::narrowed(uint32_t v, const Wide& wide) const {
  Place place;
  const Sizes sizes = body_.sizes(v);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) place.push_back(wide[d]);
  return place;
}
std::string Pull::key(const Step& step, const char* what) const {
  return fmt::format("{} {}", what, step.out[0]);
}

Id Pull::refuse(const Step& step, std::string_view why) {
  if (status_.ok()) status_ = fail(Code::unsupported, "{} {}", step.call->op, why);
  return b.number(type_of(body_.type(step.out[0])), 0);
}

Id Pull::argument(const std::string& key, int64_t value) {
  const auto [found, fresh] = slots_.try_emplace(key, b.scalars());
  if (fresh) {
    job_.push(value);
    return scope().arguments[found->second] = b.argument();
  }
  if (const Id* known = find(&Scope::arguments, found->second)) return *known;
  return scope().arguments[found->second] = b.argument_at(found->second);
}

Place Pull::place_of(Id flat, const Sizes& axes) {
  if (axes.empty()) return {};
  const auto known_as = std::pair(flat, list(axes));
  if (const Place* known = find(&Scope::places, known_as)) return *known;
  Ids extents;
  for (size_t d = 0; d < axes.size(); ++d)
    extents.push_back(d == 0 ? kNone : argument(fmt::format("axis {} of {}", d, text(axes)), axes[d]));
  const Ids place = b.coordinates(flat, extents);
  scope().places[known_as] = place;
  scope().flats[{list(place), list(axes)}] = flat;
  return place;
}

Id Pull::flat_of(const Place& place, const Sizes& axes) {
  if (place.size() == 1) return place[0];
  const auto known_as = std::pair(list(place), list(axes));
  if (const Id* known = find(&Scope::flats, known_as)) return *known;
  Id flat = place.empty() ? b.index(0) : kNone;
  for (size_t d = 0; d < axes.size();) {
    size_t end = axes.size();  // the longest run of axes whose flat index is known
    Id part = kNone;
    for (; end > d + 1 && part == kNone; --end) {
      const auto run = std::pair(
          Wide(place.begin() + static_cast<ptrdiff_t>(d), place.begin() + static_cast<ptrdiff_t>(end)),
          std::vector<int64_t>(axes.begin() + static_cast<ptrdiff_t>(d),
                               axes.begin() + static_cast<ptrdiff_t>(end)));
      if (const Id* known = find(&Scope::flats, run)) {
        part = *known;
        break;
      }
    }
    if (part == kNone) part = place[d], end = d + 1;
    const int64_t extent = product(axes, d, end);
    flat = flat == kNone
               ? part
               : b.nest(flat, argument(fmt::format("axes {} to {} of {}", d, end, text(axes)), extent), part);
    d = end;
  }
  scope().flats[known_as] = flat;
  scope().places[{flat, list(axes)}] = place;
  return flat;
}

static std::vector<uint32_t> path_to(const Body& body, uint32_t v, uint32_t from, std::set<uint32_t>& seen) {
  if (v == from) return {v};
  const Body::Step* step = body.step_of(v);
  if (!step || !seen.insert(v).second) return {};
  const std::string_view op = step->call->op;
  const bool moves = op == "reshape" || op == "permute";
  for (uint32_t k = 0; k < step->call->n_inputs; ++k) {
    const uint32_t in = step->in[k];
    if (in == UINT32_MAX || in < from) continue;  // values are made in the order of their numbers
    if (!moves && !(is_elementwise(*step->call) && long_axes(body.sizes(in)) == long_axes(body.sizes(v))))
      continue;
    if (auto path = path_to(body, in, from, seen); !path.empty()) return path.push_back(v), path;
  }
  return {};
}
std::vector<uint32_t> path_to(const Body& body, uint32_t v, uint32_t from) {
  std::set<uint32_t> seen;
  return path_to(body, v, from, seen);
}

Place Pull::along(std::span<const uint32_t> path, Place place) {
  for (size_t i = 1; i < path.size(); ++i) {
    const Step& step = *body_.step_of(path[i]);
    const std::string_view op = step.call->op;
    const Sizes from = long_axes(body_.sizes(path[i - 1])), to = long_axes(body_.sizes(path[i]));
    if (op == "reshape" && from != to) place = place_of(flat_of(place, from), to);
    if (op != "permute") continue;
    const Wide wide = widened(path[i - 1], place);
    const Sizes axes = ints_attr(*step.call, "axes");
    Wide moved;
    for (size_t d = 0; d < wide.size(); ++d)
      moved.push_back(wide[axes.empty() ? wide.size() - 1 - d : static_cast<size_t>(axes[d])]);
    place = narrowed(path[i], moved);
  }
  return place;
}

Id Pull::loop(Id extent) {
  const Id l = b.loop(extent);
  scopes_.emplace_back();
  return l;
}
void Pull::end(Id loop) {
  b.end(loop);
  scopes_.pop_back();
}

uint32_t Pull::reads(const Bound& bound) {
  const uint64_t which = bound.kind == Bound::Kind::scratch ? bound.offset : bound.index;
  const auto [found, fresh] = buffers_.try_emplace({static_cast<int>(bound.kind), which}, 0);
  if (fresh) found->second = b.read(bound.dtype), bound_.push_back(bound);
  return found->second;
}
void Pull::store(const Bound& bound, Id at, Id value, Id guard) {
  const uint64_t which = bound.kind == Bound::Kind::scratch ? bound.offset : bound.index;
  const auto [found, fresh] = buffers_.try_emplace({static_cast<int>(bound.kind), which}, 0);
  if (fresh) found->second = b.write(bound.dtype), bound_.push_back(bound);
  if (bound.kind == Bound::Kind::output) stores_[bound.index] = at;
  b.store(found->second, at, value, guard);
}

Stage Pull::take(int64_t items) {
  job_.scalars[0] = static_cast<int32_t>(items);
  return {b.take(), bound_, job_.scalars};
}
bool Pull::reads_input(uint32_t input) const {
  return std::any_of(loads_.begin(), loads_.end(), [&](const auto& l) { return l.first == input; });
}
bool Pull::reads_only_where_written(uint32_t input, uint32_t output) const {
  return std::all_of(loads_.begin(), loads_.end(),
                     [&](const auto& l) { return l.first != input || l.second == stores_.at(output); });
}

void Pull::know(uint32_t v, const Place& place, Id value) { scope().values[{v, list(place)}] = value; }

Id Pull::at(uint32_t v, const Place& place) {
  const auto known_as = std::pair(v, list(place));
  if (const Id* known = find(&Scope::values, known_as)) return *known;
  Id value;
  if (const auto kept = kept_.find(v); kept != kept_.end())
    value = load(v, kept->second, place);
  else if (const Step* step = body_.step_of(v))
    value = step_at(*step, v, place);
  else
    value = load(v, {Bound::Kind::input, v, body_.type(v)}, place);
  return scope().values[known_as] = value;
}

Id Pull::load(uint32_t v, const Bound& bound, const Place& place) {
  const Id index = flat_of(place, long_axes(body_.sizes(v)));
  if (bound.kind == Bound::Kind::input) loads_.emplace_back(bound.index, index);
  return b.load(reads(bound), index);
}

Id Pull::step_at(const Step& step, uint32_t v, const Place& place) {
  const std::string_view op = step.call->op;
  const Wide wide = widened(v, place);
  if (op == "full") return full(step, v);
  if (is_elementwise(*step.call)) return elementwise(step, wide);
  if (op == "gather") return gather(step, wide);
  if (op == "scatter_add") return scatter_add(step, wide);
  if (op == "iota") return b.cast(b.cast(index_or_zero(wide[0]), Type::i32), type_of(body_.type(v)));
  if (is_fold(op) && long_axes(body_.sizes(step.in[0])).size() == place.size())
    return folded_over_ones(step, place);
  if (light_folds_.count(v)) return folded_here(step, wide);
  return moved(step, v, place, wide);
}

/// Operands broadcast: their axes are the last ones of the result.
Id Pull::elementwise(const Step& step, const Wide& wide) {
  Ids operands;
  for (uint32_t k = 0; k < step.call->n_inputs; ++k) {
    const size_t rank = body_.sizes(step.in[k]).size();
    const Wide own(wide.end() - static_cast<ptrdiff_t>(rank), wide.end());
    operands.push_back(at(step.in[k], narrowed(step.in[k], own)));
  }
  return elementwise_step(b, *step.call, operands);
}

Id Pull::full(const Step& step, uint32_t v) {
  const auto [found, fresh] = slots_.try_emplace(fmt::format("full {}", v), b.scalars());
  const Type t = type_of(body_.type(v));
  if (fresh) {
    job_.push_value(body_.type(v), full_value(*step.call));
    return b.argument(t);
  }
  return b.argument_at(found->second, t);
}

std::pair<Id, Id> Pull::clamped(Id at, Id size) {
  const Id inside = b.compare(Op::both, b.compare(Op::less, b.index(-1), at), b.compare(Op::less, at, size));
  return {b.select(inside, at, b.index(0)), inside};
}

/// y[batch, middle, index, rest] = x[batch, middle, index[batch, index], rest].
Id Pull::gather(const Step& step, const Wide& wide) {
  const uint32_t x = step.in[0], index = step.in[1];
  const auto axis = static_cast<ptrdiff_t>(int_attr(*step.call, "axis", 0)),
             batch = static_cast<ptrdiff_t>(int_attr(*step.call, "batch", 0)),
             count = static_cast<ptrdiff_t>(body_.sizes(index).size()) - batch;
  Wide which(wide.begin(), wide.begin() + batch);
  which.insert(which.end(), wide.begin() + axis, wide.begin() + axis + count);
  const Id found = at(index, narrowed(index, which));
  // Compared before it is narrowed: an i64 index must not wrap into the axis.
  const Type t = b.type(found);
  const Id size = argument(key(step, "size"), body_.sizes(x)[static_cast<size_t>(axis)]);
  const Id inside = b.compare(Op::both, b.compare(Op::less, b.number(t, -1), found),
                              b.compare(Op::less, found, b.cast(size, t)));
  Wide from(wide.begin(), wide.begin() + axis);
  from.push_back(b.select(inside, b.cast(found, Type::index), b.index(0)));
  from.insert(from.end(), wide.begin() + axis + count, wide.end());
  return b.select(inside, at(x, narrowed(x, from)), outside_value(b, body_.type(x)));
}

/// With one index for each batch: x, and the update where its own index is.
Id Pull::scatter_add(const Step& step, const Wide& wide) {
  const uint32_t x = step.in[0], index = step.in[1], updates = step.in[2];
  const auto axis = int_attr(*step.call, "axis", 0), batch = int_attr(*step.call, "batch", 0);
  if (axis != batch || static_cast<int64_t>(body_.sizes(index).size()) != batch)
    return refuse(step, "has several indices for an element");
  const Wide which(wide.begin(), wide.begin() + batch);
  Wide from = which;
  from.insert(from.end(), wide.begin() + axis + 1, wide.end());
  const Id found = at(index, narrowed(index, which));
  const Id own = b.cast(index_or_zero(wide[static_cast<size_t>(axis)]), b.type(found));
  const DType t = body_.type(x);
  const Type sum = codegen::accumulator_of(type_of(t));
  const Id before = b.cast(at(x, narrowed(x, wide)), sum);
  const Id more = b.add(before, b.cast(at(updates, narrowed(updates, from)), sum));
  return b.cast(b.select(b.compare(Op::equal, found, own), more, before), type_of(t));
}

Id Pull::moved(const Step& step, uint32_t v, const Place& place, const Wide& wide) {
  const std::string_view op = step.call->op;
  const uint32_t x = step.in[0];
  if (op == "reshape") {
    const Sizes from = long_axes(body_.sizes(x)), to = long_axes(body_.sizes(v));
    return at(x, from == to ? place : place_of(flat_of(place, to), from));
  }
  if (op == "permute") {
    const Sizes axes = ints_attr(*step.call, "axes");
    Wide from(wide.size(), kNone);
    for (size_t d = 0; d < wide.size(); ++d)
      from[axes.empty() ? wide.size() - 1 - d : static_cast<size_t>(axes[d])] = wide[d];
    return at(x, narrowed(x, from));
  }
  if (op == "slice") {
    Wide from = wide;
    Id& along = from[static_cast<size_t>(int_attr(*step.call, "axis", 0))];
    const Id start = argument(key(step, "start"), int_attr(*step.call, "start", 0));
    const Id by = argument(key(step, "step"), int_attr(*step.call, "step", 1));
    along = along == kNone ? start : b.nest(along, by, start);
    return at(x, narrowed(x, from));
  }
  if (op == "pad") return padded(step, wide);
  if (op == "concat") return joined(step, wide);
  return refuse(step, is_fold(op) || op == "matmul" ? "is read at another place than it is made at"
                                                    : "can't be followed element by element");
}

Id Pull::padded(const Step& step, Wide wide) {
  const uint32_t x = step.in[0];
  const auto axis = static_cast<size_t>(int_attr(*step.call, "axis", 0));
  const Id before = argument(key(step, "before"), int_attr(*step.call, "before", 0));
  const auto [own, inside] = clamped(b.binary(Op::sub, index_or_zero(wide[axis]), before),
                                     argument(key(step, "size"), body_.sizes(x)[axis]));
  wide[axis] = own;
  const auto [found, fresh] = slots_.try_emplace(key(step, "value"), b.scalars());
  const DType t = body_.type(x);
  if (fresh) job_.push_value(t, float_attr(*step.call, "value", 0));
  const Id value = fresh ? b.argument(type_of(t)) : b.argument_at(found->second, type_of(t));
  return b.select(inside, at(x, narrowed(x, wide)), value);
}

Id Pull::joined(const Step& step, const Wide& wide) {
  const auto axis = static_cast<size_t>(int_attr(*step.call, "axis", 0));
  Id result = kNone;
  int64_t start = 0;
  for (uint32_t k = 0; k < step.call->n_inputs; ++k) {
    const uint32_t x = step.in[k];
    if (x == UINT32_MAX || body_.sizes(x)[axis] == 0) continue;
    const int64_t size = body_.sizes(x)[axis];
    Id along = index_or_zero(wide[axis]);
    if (start > 0)
      along = b.binary(Op::sub, along, argument(fmt::format("start of {} in {}", k, step.out[0]), start));
    const auto [own, inside] =
        clamped(along, argument(fmt::format("size of {} in {}", k, step.out[0]), size));
    Wide from = wide;
    from[axis] = own;
    const Id value = at(x, narrowed(x, from));
    result = result == kNone ? value : b.select(inside, value, result);
    start += size;
  }
  return result;
}

Id Pull::folded_over_ones(const Step& step, const Place& place) {
  const Id start = fold_start(b, step.call->op, body_.type(step.in[0]));
  const Id value = b.cast(at(step.in[0], place), b.type(start));
  return b.cast(fold_step(b, step.call->op, start, value), type_of(body_.type(step.out[0])));
}

/// In the order of the axes, as in fold kernels with one item per result.
Id Pull::folded_here(const Step& step, const Wide& wide) {
  const uint32_t x = step.in[0];
  const Sizes sizes = body_.sizes(x), axes = ints_attr(*step.call, "axes");
  const bool keep = sizes.size() == wide.size();
  const auto folded = [&](size_t d) {
    return axes.empty() || std::find(axes.begin(), axes.end(), d) != axes.end();
  };
  Sizes extents;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (folded(d) && sizes[d] != 1) extents.push_back(sizes[d]);
  const Id total = b.accumulator(fold_start(b, step.call->op, body_.type(x)));
  const Id l = loop(argument(key(step, "folded"), product(extents)));
  const Place along = place_of(l, extents);
  Wide from;
  for (size_t d = 0, next = 0, other = 0; d < sizes.size(); ++d) {
    if (folded(d)) {
      from.push_back(sizes[d] == 1 ? kNone : along[next++]);
      other += keep;
    } else {
      from.push_back(wide[other++]);
    }
  }
  b.assign(total, fold_step(b, step.call->op, total, b.cast(at(x, narrowed(x, from)), b.type(total))));
  end(l);
  return b.cast(total, type_of(body_.type(step.out[0])));
}

}  // namespace weft::loops

#include <algorithm>

#include "lab/kernels/seat.h"
#include "weft/random.h"

// Results of a seat against the oracle's.
namespace weft::lab {

using conformance::Array;
using conformance::Bounded;
using conformance::Dims;

namespace {

constexpr size_t kShown = 4;  // numbers of a row

// The numbers of an operand that an element depends on, or the first of them.
OperandValues values_of(const HostTensor& t, size_t operand, const Positions& positions,
                        const std::vector<int64_t>& at, bool alike) {
  OperandValues shown{.operand = operand, .at = {}, .values = {}};
  Positions chosen(positions.size());
  bool row = false;  // the last axis is shown as far as there is room
  for (size_t d = positions.size(); d-- > 0;) {
    const int64_t size = positions[d].empty() ? t.type.shape[d] : std::ssize(positions[d]);
    const auto position = [&](int64_t i) {
      return positions[d].empty() ? i : positions[d][static_cast<size_t>(i)];
    };
    if (alike)
      chosen[d] = {at[d]};
    else if (!row && size > 1)
      for (int64_t i = 0; i < std::min<int64_t>(size, kShown); ++i) chosen[d].push_back(position(i));
    else
      chosen[d] = {position(0)};
    row |= !alike && size > 1;
    shown.at.insert(shown.at.begin(), chosen[d][0]);
  }
  for (const auto x : take(t.type, t.bytes, chosen).v) shown.values.push_back(static_cast<double>(x));
  return shown;
}

}  // namespace

std::vector<Array> Seat::sliced(const Operation& o, const Slice& slice) const {
  std::vector<Array> in;
  for (size_t i = 0; i < data_.inputs.size(); ++i) {
    const auto& t = data_.inputs[i];
    in.push_back(take(t.type, t.bytes, slice.of_operand(o, i, t.type.shape.size())));
  }
  return in;
}

void Seat::add_last_edit(const Operation& o, Slice& slice) const {
  const auto edited =
      slice_of_element(o, edited_, data_.inputs[edited_].type.shape, edited_at_, data_.outputs[0].shape, 0);
  for (size_t r = 0; r < o.rows.size(); ++r) {
    if (o.rows[r].operands[edited_] < 0) continue;
    const int64_t block = edited.along[r][0];
    auto& along = slice.along[r];
    if (const auto place = std::ranges::lower_bound(along, block); place == along.end() || *place != block)
      along.insert(place, block);
  }
}

WorstElement Seat::with_operands(const Operation& o, const Slice& slice, size_t result, size_t element,
                                 WorstElement worst) const {
  const auto& shape = data_.outputs[result].shape;
  worst.result = result, worst.at = indices_of(element, shape, slice.of_results(o, shape.size()));
  const Slice one = around(o, slice, worst.at);
  for (size_t i = 0; i < data_.inputs.size(); ++i) {
    const auto& t = data_.inputs[i];
    if (data_.absent >> i & 1 || t.bytes.empty()) continue;
    worst.operands.push_back(
        values_of(t, i, one.of_operand(o, i, t.type.shape.size()), worst.at, t.type.shape == shape));
  }
  return worst;
}

Seat::Kept Seat::rows_now(const Operation& o, double oracle_seconds, uint64_t seed) const {
  Kept rows{.slice = draw_slice(o, data_.outputs[0].shape, oracle_seconds, seed), .inputs = {}, .got = {}};
  add_last_edit(o, rows.slice);
  rows.inputs = sliced(o, rows.slice);
  for (size_t k = 0; k < data_.outputs.size(); ++k) {
    const auto& type = data_.outputs[k];
    rows.got.push_back(take(type, output(k), rows.slice.of_results(o, type.shape.size())));
  }
  return rows;
}

Status Seat::judge(const Operation& o, double oracle_seconds, uint64_t seed, Accuracy& accuracy) const {
  const Kept rows = rows_now(o, oracle_seconds, seed);
  WEFT_TRY(const auto truth, truth_of(o, rows.inputs));
  for (size_t k = 0; k < truth.size(); ++k)
    if (const auto worst = accuracy.add(rows.got[k], truth[k], fmt::format("result {}", k)))
      accuracy.worst = with_operands(o, rows.slice, k, *worst, accuracy.worst);
  if (accuracy.wrong.empty()) accuracy.wrong = left_spoilt();
  return {};
}

Status Seat::keep_turn(const Operation& o, double oracle_seconds, uint64_t seed) {
  if (in_place()) return {};
  WEFT_CHECK(keep_samples(o, oracle_seconds, random_word(seed, 3)));
  if (unwritten_.empty()) unwritten_ = left_spoilt();
  const auto smallest =
      slice_of_element(o, 0, data_.inputs[0].type.shape, 0, data_.outputs[0].shape, random_word(seed, 0));
  if (oracle_seconds >= oracle_time(o, smallest) * unit(random_word(seed, 1)))
    kept_.push_back(rows_now(o, oracle_seconds, random_word(seed, 2)));
  return {};
}

namespace {

// The element with the same place in the operands that are as large as the result. Others may have changed.
void add_operands(WorstElement& worst, const std::vector<Array>& inputs, const Dims& shape, size_t element) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].shape == shape)
      worst.operands.push_back({i, worst.at, {static_cast<double>(inputs[i].v[element])}});
}

}  // namespace

Status Seat::judge_kept(const Operation& o, Accuracy& accuracy) {
  for (const Kept& rows : kept_) {
    WEFT_TRY(const auto truth, truth_of(o, rows.inputs));
    for (size_t k = 0; k < truth.size(); ++k) {
      const auto worst = accuracy.add(rows.got[k], truth[k], fmt::format("result {} of a turn", k));
      if (!worst) continue;
      const auto& shape = data_.outputs[k].shape;
      accuracy.worst.result = k;
      accuracy.worst.at = indices_of(*worst, shape, rows.slice.of_results(o, shape.size()));
      add_operands(accuracy.worst, rows.inputs, rows.got[k].shape, *worst);
    }
  }
  for (const Sample& s : kept_samples_) {
    WEFT_TRY(const auto truth, truth_of(o, s.inputs));
    const Bounded& right = truth[s.result];
    const Bounded one{{s.got.dtype, {}, {right.value.v[s.element]}}, {right.error[s.element]}, right.bitwise};
    const auto what =
        fmt::format("result {} at {}, launch {} of a turn", s.result, text_of(s.at), s.launch + 1);
    if (!accuracy.add(s.got, one, what)) continue;
    accuracy.worst.result = s.result, accuracy.worst.at = s.at;
    add_operands(accuracy.worst, s.inputs, right.value.shape, s.element);
  }
  kept_.clear(), kept_samples_.clear();
  if (accuracy.wrong.empty()) accuracy.wrong = unwritten_;
  return {};
}

}  // namespace weft::lab

#include <algorithm>
#include <cstring>

#include "lab/kernels/seat.h"
#include "weft/random.h"

// Launches in the midst of a turn. The process of a kernel keeps an element of the results of each; which of
// them are judged is drawn here, when the turn is over.
namespace weft::lab {
namespace {

constexpr uint64_t kMostJudged = 8;  // of a turn

// Where position `at` is among these; all of an axis where the list is empty.
size_t place_among(const std::vector<int64_t>& positions, int64_t at) {
  if (positions.empty()) return static_cast<size_t>(at);
  return static_cast<size_t>(std::ranges::find(positions, at) - positions.begin());
}

}  // namespace

// As many as the oracle works out in the seconds given, the last first; of a dear one now and then one.
std::vector<uint64_t> Seat::draw_judged(const Operation& o, double oracle_seconds, uint64_t seed) const {
  if (oracle_seconds <= 0) return {};
  const auto slice =
      slice_of_element(o, 0, data_.inputs[0].type.shape, 0, data_.outputs[0].shape, random_word(seed, 1));
  const double most = oracle_seconds / oracle_time(o, slice) + unit(random_word(seed, 0));
  const auto count = std::min({kMostJudged, launches_, static_cast<uint64_t>(std::min(most, 1e3))});
  std::vector<uint64_t> judged;
  for (uint64_t i = 0; i < count; ++i) judged.push_back(random_word(seed, 2 + i) % launches_);
  std::ranges::sort(judged, std::greater());
  judged.erase(std::ranges::unique(judged).begin(), judged.end());
  return judged;
}

// What the process has kept of a launch, and the rows of operands that it comes from, as they are now; none
// where a result has no elements.
Result<std::optional<Seat::Sample>> Seat::sample_of(const Operation& o, uint64_t launch,
                                                    uint64_t seed) const {
  Edit e;
  const size_t each = made_.size() / launches_;
  std::memcpy(&e, edits() + launch * each, sizeof e);
  if (e.sample_bytes == 0) return std::optional<Sample>();
  const uint64_t* begin = places_.at.data() + data_.inputs.size();
  size_t k = 0;
  while (k < data_.outputs.size() && e.sample_at - begin[k] >= data_.outputs[k].bytes()) ++k;
  if (k == data_.outputs.size() || (e.sample_at - begin[k]) % byte_size(data_.outputs[k].dtype))
    return fail(Code::device, "its process kept a sample of launch {} that is no element of a result",
                launch + 1);
  const auto& type = data_.outputs[k];
  Sample s{.launch = launch, .result = k, .got = take({type.dtype, {}}, e.sample, {})};
  s.at =
      indices_of((e.sample_at - begin[k]) / byte_size(type.dtype), type.shape, Positions(type.shape.size()));
  const auto any = slice_of_element(o, 0, data_.inputs[0].type.shape, 0, data_.outputs[0].shape, seed);
  const auto rows = around(o, any, s.at);
  const auto positions = rows.of_results(o, type.shape.size());
  for (size_t d = 0; d < s.at.size(); ++d) {
    const auto size = static_cast<size_t>(positions[d].empty() ? type.shape[d] : std::ssize(positions[d]));
    s.element = s.element * size + place_among(positions[d], s.at[d]);
  }
  s.inputs = sliced(o, rows);
  return std::optional(std::move(s));
}

// Operands as they are after the first `edits` of the turn; they are as after `now` of them.
void Seat::rewind(size_t edits, size_t now) {
  const auto set = [&](const Made& m, const auto& value) {
    std::memcpy(data_.inputs[m.operand].bytes.data() + m.at, value.data(), m.bytes);
  };
  for (; now > edits; --now) set(made_[now - 1], made_[now - 1].before);
  for (; now < edits; ++now) set(made_[now], made_[now].after);
}

Status Seat::keep_samples(const Operation& o, double oracle_seconds, uint64_t seed) {
  size_t now = made_.size();
  const size_t each = launches_ ? now / launches_ : 0;
  Status status;
  for (const uint64_t launch : draw_judged(o, oracle_seconds, random_word(seed, 0))) {
    rewind((launch + 1) * each, now), now = (launch + 1) * each;
    auto sample = sample_of(o, launch, random_word(seed, launch));
    if (!sample.ok()) status = sample.take_status();
    if (!sample.ok()) break;
    if (*sample) kept_samples_.push_back(std::move(**sample));
  }
  rewind(made_.size(), now);
  return status;
}

}  // namespace weft::lab

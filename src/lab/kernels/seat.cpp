#include "lab/kernels/seat.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/inputs.h"
#include "weft/random.h"

namespace weft::lab {
namespace {

// A result that updates an operand has no place of its own.
std::vector<uint64_t> sizes_of(const Data& d) {
  std::vector<uint64_t> sizes;
  for (const auto& t : d.inputs) sizes.push_back(t.bytes.size());
  for (size_t k = 0; k < d.outputs.size(); ++k)
    sizes.push_back(d.update_of[k] >= 0 ? 0 : d.outputs[k].bytes());
  return sizes;
}

uint64_t edits_begin(const Data& d) { return (lab::room_for(sizes_of(d)) + 63) / 64 * 64; }

}  // namespace

Result<Data> data_of(const conformance::Ask& ask) {
  WEFT_TRY(const auto call, lab::describe(ask));
  Data data{ask.inputs, call->desc().outputs, ask.absent, ask.constants, {}};
  data.update_of.resize(data.outputs.size(), -1);
  for (const auto& [output, input] : call->desc().updates) data.update_of[output] = input;
  return data;
}

Result<Data> draw_data(const Operation& o, uint64_t seed) {
  return data_of(ask_of(o, conformance::make_inputs(o.call, o.dtype, seed)));
}

Data rotated(Data d, uint64_t seed) {
  for (auto& t : d.inputs) {
    const size_t one = byte_size(t.type.dtype), count = t.bytes.size() / one;
    if (count == 0) continue;
    const auto by = static_cast<std::ptrdiff_t>(random_word(seed++, 0) % count * one);
    std::ranges::rotate(t.bytes, t.bytes.end() - by);
  }
  return d;
}

uint64_t room_for(const Data& d) { return edits_begin(d) + kMostLaunches * sizeof(Edit); }

bool Seat::in_place() const {
  return std::ranges::any_of(data_.update_of, [](int64_t of) { return of >= 0; });
}

bool Seat::updates(size_t operand) const {
  return std::ranges::find(data_.update_of, static_cast<int64_t>(operand)) != data_.update_of.end();
}

Edit* Seat::edits() const { return reinterpret_cast<Edit*>(contender_->memory().data() + edits_at_); }

Status Seat::put(Data data, uint64_t seed) {
  data_ = std::move(data), seed_ = seed;
  const auto sizes = sizes_of(data_);
  places_ = draw_places(sizes, seed), edits_at_ = edits_begin(data_);
  const auto memory = contender_->memory();
  if (edits_at_ + kMostLaunches * sizeof(Edit) > memory.size())
    return fail(Code::internal, "the lab's memory of {} bytes is too small", memory.size());
  fill_guards(memory, places_, seed);
  for (size_t i = 0; i < data_.inputs.size(); ++i)
    std::ranges::copy(data_.inputs[i].bytes, operand(i).begin());
  spoil(random_word(seed, 1));
  const auto split = places_.at.begin() + static_cast<std::ptrdiff_t>(data_.inputs.size());
  std::vector<uint64_t> outputs(split, places_.at.end());
  for (size_t k = 0; k < outputs.size(); ++k)
    if (data_.update_of[k] >= 0) outputs[k] = places_.at[static_cast<size_t>(data_.update_of[k])];
  return contender_->place({places_.at.begin(), split}, outputs);
}

// Results that update an operand hold its numbers.
void Seat::spoil(uint64_t seed) {
  spoilt_by_ = seed;
  for (size_t k = 0; k < data_.outputs.size(); ++k) {
    if (data_.update_of[k] >= 0) continue;
    const auto pattern = spoilt_pattern(data_.outputs[k].dtype, seed);
    const size_t one = byte_size(data_.outputs[k].dtype);
    const auto bytes = output(k);
    for (size_t at = 0; at < bytes.size(); at += one) std::memcpy(bytes.data() + at, pattern.data(), one);
  }
}

void Seat::restore() {
  for (size_t i = 0; i < data_.inputs.size(); ++i)
    if (updates(i)) std::ranges::copy(data_.inputs[i].bytes, operand(i).begin());
}

// An element becomes a copy of another one of the same operand: so it stays within what the op allows.
Edit Seat::draw_edit(uint64_t seed) {
  Edit e;
  Made made;
  const auto word = [&](uint64_t i, size_t n) { return random_word(seed, i) % n; };
  std::vector<size_t> may_change;
  for (size_t i = 0; i < data_.inputs.size(); ++i)
    if (!(data_.constants >> i & 1)) may_change.push_back(i);
  edited_ = may_change.empty() ? 0 : may_change[word(0, may_change.size())];
  auto& operand = data_.inputs[edited_];
  const size_t one = byte_size(operand.type.dtype), count = operand.bytes.size() / one;
  if (count && !may_change.empty() && !(data_.absent >> edited_ & 1)) {
    edited_at_ = word(1, count);
    std::byte* element = operand.bytes.data() + edited_at_ * one;
    made = {.operand = edited_, .at = edited_at_ * one, .bytes = one};
    std::memcpy(e.value, operand.bytes.data() + word(2, count) * one, one);
    std::memcpy(made.before.data(), element, one), std::memcpy(made.after.data(), e.value, one);
    std::memcpy(element, e.value, one);
    e.input_at = places_.at[edited_] + edited_at_ * one, e.input_bytes = static_cast<uint8_t>(one);
  }
  const size_t k = word(3, data_.outputs.size());
  const size_t size = byte_size(data_.outputs[k].dtype), n = data_.outputs[k].bytes() / size;
  if (n && data_.update_of[k] < 0) {
    e.output_at = places_.at[data_.inputs.size() + k] + word(4, n) * size;
    e.output_bytes = static_cast<uint8_t>(size);
    const auto pattern = spoilt_pattern(data_.outputs[k].dtype, spoilt_by_);
    std::ranges::copy(pattern, e.spoilt);
  }
  made_.push_back(made);
  return e;
}

// A line through the rows that the last edit concerns, along the last axis of which they have all.
void Seat::draw_sample(const Operation& o, Edit& edit, uint64_t seed) const {
  const size_t result = random_word(seed, 1) % data_.outputs.size();
  const auto& type = data_.outputs[result];
  const uint64_t one = byte_size(type.dtype), count = type.bytes() / one;
  if (count == 0) return;
  const auto rows = slice_of_element(o, edited_, data_.inputs[edited_].type.shape, edited_at_,
                                     data_.outputs[0].shape, random_word(seed, 0));
  const auto positions = rows.of_results(o, type.shape.size());
  edit.result_at = edit.line_at = places_.at[data_.inputs.size() + result];
  edit.result_count = count, edit.line_count = 1;
  edit.sample_bytes = static_cast<uint8_t>(one);
  uint64_t step = one;
  for (size_t d = type.shape.size(); d-- > 0; step *= static_cast<uint64_t>(type.shape[d])) {
    const auto size = static_cast<uint64_t>(positions[d].empty() ? type.shape[d] : std::ssize(positions[d]));
    const auto chosen = random_word(seed, 2 + d) % size;
    if (positions[d].empty() && edit.line_count == 1)
      edit.line_count = size, edit.line_step = step;
    else
      edit.line_at += step * (positions[d].empty() ? chosen : static_cast<uint64_t>(positions[d][chosen]));
  }
}

Result<Contender::Turn> Seat::turn(const Operation& o, const TurnOptions& options, uint64_t seed) {
  restore();
  launches_ = options.launches, made_.clear();
  for (uint64_t i = 0; i < options.launches; ++i) {
    Edit* of_launch = edits() + i * options.edits_each;
    for (uint64_t k = 0; k < options.edits_each; ++k) {
      const Edit e = draw_edit(random_word(random_word(seed, 0), made_.size()));
      std::memcpy(of_launch + k, &e, sizeof e);
    }
    if (!in_place()) draw_sample(o, *of_launch, random_word(random_word(seed, 1), i));
  }
  return contender_->run({options.launches, edits_at_, options.edits_each, options.apart, options.cold});
}

Status Seat::once() {
  restore();
  const Edit none;
  std::memcpy(edits(), &none, sizeof none);
  return contender_->run({.count = 1, .edits_at = edits_at_}).take_status();
}

Status Seat::check_memory() const {
  const auto memory = contender_->memory();
  if (const int64_t t = touched_guard(memory, places_, seed_); t >= 0) {
    const auto inputs = std::ssize(data_.inputs);
    return fail(Code::corrupt, "it wrote beside {} {}", t < inputs ? "operand" : "result",
                t < inputs ? t : t - inputs);
  }
  for (size_t i = 0; i < data_.inputs.size(); ++i)
    if (!updates(i) && !std::ranges::equal(data_.inputs[i].bytes, operand(i)))
      return fail(Code::corrupt, "it changed operand {}", i);
  return {};
}

std::vector<conformance::Array> Seat::results() const {
  std::vector<conformance::Array> all;
  for (size_t k = 0; k < data_.outputs.size(); ++k)
    all.push_back(take(data_.outputs[k], output(k), Positions(data_.outputs[k].shape.size())));
  return all;
}

// Of floats of 16 bits and more the pattern is a NaN of its own; an integer may be what is right.
static bool is_telling(DType t) { return is_float(t) && byte_size(t) > 1; }

std::array<std::byte, 8> spoilt_pattern(DType t, uint64_t seed) {
  std::array<std::byte, 8> bytes;
  const size_t one = byte_size(t);
  uint64_t word = random_word(seed, 0);
  bytes.fill(word & 1 ? kSpoilt : std::byte{0x55});
  if (one == 1) return bytes;
  if (is_float(t)) {
    const uint64_t fraction = t == DType::f64 ? 52 : t == DType::f32 ? 23 : t == DType::f16 ? 10 : 7;
    const uint64_t sign = uint64_t{1} << (8 * one - 1), quiet = uint64_t{1} << (fraction - 1);
    word = (sign - quiet) | (word & (sign | (quiet - 1))) | 1;  // never the NaN that processors make
  }
  std::memcpy(bytes.data(), &word, one);
  return bytes;
}

std::string Seat::left_spoilt() const {
  for (size_t k = 0; k < data_.outputs.size(); ++k) {
    if (!is_telling(data_.outputs[k].dtype) || data_.update_of[k] >= 0) continue;
    const size_t one = byte_size(data_.outputs[k].dtype);
    const auto pattern = spoilt_pattern(data_.outputs[k].dtype, spoilt_by_);
    const auto bytes = output(k);
    for (size_t at = 0; at < bytes.size(); at += one)
      if (!std::memcmp(bytes.data() + at, pattern.data(), one))
        return fmt::format("element {} of result {} was not written", at / one, k);
  }
  return "";
}

Result<std::string> Seat::check_written() {
  const auto launched = [&](uint64_t seed) -> Result<std::vector<std::vector<std::byte>>> {
    spoil(seed);
    WEFT_CHECK(once());
    std::vector<std::vector<std::byte>> all;
    for (size_t k = 0; k < data_.outputs.size(); ++k) all.emplace_back(output(k).begin(), output(k).end());
    return all;
  };
  uint64_t seeds[] = {random_word(seed_, 2), random_word(seed_, 3)};
  while (random_word(seeds[0], 0) % 2 == random_word(seeds[1], 0) % 2) ++seeds[1];  // bytes differ, too
  WEFT_TRY(const auto first, launched(seeds[0]));
  WEFT_TRY(const auto second, launched(seeds[1]));
  for (size_t k = 0; k < data_.outputs.size(); ++k) {
    if (data_.update_of[k] >= 0) continue;
    const auto type = data_.outputs[k].dtype;
    const size_t one = byte_size(type);
    auto a = spoilt_pattern(type, seeds[0]), b = spoilt_pattern(type, seeds[1]);
    for (size_t at = 0; at < first[k].size(); at += one)
      if (!std::memcmp(first[k].data() + at, a.data(), one) &&
          !std::memcmp(second[k].data() + at, b.data(), one))
        return fmt::format("element {} of result {} was not written", at / one, k);
  }
  return std::string();
}

}  // namespace weft::lab

#include "lab/kernels/seat.h"

#include <algorithm>
#include <cstring>

#include "conformance/inputs.h"
#include "weft/random.h"

namespace weft::lab {
namespace {

std::vector<uint64_t> sizes_of(const Data& d) {
  std::vector<uint64_t> sizes;
  for (const auto& t : d.inputs) sizes.push_back(t.bytes.size());
  for (const auto& t : d.outputs) sizes.push_back(t.bytes());
  return sizes;
}

uint64_t edits_begin(const Data& d) { return (lab::room_for(sizes_of(d)) + 63) / 64 * 64; }

}  // namespace

Result<Data> data_of(const conformance::Ask& ask) {
  WEFT_TRY(const auto call, conformance::describe(ask));
  if (!call->desc().updates.empty())
    return fail(Code::unsupported, "{} updates an operand in place: the lab does not time such ops yet",
                ask.op);
  return Data{ask.inputs, call->desc().outputs, ask.absent};
}

Result<Data> draw_data(const Operation& o, uint64_t seed) {
  return data_of(ask_of(o, conformance::make_inputs(o.call, o.dtype, seed)));
}

uint64_t room_for(const Data& d) { return edits_begin(d) + kMostLaunches * sizeof(Edit); }

Status Seat::put(Data data, uint64_t seed) {
  data_ = std::move(data), seed_ = seed;
  const auto sizes = sizes_of(data_);
  places_ = draw_places(sizes, seed), edits_at_ = edits_begin(data_);
  const auto memory = contender_->memory();
  if (edits_at_ + kMostLaunches * sizeof(Edit) > memory.size())
    return fail(Code::internal, "the lab's memory of {} bytes is too small", memory.size());
  fill_guards(memory, places_, seed);
  for (size_t i = 0; i < data_.inputs.size(); ++i)
    std::ranges::copy(data_.inputs[i].bytes, memory.begin() + static_cast<std::ptrdiff_t>(places_.at[i]));
  for (size_t k = 0; k < data_.outputs.size(); ++k) std::ranges::fill(output(k), kSpoilt);
  const auto split = places_.at.begin() + static_cast<std::ptrdiff_t>(data_.inputs.size());
  return contender_->place({places_.at.begin(), split}, {split, places_.at.end()});
}

// An element becomes a copy of another one of the same operand: so it stays within what the op allows.
Edit Seat::draw_edit(uint64_t seed) {
  Edit e;
  const auto word = [&](uint64_t i, size_t n) { return random_word(seed, i) % n; };
  edited_ = word(0, data_.inputs.size());
  auto& operand = data_.inputs[edited_];
  const size_t one = byte_size(operand.type.dtype), count = operand.bytes.size() / one;
  if (count && !(data_.absent >> edited_ & 1)) {
    edited_at_ = word(1, count);
    std::memcpy(e.value, operand.bytes.data() + word(2, count) * one, one);
    std::memcpy(operand.bytes.data() + edited_at_ * one, e.value, one);
    e.input_at = places_.at[edited_] + edited_at_ * one, e.input_bytes = static_cast<uint8_t>(one);
  }
  const size_t k = word(3, data_.outputs.size());
  const size_t size = byte_size(data_.outputs[k].dtype), n = data_.outputs[k].bytes() / size;
  if (n)
    e.output_at = places_.at[data_.inputs.size() + k] + word(4, n) * size,
    e.output_bytes = static_cast<uint8_t>(size);
  return e;
}

Result<Contender::Turn> Seat::turn(uint64_t launches, bool cold, uint64_t seed) {
  for (uint64_t i = 0; i < launches; ++i) {
    const Edit e = draw_edit(random_word(seed, i));
    std::memcpy(contender_->memory().data() + edits_at_ + i * sizeof e, &e, sizeof e);
  }
  return contender_->run(launches, edits_at_, cold);
}

Status Seat::once() {
  const Edit none;
  std::memcpy(contender_->memory().data() + edits_at_, &none, sizeof none);
  return contender_->run(1, edits_at_, false).take_status();
}

Status Seat::check_memory() const {
  const auto memory = contender_->memory();
  if (const int64_t t = touched_guard(memory, places_, seed_); t >= 0) {
    const auto inputs = std::ssize(data_.inputs);
    return fail(Code::corrupt, "it wrote beside {} {}", t < inputs ? "operand" : "result",
                t < inputs ? t : t - inputs);
  }
  for (size_t i = 0; i < data_.inputs.size(); ++i)
    if (!std::ranges::equal(data_.inputs[i].bytes, memory.subspan(places_.at[i], places_.sizes[i])))
      return fail(Code::corrupt, "it changed operand {}", i);
  return {};
}

std::vector<conformance::Array> Seat::results() const {
  std::vector<conformance::Array> all;
  for (size_t k = 0; k < data_.outputs.size(); ++k)
    all.push_back(take(data_.outputs[k], output(k), Positions(data_.outputs[k].shape.size())));
  return all;
}

std::string Seat::left_spoilt() const {
  for (size_t k = 0; k < data_.outputs.size(); ++k) {
    if (!is_float(data_.outputs[k].dtype)) continue;
    const size_t one = byte_size(data_.outputs[k].dtype);
    const auto bytes = output(k);
    for (size_t at = 0; at < bytes.size(); at += one)
      if (std::ranges::all_of(bytes.subspan(at, one), [](std::byte b) { return b == kSpoilt; }))
        return fmt::format("element {} of result {} was not written", at / one, k);
  }
  return "";
}

void Seat::add_last_edit(const Operation& o, Slice& slice) const {
  const auto& shape = data_.inputs[edited_].type.shape;
  for (size_t r = 0; r < o.rows.size(); ++r) {
    const int axis = o.rows[r].operands[edited_];
    if (axis < 0) continue;
    uint64_t inner = 1;
    for (size_t d = static_cast<size_t>(axis) + 1; d < shape.size(); ++d)
      inner *= static_cast<uint64_t>(shape[d]);
    const auto at = static_cast<int64_t>(edited_at_ / inner) % shape[static_cast<size_t>(axis)];
    auto& along = slice.along[r];
    if (const auto place = std::ranges::lower_bound(along, at); place == along.end() || *place != at)
      along.insert(place, at);
  }
}

Status Seat::judge(const Operation& o, double oracle_seconds, uint64_t seed, Accuracy& accuracy) const {
  auto slice = draw_slice(o, data_.outputs[0].shape, oracle_seconds, seed);
  add_last_edit(o, slice);
  std::vector<conformance::Array> in;
  for (size_t i = 0; i < data_.inputs.size(); ++i) {
    const auto& t = data_.inputs[i];
    in.push_back(take(t.type, t.bytes, slice.of_operand(o, i, t.type.shape.size())));
  }
  WEFT_TRY(const auto truth, truth_of(o, in));
  for (size_t k = 0; k < truth.size(); ++k) {
    const auto& type = data_.outputs[k];
    accuracy.add(take(type, output(k), slice.of_results(o, type.shape.size())), truth[k],
                 fmt::format("result {}", k));
  }
  if (accuracy.wrong.empty()) accuracy.wrong = left_spoilt();
  return {};
}

}  // namespace weft::lab

#include "lab/kernels/mirror.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "seam/device.h"

namespace weft::lab {
namespace {

constexpr size_t kMostBurst = 32;
constexpr uint64_t kMostLead = 128 << 20;  // bytes of a copy: more than any cache
constexpr uint64_t kLongestLead = 16 * kMostLead;

}  // namespace

Mirror::Mirror(std::span<std::byte> original, seam::Queue& queue)
    : original_(original), queue_(queue), burst_(queue.has_stamps() ? kMostBurst : kMostLaunches) {}

Result<std::unique_ptr<Mirror>> Mirror::create(std::span<std::byte> original, seam::Queue& queue) {
  std::unique_ptr<Mirror> m(new Mirror(original, queue));
  auto& device = queue.device();
  WEFT_TRY(m->copy_, device.allocate_unpooled(original.size()));
  WEFT_TRY(m->snapshot_, device.allocate_unpooled(original.size()));
  WEFT_TRY(m->before_, device.allocate_unpooled(original.size()));
  WEFT_TRY(m->samples_, device.allocate_unpooled(kMostLaunches * sizeof(Edit::sample)));
  WEFT_TRY(m->edits_, device.allocate_pinned(2 * kMostLaunches * sizeof(Edit::value)));
  return m;
}

weft_tensor Mirror::tensor(weft_tensor host, uint64_t at) const {
  host.dl.data = copy_->handle, host.dl.byte_offset = at, host.dl.device = queue_.device().dl();
  return host;
}

// Pinned memory is copied in the queue's order, without a wait.
Status Mirror::edit(std::span<const Edit> edits, size_t number) {
  for (const Edit& e : edits) {
    if (e.input_bytes)
      WEFT_CHECK(
          queue_.copy(*copy_.get(), e.input_at, *edits_.get(), number * sizeof e.value, e.input_bytes));
    if (e.output_bytes)
      WEFT_CHECK(queue_.copy(*copy_.get(), e.output_at, *edits_.get(),
                             (kMostLaunches + number) * sizeof e.spoilt, e.output_bytes));
    ++number;
  }
  return {};
}

// Of launch `launch` of a burst; `number`: of the run.
Status Mirror::keep_sample(std::span<const Edit> burst, size_t each, size_t launch, size_t number) {
  const Edit& e = burst[launch * each];
  if (!e.sample_bytes) return {};
  sample_places_[number] = draw_sample_place(burst.data(), each, launch);
  return queue_.copy(*samples_.get(), number * sizeof e.sample, *copy_.get(), sample_places_[number],
                     e.sample_bytes);
}

Status Mirror::read_samples(std::span<Edit> edits, size_t each) {
  std::vector<std::byte> all(edits.size() / each * sizeof(Edit::sample));
  WEFT_CHECK(queue_.copy_out(all.data(), *samples_.get(), 0, all.size()));
  WEFT_CHECK(queue_.synchronize());
  for (size_t i = 0; i < edits.size() / each; ++i) {
    edits[i * each].sample_at = sample_places_[i];
    std::memcpy(edits[i * each].sample, all.data() + i * sizeof(Edit::sample), sizeof(Edit::sample));
  }
  return {};
}

Status Mirror::make_scratch() {
  if (scratch_) return {};
  const uint64_t most = queue_.device().capability().max_buffer;
  half_ = most ? std::min(kMostLead, most / 2) : kMostLead;
  WEFT_TRY(scratch_, queue_.device().allocate_unpooled(2 * half_));
  return {};
}

Status Mirror::touch() {
  WEFT_CHECK(make_scratch());
  for (const auto& to : {copy_, before_, snapshot_})
    WEFT_CHECK(queue_.copy_in(*to.get(), 0, original_.data(), original_.size()));
  WEFT_CHECK(queue_.copy(*scratch_.get(), half_, *scratch_.get(), 0, half_));
  WEFT_CHECK(queue_.copy(*scratch_.get(), 0, *scratch_.get(), half_, half_));
  return queue_.synchronize();
}

// Work that keeps the device busy.
Status Mirror::lead(uint64_t bytes) {
  WEFT_CHECK(make_scratch());
  for (; bytes > half_; bytes -= half_)
    WEFT_CHECK(queue_.copy(*scratch_.get(), 0, *scratch_.get(), half_, half_));
  return queue_.copy(*scratch_.get(), 0, *scratch_.get(), half_, bytes);
}

// Where the device waits for the host, its clock would count how long a launch takes to be enqueued. So it is
// kept busy until all of a burst are. Where it was not, the burst does not count: none is returned, and the
// device is as it was before.
Result<std::optional<uint64_t>> Mirror::burst(std::span<const Edit> edits, size_t each, const Launch& launch,
                                              bool cold) {
  const bool alone = edits.size() == each || lead_ == 0;
  WEFT_CHECK(queue_.copy(*before_.get(), 0, *copy_.get(), 0, original_.size()));
  if (!alone) WEFT_CHECK(lead(lead_));
  WEFT_TRY(const uint64_t led, queue_.mark());
  // Not counted: the caches have lost what it reads. A launch alone may be one that updates its operands.
  if (!cold && !alone) WEFT_CHECK(launch());
  for (size_t i = 0; i < edits.size(); i += each) {
    WEFT_CHECK(edit(edits.subspan(i, each), sampled_ * each + i));
    if (cold) WEFT_CHECK(lead(kMostLead));
    WEFT_CHECK(queue_.stamp());
    WEFT_CHECK(launch());
    WEFT_CHECK(queue_.stamp());
    WEFT_CHECK(keep_sample(edits, each, i / each, sampled_ + i / each));
  }
  // A snapshot in the queue's order: what a launch leaves running elsewhere comes too late for it.
  WEFT_CHECK(queue_.copy(*snapshot_.get(), 0, *copy_.get(), 0, original_.size()));
  WEFT_TRY(const uint64_t reached, queue_.reached());
  WEFT_TRY(const auto times, queue_.read_stamps());
  if (reached >= led && !alone) {
    WEFT_CHECK(queue_.copy(*copy_.get(), 0, *before_.get(), 0, original_.size()));
    return std::optional<uint64_t>();
  }
  uint64_t spent = 0;
  for (size_t i = 0; i + 1 < times.size(); i += 2) spent += times[i + 1] - times[i];
  return std::optional(spent);
}

Result<uint64_t> Mirror::timed_by_host(std::span<const Edit> edits, size_t each, const Launch& launch,
                                       bool cold) {
  uint64_t spent = 0;
  for (size_t i = 0; i < edits.size(); i += each) {
    WEFT_CHECK(edit(edits.subspan(i, each), sampled_ * each + i));
    if (cold) WEFT_CHECK(lead(kMostLead));
    WEFT_CHECK(queue_.synchronize());
    const auto began = std::chrono::steady_clock::now();
    WEFT_CHECK(launch());
    WEFT_CHECK(queue_.synchronize());
    spent +=
        static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
    WEFT_CHECK(keep_sample(edits, each, i / each, sampled_ + i / each));
  }
  WEFT_CHECK(queue_.copy(*snapshot_.get(), 0, *copy_.get(), 0, original_.size()));
  return spent;
}

Result<uint64_t> Mirror::run(std::span<Edit> edits, size_t each, const Launch& launch, bool cold) {
  uint64_t spent = 0;
  sampled_ = 0, sample_places_.assign(edits.size() / each, 0);
  for (size_t i = 0; i < edits.size(); ++i) {
    std::memcpy(edits_->address() + i * sizeof(Edit::value), edits[i].value, sizeof(Edit::value));
    std::memcpy(edits_->address() + (kMostLaunches + i) * sizeof(Edit::spoilt), edits[i].spoilt,
                sizeof(Edit::spoilt));
  }
  WEFT_CHECK(queue_.copy_in(*copy_.get(), 0, original_.data(), original_.size()));
  for (auto rest = edits; !rest.empty();) {
    const auto now = rest.first(std::min(burst_ * each, rest.size()));
    std::optional<uint64_t> took;
    if (queue_.has_stamps()) {
      WEFT_TRY(took, burst(now, each, launch, cold));
    } else {
      WEFT_TRY(took, timed_by_host(now, each, launch, cold));
    }
    if (took) {
      spent += *took, sampled_ += now.size() / each, rest = rest.subspan(now.size());
    } else if (lead_ < kLongestLead) {
      lead_ *= 4;
    } else if (burst_ > 2) {
      burst_ /= 2;
    } else {
      lead_ = 0;  // it waits for the device itself, and the time for which it does is its own
    }
  }
  WEFT_CHECK(queue_.copy_out(original_.data(), *snapshot_.get(), 0, original_.size()));
  WEFT_CHECK(read_samples(edits, each));
  return spent;
}

}  // namespace weft::lab

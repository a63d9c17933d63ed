#include "conformance/check.h"
#include "conformance/seam/patterns.h"
#include "conformance/seam/usual.h"

// Foreign memory as a device buffer. For a backend without imports whose memory is the host's, the host does
// it, with the same promises.
namespace weft::conformance::checks::imports_memory {
namespace {

/// Host bytes with a margin, and the device's buffer for the middle.
class Imported {
 public:
  static constexpr size_t kAround = 192;

  Imported(Rig& rig, size_t bytes, size_t offset) : bytes_(bytes), at_(kAround + offset) {
    all_.resize(at_ + bytes + kAround);
    around_.fill(all_);
    const DLTensor t{.data = all_.data(),
                     .device = {kDLCPU, 0},
                     .ndim = 0,
                     .dtype = {},
                     .shape = nullptr,
                     .strides = nullptr,
                     .byte_offset = at_};
    buffer_ = rig.device.import_memory(t, bytes, [this] { ++ended_; });
  }
  Imported(const Imported&) = delete;

  const Status& status() const { return buffer_.status(); }
  const seam::Buffer& buffer() { return *buffer_->get(); }
  std::span<std::byte> bytes() { return std::span(all_).subspan(at_, bytes_); }
  int ended() const { return ended_; }
  void let_go() { *buffer_ = seam::BufferRef(); }
  Finding beside() const {
    const std::span<const std::byte> all(all_);
    if (around_.first_wrong(all.first(at_)) || around_.first_wrong(all.subspan(at_ + bytes_), at_ + bytes_))
      return "bytes beside the imported ones have changed";
    return {};
  }

 private:
  size_t bytes_, at_;
  std::vector<std::byte> all_;
  Pattern around_{99};
  int ended_ = 0;
  Result<seam::BufferRef> buffer_ = seam::BufferRef();  // last: its deleter counts
};

/// Offsets in elements: aligned as std::vector<std::byte> allocates, and up to 63 bytes further.
constexpr size_t kOffsets[] = {0, 4, 12, 60, 64};

Found refused_or(const Imported& in, const std::function<Finding()>& look) {
  if (in.status().code() == Code::unsupported) return Found::refused(in.status().text());
  raise_if(in.status());
  return Found::wrong(look());
}

// Writes of either side are visible to the other, repeatedly.
Found seen_by_both(Rig& rig, size_t bytes, size_t offset) {
  Imported in(rig, bytes, offset);
  return refused_or(in, [&]() -> Finding {
    for (uint64_t round = 0; round < 3; ++round) {
      const Pattern of_host(2 * round), of_device(2 * round + 1);
      of_host.fill(in.bytes());
      std::vector<std::byte> got(bytes);
      raise_if(rig.queue->copy_out(got.data(), in.buffer(), 0, bytes));
      if (of_host.first_wrong(got)) return fmt::format("round {}: a write of the owner is not seen", round);
      const auto next = of_device.bytes(bytes);
      raise_if(rig.queue->copy_in(in.buffer(), 0, next.data(), bytes));
      raise_if(rig.queue->synchronize());
      if (of_device.first_wrong(in.bytes()))
        return fmt::format("round {}: the owner does not see a write", round);
    }
    return in.beside();
  });
}

// A kernel that reads it and one that writes it.
Found used_by_kernels(Rig& rig, size_t offset) {
  constexpr int64_t kN = 3000;
  Imported in(rig, kN * sizeof(float), offset), out(rig, kN * sizeof(float), offset);
  return refused_or(in, [&]() -> Finding {
    raise_if(out.status());
    const Ask ask{"add", {counting({kN}), counting({kN}, 4)}};
    const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
    auto placed = value_or_raise(rig.place(*plan, ask));
    std::memcpy(in.bytes().data(), ask.inputs[0].bytes.data(), in.bytes().size());
    weft_tensor x = *placed.c_in[0], y = *placed.c_out[0];
    x.dl.data = in.buffer().handle, y.dl.data = out.buffer().handle, x.dl.byte_offset = y.dl.byte_offset = 0;
    placed.c_in[0] = &x, placed.c_out[0] = &y;
    raise_if(rig.enqueue(*plan, placed));
    raise_if(rig.queue->synchronize());
    const auto a = numbers(ask.inputs[0]), b = numbers(ask.inputs[1]);
    for (size_t i = 0; i < kN; ++i) {
      float got = 0;
      std::memcpy(&got, &out.bytes()[i * sizeof got], sizeof got);
      if (got != a[i] + b[i]) return fmt::format("element {} is {}, wanted {}", i, got, a[i] + b[i]);
    }
    return out.beside();
  });
}

// Releasing the import leaves the bytes unchanged and calls the deleter once.
Found let_go(Rig& rig) {
  for (int i = 0; i < 20; ++i) {
    Imported in(rig, 5000, 0);
    const auto found = refused_or(in, [&]() -> Finding {
      const Pattern pattern(static_cast<uint64_t>(i));
      const auto bytes = pattern.bytes(5000);
      raise_if(rig.queue->copy_in(in.buffer(), 0, bytes.data(), bytes.size()));
      raise_if(rig.queue->synchronize());
      if (in.ended()) return "the deleter runs before the memory is released";
      in.let_go();
      if (in.ended() != 1) return fmt::format("the owner is told {} times", in.ended());
      // The next allocation must not return the owner's memory.
      const auto other = value_or_raise(rig.upload(array({1250}, {7})));
      raise_if(rig.queue->synchronize());
      if (pattern.first_wrong(in.bytes())) return "letting go has changed the bytes";
      return in.beside();
    });
    if (found.state != Found::State::passed) return found;
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const size_t offset : kOffsets) {
    run.run(fmt::format("seen by both, {} bytes on", offset),
            [&] { return seen_by_both(rig, 9004, offset); });
    run.run(fmt::format("used by kernels, {} bytes on", offset),
            [&] { return used_by_kernels(rig, offset); });
  }
  run.run("a few bytes", [&] { return seen_by_both(rig, 3, 0); });
  run.run("a few MiB", [&] { return seen_by_both(rig, 5 << 20, 0); });
  run.run("let go", [&] { return let_go(rig); });
}

}  // namespace

extern const Check check = {
    "imports_memory", "imported memory is its owner's: both sides see every write, and letting go leaves it",
    run};

}  // namespace weft::conformance::checks::imports_memory

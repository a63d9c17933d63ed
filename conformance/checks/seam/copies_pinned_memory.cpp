#include "conformance/check.h"
#include "conformance/seam/chain.h"
#include "conformance/seam/patterns.h"

// Copies to and from pinned memory are asynchronous: the host touches the memory again after a point. A
// backend without pinned memory gets plain host memory, which must work as well.
namespace weft::conformance::checks::copies_pinned_memory {
namespace {

struct Pinned {
  Pinned(Rig& rig, size_t n)
      : buffer(value_or_raise(rig.device.allocate_pinned(n))), bytes(buffer->address(), n) {
    if (reinterpret_cast<uintptr_t>(buffer->address()) % 64)
      throw Error(fail(Code::internal, "pinned memory is not aligned to 64 bytes"));
  }
  seam::BufferRef buffer;
  std::span<std::byte> bytes;
};

Status await_all(seam::Queue& queue) {
  WEFT_TRY(const uint64_t point, queue.mark());
  WEFT_TRY(const uint64_t reached, queue.await(point));
  return reached >= point ? Status() : fail(Code::internal, "point {} of {} is reached", reached, point);
}

// In and out, at offsets on both sides; bytes around stay.
Found there_and_back(Rig& rig, Random& random, size_t most) {
  for (int i = 0; i < 12; ++i) {
    const size_t n = drawn_size(random, 1, most), at = random.bits() % 200, to = random.bits() % 200;
    const auto device = value_or_raise(rig.device.allocate_unpooled(to + n + 100));
    Pinned in(rig, at + n), out(rig, n + 100);
    const Pattern pattern(random.bits()), around(random.bits());
    pattern.fill(in.bytes.subspan(at));
    around.fill(out.bytes);
    raise_if(rig.queue->copy(*device.get(), to, *in.buffer.get(), at, n));
    raise_if(rig.queue->copy(*out.buffer.get(), 50, *device.get(), to, n));
    raise_if(await_all(*rig.queue));
    if (const auto wrong = pattern.first_wrong(out.bytes.subspan(50, n)))
      return Found::wrong(fmt::format("{} bytes in and out: byte {} is another one", n, *wrong));
    if (around.first_wrong(out.bytes.first(50)) || around.first_wrong(out.bytes.subspan(50 + n), 50 + n))
      return Found::wrong(fmt::format("a copy of {} bytes out wrote beside them", n));
  }
  return {};
}

// Copies between launches, without a wait before the end.
Found among_launches(Rig& rig) {
  constexpr size_t kBytes = Chain::kElements * sizeof(float);
  constexpr int kRounds = 8;
  const auto queue = value_or_raise(rig.device.open_queue());
  std::deque<Pinned> seen;
  std::vector<double> wanted;
  Chain chain(rig, 6);
  for (int i = 0; i < kRounds; ++i) {
    chain.launch(*queue, 5);
    seen.emplace_back(rig, kBytes);
    wanted.push_back(6 + static_cast<double>(chain.launched()));
    raise_if(queue->copy(*seen.back().buffer.get(), 0, *chain.last().buffer.get(), 0, kBytes));
  }
  raise_if(await_all(*queue));
  for (size_t i = 0; i < seen.size(); ++i)
    for (size_t k = 0; k < kBytes / sizeof(float); ++k) {
      float got = 0;
      std::memcpy(&got, &seen[i].bytes[k * sizeof got], sizeof got);
      if (got != static_cast<float>(wanted[i]))
        return Found::wrong(fmt::format("a copy behind launch {} sees {} in element {}, wanted {}",
                                        5 * (i + 1), got, k, wanted[i]));
    }
  return Found::wrong(chain.wrong());
}

// A stream of pieces through a few pinned buffers, each refilled as soon as its point is reached.
Found in_pieces(Rig& rig, size_t pieces, size_t rings, size_t bytes) {
  const auto in = value_or_raise(rig.device.open_queue()), out = value_or_raise(rig.device.open_queue());
  const auto device = value_or_raise(rig.device.allocate_unpooled(pieces * bytes));
  struct Place {
    Pinned memory;
    uint64_t point = 0;
    size_t piece = 0;
  };
  std::deque<Place> from, back;
  for (size_t i = 0; i < rings; ++i)
    from.push_back({Pinned(rig, bytes)}), back.push_back({Pinned(rig, bytes)});
  Finding wrong;
  const auto look = [&](Place& place) {
    if (place.point == 0) return;
    (void)value_or_raise(out->await(place.point));
    if (const auto at = Pattern(place.piece).first_wrong(place.memory.bytes); at && wrong.empty())
      wrong = fmt::format("piece {} of {}: byte {} of {} is another one", place.piece, pieces, *at, bytes);
  };
  for (size_t i = 0; i < pieces; ++i) {
    Place &source = from[i % rings], &target = back[i % rings];
    if (source.point) (void)value_or_raise(in->await(source.point));
    Pattern(i).fill(source.memory.bytes);
    raise_if(in->copy(*device.get(), i * bytes, *source.memory.buffer.get(), 0, bytes));
    source.point = value_or_raise(in->mark());
    look(target);
    raise_if(out->wait(*in, source.point));
    raise_if(out->copy(*target.memory.buffer.get(), 0, *device.get(), i * bytes, bytes));
    target.point = value_or_raise(out->mark()), target.piece = i;
  }
  for (Place& place : back) look(place);
  raise_if(in->synchronize());
  raise_if(out->synchronize());
  return Found::wrong(wrong);
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const size_t most : {2'000, 3'000'000})
    run.run(fmt::format("drawn, up to {} bytes", most), [&] {
      Random random(run.options().seed + most);
      return there_and_back(rig, random, most);
    });
  run.run("among launches", [&] { return among_launches(rig); });
  run.run("pieces through two buffers", [&] { return in_pieces(rig, 60, 2, 4096); });
  run.run("pieces through many buffers", [&] { return in_pieces(rig, 200, 24, 1000); });
  run.run("large pieces", [&] { return in_pieces(rig, 12, 3, 1 << 20); });
}

}  // namespace

extern const Check check = {"copies_pinned_memory",
                            "copies of pinned memory keep their turn and every byte, and wait for nobody",
                            run};

}  // namespace weft::conformance::checks::copies_pinned_memory

#include <algorithm>
#include <fstream>

#include "conformance/check.h"
#include "conformance/seam/guarded.h"
#include "conformance/seam/patterns.h"
#include "conformance/seam/usual.h"

// A buffer of the largest size that the device reports, or that the machine allows: written and read at both
// ends and around the 32-bit limits, without touching the rest.
namespace weft::conformance::checks::gives_its_largest_buffer {
namespace {

// 5 GiB show everything that more would.
constexpr uint64_t kEnough = uint64_t{5} << 30;

/// Bytes of memory that are free to use; 0: unknown.
uint64_t to_be_had(const seam::Device& device) {
  if (!device.host_memory()) return device.capability().memory / 2;
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;)
    if (uint64_t kib = 0; word == "MemAvailable:" && info >> kib) return kib * 1024 / 2;
  return 0;
}

/// The written pieces of a buffer, each with its own pattern.
std::vector<uint64_t> places(uint64_t bytes, Random& random) {
  std::vector<uint64_t> all = {0, bytes - 61};
  for (const uint64_t power : {uint64_t{1} << 31, uint64_t{1} << 32})
    for (const uint64_t at : {power - 1000, power - 30, power + 500})
      if (at + 61 < bytes - 61) all.push_back(at);
  for (int i = 0; i < 6; ++i) all.push_back(random.bits() % (bytes - 61));
  std::ranges::sort(all);
  // Random pieces may overlap others.
  const auto close = [](uint64_t a, uint64_t b) { return b - a < 61; };
  all.erase(std::unique(all.begin(), all.end(), close), all.end());
  if (all.back() != bytes - 61) all.back() = bytes - 61;
  return all;
}

std::string wrong_there(Rig& rig, const seam::BufferRef& buffer, const std::vector<uint64_t>& at,
                        size_t shift) {
  std::byte got[61];
  for (size_t i = 0; i < at.size(); ++i) {
    raise_if(rig.queue->copy_out(got, *buffer.get(), at[i], sizeof got));
    if (const auto wrong = Pattern((i + shift) % at.size()).first_wrong(got))
      return fmt::format("byte {} of a buffer of {} is another one", at[i] + *wrong, buffer->bytes);
  }
  return "";
}

Found touched(Rig& rig, uint64_t bytes, Random& random) {
  const auto buffer = value_or_raise(rig.device.allocate_unpooled(bytes));
  const auto at = places(bytes, random);
  for (size_t i = 0; i < at.size(); ++i) {
    const auto piece = Pattern(i).bytes(61);
    raise_if(rig.queue->copy_in(*buffer.get(), at[i], piece.data(), piece.size()));
  }
  if (auto words = wrong_there(rig, buffer, at, 0); !words.empty()) return Found::wrong(words);
  // Then copies within the buffer: each piece gets the next one's bytes.
  const auto first = Pattern(0).bytes(61);
  for (size_t i = 0; i + 1 < at.size(); ++i)
    raise_if(rig.queue->copy(*buffer.get(), at[i], *buffer.get(), at[i + 1], first.size()));
  raise_if(rig.queue->copy_in(*buffer.get(), at.back(), first.data(), first.size()));
  return Found::wrong(wrong_there(rig, buffer, at, 1));
}

// Operands at the end of such a buffer: an offset truncated to 32 bits would be near the beginning.
Found launched_at_the_end(Rig& rig, uint64_t bytes) {
  const Ask ask{"add", {counting({40}), counting({40}, 7)}};
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const auto buffer = value_or_raise(rig.device.allocate_unpooled(bytes));
  const uint64_t step = std::max<uint64_t>(256, rig.device.capability().offset_alignment),
                 end = bytes / step * step - 4 * step;
  const auto& type = ask.inputs[0].type;
  std::deque<weft_tensor> tensors;
  for (uint64_t i = 0; i < 3; ++i)
    tensors.push_back(
        tensor_at(static_cast<std::byte*>(buffer->handle), type, rig.device.dl(), end + i * step));
  for (size_t i = 0; i < 2; ++i)
    raise_if(rig.queue->copy_in(*buffer.get(), tensors[i].dl.byte_offset, ask.inputs[i].bytes.data(),
                                type.bytes()));
  const auto workspace = value_or_raise(rig.workspace(plan->plan));
  const weft_tensor *in[] = {&tensors[0], &tensors[1]}, *out[] = {&tensors[2]};
  raise_if(seam::launch(*plan, *rig.queue, in, out, workspace ? &workspace->c : nullptr));
  raise_if(rig.queue->synchronize());
  HostTensor got{type, std::vector<std::byte>(type.bytes())};
  raise_if(rig.queue->copy_out(got.bytes.data(), *buffer.get(), tensors[2].dl.byte_offset, type.bytes()));
  const auto v = numbers(got), a = numbers(ask.inputs[0]), b = numbers(ask.inputs[1]);
  for (size_t i = 0; i < v.size(); ++i)
    if (v[i] != a[i] + b[i])
      return Found::wrong(
          fmt::format("a launch at byte {}: element {} is {}, wanted {}", end, i, v[i], a[i] + b[i]));
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const uint64_t claimed = rig.device.capability().max_buffer, had = to_be_had(rig.device);
  const uint64_t bytes = std::min({claimed ? claimed : kEnough, had ? had : kEnough, kEnough});
  run.run("max_buffer", [&] {
    if (claimed == 0) return Found::skipped("the device does not say how large a buffer may be");
    if (claimed <= bytes) return Found();
    return Found::skipped(fmt::format("it is {} bytes, of which {} are tried", claimed, bytes));
  });
  run.run("both ends, and where 32 bits end", [&] {
    Random random(run.options().seed);
    return touched(rig, bytes, random);
  });
  run.run("a launch at its end", [&] { return launched_at_the_end(rig, bytes); });
}

}  // namespace

extern const Check check = {"gives_its_largest_buffer",
                            "the largest buffer that is promised is there, up to its last byte", run};

}  // namespace weft::conformance::checks::gives_its_largest_buffer

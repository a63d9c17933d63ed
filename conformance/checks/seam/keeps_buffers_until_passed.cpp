#include "conformance/check.h"
#include "conformance/seam/usual.h"
#include "weft/ops.h"

namespace weft::conformance::checks::keeps_buffers_until_passed {
namespace {

// Eager code drops operands while their launches wait; the pool may free them to make room for another size.
Found dropped_operands(seam::Device& device) {
  const OnBackend on(device.name());
  const uint64_t most = device.capability().max_buffer;
  const auto bytes = std::min<uint64_t>(most ? most * 4 / 5 : UINT64_MAX, 32 << 20);
  const auto n = static_cast<int64_t>(bytes / sizeof(float));
  std::vector<Tensor> large, small;
  const std::vector<std::byte> zeros(static_cast<size_t>(n) * sizeof(float));
  for (int i = 0; i < 4; ++i) {
    const int64_t shape[] = {n};
    large.push_back(Tensor::from_bytes(zeros, shape, DType::f32));
  }
  for (int round = 0; round < 40; ++round)
    for (const auto& t : large) small.push_back(slice(t, 0, Dim(round), Dim(round + 4)));
  large.clear();
  const Tensor other = full(0, {n * 5 / 4});
  Finding finding;
  for (const auto& t : small)
    if (t.to_vector<float>() != std::vector<float>(4)) finding = "an operand was reused before it was read";
  device.trim();
  return Found::wrong(finding);
}

void run(CheckRun& run) {
  run.run("eager operands",
          [&] { return dropped_operands(*value_or_raise(seam::registry().open(run.backend()))); });
}

}  // namespace

extern const Check check = {"keeps_buffers_until_passed",
                            "memory of a launch that waits is not given to another", run};

}  // namespace weft::conformance::checks::keeps_buffers_until_passed

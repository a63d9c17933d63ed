#include "conformance/check.h"
#include "conformance/seam/patterns.h"
#include "conformance/seam/usual.h"

// A device opened a second time and closed, and the other devices of its backend. Each has its own memory and
// queues, and does not affect the others.
namespace weft::conformance::checks::opens_again {
namespace {

Finding works(Rig& rig, const char* what) {
  for (const Ask& ask : usual_calls())
    if (auto words = differs(rig, ask, what); !words.empty()) return words;
  return {};
}

/// Memory on two devices in turn, while both work.
Finding side_by_side(Rig& a, Rig& b) {
  std::vector<Held> on_a, on_b;
  for (size_t i = 0; i < 12; ++i) {
    const size_t bytes = 1 + (i * i * i * 997) % 300'000;
    on_a.push_back(hold(a, bytes, 2 * i)), on_b.push_back(hold(b, bytes, 2 * i + 1));
  }
  if (auto words = works(a, "beside another device"); !words.empty()) return words;
  if (auto words = works(b, "beside another device"); !words.empty()) return words;
  for (const auto& [rig, all] : {std::pair{&a, &on_a}, {&b, &on_b}})
    for (const Held& one : *all)
      if (auto words = spoilt(*rig, one); !words.empty()) return words + ", beside another device";
  return {};
}

Found beside_itself(const std::string& backend) {
  Rig first(backend);
  for (int round = 0; round < 4; ++round) {
    const auto again = value_or_raise(seam::registry().open_again(backend));
    const auto &a = first.device.capability(), &b = again->capability();
    if (a.dtypes != b.dtypes || a.max_buffer != b.max_buffer || a.queue_kind != b.queue_kind ||
        a.host_memory != b.host_memory || a.offset_alignment != b.offset_alignment)
      return Found::wrong("opened again, it says something else of what it can do");
    if (again->sources.size() != first.device.sources.size() ||
        again->sources[0].kernels.size() != first.device.sources[0].kernels.size())
      return Found::wrong("opened again, it has other kernels");
    Rig second(*again);
    if (auto words = side_by_side(first, second); !words.empty()) return Found::wrong(words);
  }
  return Found::wrong(works(first, "after another handle of the device was closed"));
}

Found open_and_close(const std::string& backend) {
  Rig first(backend);
  for (int i = 0; i < 30; ++i) {
    const auto again = value_or_raise(seam::registry().open_again(backend));
    const auto queue = value_or_raise(again->open_queue());
    raise_if(queue->synchronize());
  }
  return Found::wrong(works(first, "after 30 handles of the device were closed"));
}

Found beside_others(const std::string& backend) {
  Rig own(backend);
  const std::string name = own.device.backend().name;
  std::vector<std::unique_ptr<Rig>> others;
  for (const auto& d : get_backend_info(name).devices)
    if (d.name != backend) others.push_back(std::make_unique<Rig>(d.name));
  if (others.empty()) return Found::skipped(name + " has one device");
  for (const auto& other : others)
    if (auto words = side_by_side(own, *other); !words.empty())
      return Found::wrong(fmt::format("beside {}: {}", other->device.name(), words));
  return {};
}

void run(CheckRun& run) {
  run.run("beside itself", [&] { return beside_itself(run.backend()); });
  run.run("30 times", [&] { return open_and_close(run.backend()); });
  run.run("beside the other devices of its backend", [&] { return beside_others(run.backend()); });
}

}  // namespace

extern const Check check = {
    "opens_again", "a device can be opened, used and closed beside itself and its backend's others", run};

}  // namespace weft::conformance::checks::opens_again

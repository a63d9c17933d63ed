#include <cstring>
#include <map>

#include "conformance/liars/liar.h"
#include "conformance/seam/rig.h"
#include "seam/registry.h"

namespace weft::conformance {

static uint64_t seed = 1;
void seed_liars(uint64_t drawn) { seed = drawn; }
Random drawn_for(const std::string& liar) {
  return Random(seed * 0x9e3779b97f4a7c15 ^ std::hash<std::string>()(liar));
}

const Wrapped& wake(const Liar& liar, const std::string& good) {
  static std::map<std::pair<std::string, std::string>, const Wrapped*> awake;  // by liar and good backend
  const Wrapped*& known = awake[{liar.name, good}];
  if (known) return *known;
  const auto& device = *value_or_raise(seam::registry().open(good));
  std::string own = liar.name;
  if (good != liar.on) own += fmt::format("_on_{}", device.backend().name);
  Wrapped& made = *liar.make(own.c_str(), device.backend());
  made.take_generated();
  adopt(made);
  return *(known = &made);
}

// ---- what faults need of a good device

const char* lacks_host_memory(seam::Device& good) {
  return good.host_memory() ? nullptr : "a handle is no address there, and reads leave no trace";
}
const char* lacks_an_inline_queue(seam::Device& good) {
  return good.ordered() ? "its queues may run later" : nullptr;
}
const char* lacks_an_ordered_queue(seam::Device& good) {
  return good.ordered() ? nullptr : "its queues are inline: nothing is left to wait for";
}
const char* lacks_a_compiler(seam::Device& good) {
  return good.capability().dialect[0] ? nullptr : "it compiles no text";
}
const char* lacks_imports(seam::Device& good) {
  return good.backend().import_memory ? nullptr : "it imports no memory";
}
const char* lacks_points(seam::Device& good) {
  return good.backend().mark ? lacks_an_ordered_queue(good) : "its queues have no points";
}
const char* lacks_pinned_memory(seam::Device& good) {
  return good.backend().allocate_pinned ? lacks_an_ordered_queue(good) : "it has no pinned memory";
}
const char* lacks_errors_of_kernels(seam::Device& good) {
  if (good.capability().dialect[0]) return "text cannot raise: a wild index gives NaN there";
  Rig rig(good);
  const auto wild = array({1, 4}, {70}, DType::i64);
  const bool raises =
      !rig.run({"gather", {counting({4}), wild}}).ok() &&
      !rig.run({"scatter_add", {counting({3, 1, 8192}), wild, counting({1, 4, 1, 8192})}}).ok();
  return raises ? nullptr : "a wild index is no error of each of its kernels";
}
const char* lacks_large_buffers(seam::Device& good) {
  constexpr uint64_t kLarge = uint64_t{5} << 30;
  const uint64_t most = good.capability().max_buffer;
  return most && most < kLarge ? "its buffers have less than 5 GiB" : nullptr;
}
const char* lacks_kernel_of(seam::Device& good, const char* op) {
  for (const auto& source : good.sources)
    for (const weft_kernel* k : source.kernels)
      if (std::strcmp(k->op, op) == 0) return nullptr;
  return "it has no kernel of this op";
}

}  // namespace weft::conformance

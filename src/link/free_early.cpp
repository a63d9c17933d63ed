#include <algorithm>

#include "link/share.h"

namespace weft::link {
namespace {

// Runs calls that reduce the memory in use before other ready calls. Calls only move to an earlier place, and
// those that overwrite anything do not move, so every call reads the same values as before.
class EarlyFreeing {
 public:
  EarlyFreeing(const program::CompiledProgram& program, const FlatProgram& flat)
      : flat_(flat),
        flow_(program, flat),
        left_(flat.values.size(), 0),
        readers_(flat.values.size()),
        missing_(flat.calls.size(), 0),
        taken_(flat.calls.size(), false) {
    for (uint32_t i = 0; i < flat.calls.size(); ++i)
      for (const int32_t v : roots_of(i)) {
        readers_[static_cast<size_t>(v)].push_back(i), ++left_[static_cast<size_t>(v)];
        missing_[i] += flow_.of(v).maker >= 0;
      }
  }

  std::vector<uint32_t> run() {
    for (uint32_t i = 0; i < flat_.calls.size(); ++i)
      if (!taken_[i]) take_with_followers(i);
    return std::move(order_);
  }

 private:
  const FlatValue& value(int32_t id) const { return flat_.values[static_cast<size_t>(id)]; }

  // The values that call i reads, each once.
  std::vector<int32_t> roots_of(uint32_t i) const {
    std::vector<int32_t> roots;
    for (const int32_t v : flat_.calls[i].inputs)
      if (v >= 0) roots.push_back(flow_.root(v));
    std::ranges::sort(roots);
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    return roots;
  }

  void take_with_followers(uint32_t first) {
    std::vector<uint32_t> next = {first};
    while (!next.empty()) {
      const uint32_t i = next.back();
      next.pop_back();
      if (taken_[i]) continue;
      if (i != first && !gains(i)) continue;
      take(i, next);
    }
  }
  void take(uint32_t i, std::vector<uint32_t>& next) {
    taken_[i] = true, order_.push_back(i);
    for (const int32_t v : flat_.calls[i].outputs) {
      if (flow_.of(v).maker != static_cast<int64_t>(i)) continue;
      for (const uint32_t reader : readers_[static_cast<size_t>(flow_.root(v))]) {
        --missing_[reader];
        next.push_back(reader);
      }
    }
    for (const int32_t v : roots_of(i))
      if (--left_[static_cast<size_t>(v)] == 1)
        for (const uint32_t reader : readers_[static_cast<size_t>(v)])
          if (!taken_[reader]) next.push_back(reader);
  }

  // Is it ready, and does it free more than it takes?
  bool gains(uint32_t i) const {
    const FlatCall& call = flat_.calls[i];
    if (!call.prepared || missing_[i] > 0 || !call.prepared->call->desc().updates.empty()) return false;
    uint64_t made = 0, freed = 0;
    for (const int32_t v : call.outputs) {
      if (value(v).over >= 0 || value(v).overwritten || value(v).view_of >= 0) return false;
      made += value(v).type.bytes();
    }
    for (const int32_t v : roots_of(i))
      if (left_[static_cast<size_t>(v)] == 1 && flow_.is_own(v) && flow_.of(v).last != Flow::kEnd)
        freed += value(v).type.bytes();
    return freed > made;
  }

  const FlatProgram& flat_;
  const Flow flow_;
  std::vector<size_t> left_;                    // by value: calls that will read it
  std::vector<std::vector<uint32_t>> readers_;  // by value
  std::vector<size_t> missing_;                 // by call: values that it reads and that are not made
  std::vector<bool> taken_;
  std::vector<uint32_t> order_;
};

}  // namespace

std::vector<uint32_t> free_early(const program::CompiledProgram& program, FlatProgram& flat,
                                 const std::vector<uint32_t>* known) {
  std::vector<uint32_t> order = known ? *known : EarlyFreeing(program, flat).run();
  if (order.size() != flat.calls.size()) return {};
  std::vector<FlatCall> calls;
  calls.reserve(order.size());
  for (const uint32_t i : order) calls.push_back(std::move(flat.calls[i]));
  flat.calls = std::move(calls);
  return order;
}

}  // namespace weft::link

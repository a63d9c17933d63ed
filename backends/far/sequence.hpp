#pragma once
#include <memory>
#include <random>
#include <span>

#include "weft/backend.hpp"

// Recorded steps. Each run has its own memory and picks its own order.
namespace far {

class Sequence {
 public:
  struct Step {
    std::unique_ptr<weft::backend::LaunchCopy> launch;  // null for a copy
    weft_copy copy{};
    std::vector<uint32_t> after;

    weft::backend::LaunchCopy bound_launch(std::span<void* const> handles) const {
      return {launch->get(), [&](const weft_tensor& t) { return bound(t.binding, t.dl.data, handles); }};
    }
    weft_copy bound_copy(std::span<void* const> handles) const {
      weft_copy c = copy;
      c.source = bound(c.source_binding, c.source, handles);
      c.target = bound(c.target_binding, c.target, handles);
      return c;
    }
  };

  explicit Sequence(const weft_sequence_desc* desc) {
    for (uint32_t i = 0; i < desc->n_steps; ++i) {
      const weft_sequence_step& from = *desc->steps[i];
      Step& step = steps_.emplace_back();
      step.after.assign(from.after, from.after + from.n_after);
      if (from.copy)
        step.copy = *from.copy;
      else
        step.launch = std::make_unique<weft::backend::LaunchCopy>(
            from.launch, [](const weft_tensor& t) { return t.dl.data; });
    }
  }

  const std::vector<Step>& steps() const { return steps_; }

  /// All steps in random order, each after those that it depends on.
  std::vector<size_t> any_order() const {
    static thread_local std::mt19937 random(5489u);
    std::vector<size_t> waits(steps_.size()), ready, order;
    std::vector<std::vector<size_t>> followers(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      waits[i] = steps_[i].after.size();
      for (const uint32_t earlier : steps_[i].after) followers[earlier].push_back(i);
      if (waits[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      std::swap(ready[random() % ready.size()], ready.back());
      const size_t i = ready.back();
      ready.pop_back();
      order.push_back(i);
      for (const size_t next : followers[i])
        if (--waits[next] == 0) ready.push_back(next);
    }
    return order;
  }

 private:
  static void* bound(uint32_t binding, void* fixed, std::span<void* const> handles) {
    return binding ? handles[binding - 1] : fixed;
  }
  std::vector<Step> steps_;
};

}  // namespace far

#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime.hpp"

// What streams that are captured record: work, and what it waits for.
namespace weft::gpu {

struct Work {
  std::function<void()> run;
  std::function<void()> begin = nullptr;  ///< of a kernel: what it does before the kernel before it ends
};

struct CapturedGraph {
  struct Node {
    Work work;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
  bool ended = false;  ///< the capture

  size_t add(Work work, std::vector<size_t> after) {
    nodes.push_back({std::move(work), std::move(after)});
    return nodes.size() - 1;
  }

  /// Whether each node is one of these, or comes before one.
  bool all_before(const std::vector<size_t>& last) const {
    std::vector<bool> reached(nodes.size());
    for (const size_t i : last) reached[i] = true;
    for (size_t i = nodes.size(); i-- > 0;)
      if (reached[i])
        for (const size_t earlier : nodes[i].after) reached[earlier] = true;
    return std::ranges::find(reached, false) == reached.end();
  }

  /// A kernel begins while the one that it waits for runs, if it waits for nothing else.
  void begin_next(const std::vector<size_t>& behind) const {
    for (const size_t next : behind)
      if (nodes[next].work.begin && nodes[next].after.size() == 1) nodes[next].work.begin();
  }

  /// Each node after those that it waits for; which of those that may be next is drawn.
  void run(uint64_t& random) const {
    std::vector<size_t> waits_for(nodes.size()), ready;
    std::vector<std::vector<size_t>> behind(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      waits_for[i] = nodes[i].after.size();
      for (const size_t earlier : nodes[i].after) behind[earlier].push_back(i);
      if (waits_for[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      std::swap(ready[(random >> 33) % ready.size()], ready.back());
      const size_t i = ready.back();
      ready.pop_back();
      if (nodes[i].work.begin) begin_next(behind[i]);
      nodes[i].work.run();
      for (const size_t next : behind[i])
        if (--waits_for[next] == 0) ready.push_back(next);
    }
  }
};

}  // namespace weft::gpu

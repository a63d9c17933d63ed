#pragma once
#include "peers.h"

namespace weft::speed {

/// One thing to do, by us and by whoever else can. Operands are made when it is a case's turn.
struct Case {
  std::string group, name;
  std::function<Task()> ours;
  std::function<std::vector<PeerTask>()> peers;
  double flops = 0;
};

/// Cases with one promise: the geometric mean of peer's time over ours, and the least of them.
struct Group {
  std::string name;
  int threads = 1;
  double reach = 1, each = 0;
  std::vector<Case> cases;
};
std::vector<Group> all_groups();
/// Small GPTs that make up text.
Group generations(int threads);

}  // namespace weft::speed

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

/// A number beside what it may be at most: bytes.
struct Amount {
  std::string name;
  double ours = 0, limit = 0;
  std::string limit_is;
  double at_most = 1;  ///< of ours / limit
};

/// Cases with one promise: the geometric mean of peer's time over ours, and the least of them; or, where the
/// cases are ways to one result, the best of them.
struct Group {
  std::string name;
  int threads = 1;
  double reach = 1, each = 0;
  std::vector<Case> cases;
  bool best_counts = false;
  std::function<std::vector<Amount>()> amounts;  ///< in place of cases
};
std::vector<Group> all_groups();
/// Small GPTs that make up text.
Group generations(int threads);
/// Steps of training: models whose losses are compared from the same weights on.
std::vector<Group> training_groups(int threads);

}  // namespace weft::speed

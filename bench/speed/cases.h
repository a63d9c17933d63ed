#pragma once
#include <nlohmann/json_fwd.hpp>

#include "peers.h"
#include "weft/tensor.h"

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
  bool by_level = false;  ///< each case beside itself at every level of determinism: prices, no promise
  double round = 0.05;    ///< seconds
  /// Measures and prints, in place of cases; how much is short.
  int (*print)(const Group&, nlohmann::json& out) = nullptr;
};

using Operands = std::vector<Operand>;
using Op = std::function<Tensor(const std::vector<Tensor>&)>;
/// An op that a peer may have under the name `peer_op`. The same operands for both; made once, when the case
/// begins.
Case compared(std::string name, const std::string& peer_op, std::function<Operands()> make, Op op,
              double flops = 0, std::vector<double> numbers = {});
/// c[m, n] = a[m, k] b[k, n] in f32.
Case product(int64_t m, int64_t n, int64_t k);

std::vector<Group> all_groups();
/// Small GPTs that make up text.
Group generations(int threads);
/// A GPT in bf16 and f16 beside itself in f32.
Group generation_in_halves(int threads);
/// Steps of training: models whose losses are compared from the same weights on.
std::vector<Group> training_groups(int threads);
/// A step of training of the smaller GPT, eager and compiled.
std::vector<Case> small_training_steps();

/// Products whose sizes no tile divides.
Group odd_products(int threads);
/// Ops of every kind at sizes of every order, beside the same on one thread.
Group worth_of_threads(int threads);

/// What it costs to ask for a level of determinism.
Group determinism_prices(int threads);
/// Kernels rendered for a device beside the same algorithm written by hand in its language.
Group written_by_hand(int threads);
/// Kernels of rows beside a copy of as many bytes.
Group rows_beside_copies(int threads);
/// Kernels and copies on two queues, drawn as a timeline: no peer, no promise.
Group overlap(int threads);
int print_overlap(const Group& group, nlohmann::json& out);
/// A program of small calls as a sequence of its device: no peer, no promise.
Group sequences(int threads);
int print_sequences(const Group& group, nlohmann::json& out);
/// Linear layers with weights that were packed once: no peer, no promise.
Group packing(int threads);
int print_packing(const Group& group, nlohmann::json& out);
/// Prints the time of each case at each level over that without a demand; how many gave another result.
int print_prices(const Group& group, nlohmann::json& out);

}  // namespace weft::speed

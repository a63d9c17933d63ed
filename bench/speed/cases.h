#pragma once
#include <nlohmann/json_fwd.hpp>

#include "peers.h"
#include "weft/tensor.h"

namespace weft::speed {

/// One task, for Weft and for peers that can do it. Operands are created when the case runs.
struct Case {
  std::string group, name;
  std::function<Task()> ours;
  std::function<std::vector<PeerTask>()> peers;
  double flops = 0;
};

/// An amount of bytes and its limit.
struct Amount {
  std::string name;
  double ours = 0, limit = 0;
  std::string limit_is;
  double at_most = 1;  ///< of ours / limit
};

/// Cases with a common goal: the geometric mean of peer's time over ours, and the least of them; or, if the
/// cases are alternatives, the best of them.
struct Group {
  std::string name;
  int threads = 1;
  double reach = 1, each = 0;
  std::vector<Case> cases;
  bool best_counts = false;
  std::function<std::vector<Amount>()> amounts;  ///< in place of cases
  bool by_level = false;  ///< each case beside itself at every level of determinism: prices, no promise
  double round = 0.05;    ///< seconds
  /// Measures and prints, instead of cases; returns the number of missed goals.
  int (*print)(const Group&, nlohmann::json& out) = nullptr;
};

using Operands = std::vector<Operand>;
using Op = std::function<Tensor(const std::vector<Tensor>&)>;
/// An op that a peer may have as `peer_op`. Both get the same operands, created once when the case begins.
Case compared(std::string name, const std::string& peer_op, std::function<Operands()> make, Op op,
              double flops = 0, std::vector<double> numbers = {});
/// c[m, n] = a[m, k] b[k, n] in f32.
Case product(int64_t m, int64_t n, int64_t k);

std::vector<Group> all_groups();
/// Small GPTs that generate text.
Group generations(int threads);
/// A GPT in bf16 and f16 against itself in f32.
Group generation_in_halves(int threads);
/// Training steps; losses from the same initial weights are compared.
std::vector<Group> training_groups(int threads);
/// A step of training of the smaller GPT, eager and compiled.
std::vector<Case> small_training_steps();

/// Products whose sizes no tile divides.
Group odd_products(int threads);
/// Ops of every kind at sizes of every magnitude, against the same on one thread.
Group worth_of_threads(int threads);

/// The cost of each level of determinism.
Group determinism_prices(int threads);
/// Kernels rendered for a device against the same algorithm written by hand in its language.
Group written_by_hand(int threads);
/// Row kernels against a copy of as many bytes.
Group rows_beside_copies(int threads);
/// Kernels and copies on two queues, drawn as a timeline: no peer, no goal.
Group overlap(int threads);
int print_overlap(const Group& group, nlohmann::json& out);
/// A program of small calls as a sequence of its device: no peer, no goal.
Group sequences(int threads);
int print_sequences(const Group& group, nlohmann::json& out);
/// Linear layers with packed weights: no peer, no goal.
Group packing(int threads);
int print_packing(const Group& group, nlohmann::json& out);
/// Prints the time of each case at each level relative to no demand; returns the number of differing results.
int print_prices(const Group& group, nlohmann::json& out);

}  // namespace weft::speed

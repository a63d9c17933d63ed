#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <span>

#include "base/thread_pool.h"
#include "cases.h"
#include "lab/results/limits.h"
#include "weft/backends.h"

// weft_speed: Weft against other libraries, alternating in one run. `scripts/bench speed` builds what it
// needs and runs it.
namespace weft::speed {
namespace {

struct Row {
  std::string group, name, peer;
  Measured m;
  double limit_share = 0;  // of the machine's peak
};

Row run(const Case& c, double peak, double round) {
  Row row{c.group, c.name, "", {}, 0};
  double best = 0;
  std::vector<PeerTask> peers = c.peers();
  // The fastest peer in a short trial is the one to compare with.
  const PeerTask* chosen = nullptr;
  for (const auto& p : peers) {
    const double t = time_of(p.task, 0.02, 3);
    if (!chosen || t < best) chosen = &p, best = t;
  }
  const Task ours = c.ours();
  if (chosen) {
    row.peer = chosen->library;
    row.m = measure(ours, chosen->task, round);
  } else {
    row.m.ours = time_of(ours);
  }
  if (c.flops > 0) row.limit_share = c.flops / row.m.ours / peak;
  return row;
}

std::string seconds(double t) {
  if (t < 1e-6) return fmt::format("{:.0f} ns", t * 1e9);
  if (t < 1e-3) return fmt::format("{:.1f} us", t * 1e6);
  return fmt::format("{:.2f} ms", t * 1e3);
}

void print(const Row& r) {
  fmt::print("{:<34} {:>10} {:>10}  {:<9} {:>6.2f} [{:.2f}, {:.2f}]{}{}\n", r.name, seconds(r.m.ours),
             seconds(r.m.peer), r.peer, r.m.ratio, r.m.low, r.m.high,
             r.limit_share > 0 ? fmt::format("  {:.0f}% of peak", 100 * r.limit_share) : "",
             r.m.difference > 1e-3 ? fmt::format("  DIFFERS by {:.1e}", r.m.difference) : "");
}

// Amounts of bytes and their limits.
int print_amounts(const Group& group, nlohmann::json& out) {
  int over = 0;
  fmt::print("\n{}, {} threads\n", group.name, group.threads);
  for (const Amount& a : group.amounts()) {
    const double share = a.ours / a.limit;
    over += !(share <= a.at_most);
    fmt::print("{:<34} {:>7.2f} MB {:>7.2f} MB  {:<22} {:>6.3f}  (at most {:.2f}) {}\n", a.name,
               a.ours * 1e-6, a.limit * 1e-6, a.limit_is, share, a.at_most, share <= a.at_most ? "" : "OVER");
    out.push_back({{"group", group.name},
                   {"case", a.name},
                   {"peer", a.limit_is},
                   {"ours_bytes", a.ours},
                   {"peer_bytes", a.limit},
                   {"share", share}});
  }
  return over;
}

/// Each case against its best peer, and the group's goals.
int print_ratios(const Group& group, nlohmann::json& out) {
  const double peak = lab::peak_flops(group.threads).value();
  fmt::print("\n{}, {} thread{}: peak {:.0f} Gflop/s\n", group.name, group.threads,
             group.threads > 1 ? "s" : "", peak * 1e-9);
  fmt::print("{:<34} {:>10} {:>10}  {:<9} {:>6}\n", "", "ours", "peer", "", "ratio, quartiles");
  int failed = 0;
  std::vector<double> ratios;
  for (const auto& c : group.cases) {
    const Row r = run(c, peak, group.round);
    print(r);
    std::fflush(stdout);
    if (r.peer.empty()) continue;
    ratios.push_back(r.m.ratio);
    if (r.m.difference > 1e-3) ++failed;
    out.push_back({{"group", group.name},
                   {"threads", group.threads},
                   {"case", c.name},
                   {"peer", r.peer},
                   {"ours_s", r.m.ours},
                   {"peer_s", r.m.peer},
                   {"ratio", r.m.ratio},
                   {"low", r.m.low},
                   {"high", r.m.high},
                   {"share_of_peak", r.limit_share},
                   {"difference", r.m.difference}});
  }
  if (ratios.empty()) return failed;
  const double least = *std::min_element(ratios.begin(), ratios.end()),
               mean = group.best_counts ? *std::max_element(ratios.begin(), ratios.end())
                                        : geometric_mean(ratios);
  const bool good = mean >= group.reach && least >= group.each;
  fmt::print("{:<34} {:>40.2f}  (reach {:.2f}{}) {}\n",
             group.best_counts ? "the best of them" : "geometric mean", mean, group.reach,
             group.each > 0 ? fmt::format(", each {:.2f}, least {:.2f}", group.each, least) : "",
             good ? "" : "SHORT");
  return failed + !good;
}

/// The groups whose names contain one of the words; all groups without words. If a word matches no name:
/// none, and an error on stderr.
std::vector<Group> groups_named(std::span<char* const> words) {
  std::vector<Group> all = all_groups();
  const auto has = [](const Group& g, const char* word) { return g.name.find(word) != std::string::npos; };
  for (const char* word : words)
    if (std::ranges::none_of(all, [&](const Group& g) { return has(g, word); })) {
      fmt::print(stderr, "weft_speed: '{}' is in the name of no group; there are\n", word);
      for (const Group& g : all) fmt::print(stderr, "  {}, threads {}\n", g.name, g.threads);
      return {};
    }
  if (!words.empty())
    std::erase_if(all, [&](const Group& g) {
      return std::ranges::none_of(words, [&](const char* word) { return has(g, word); });
    });
  return all;
}

int go(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: weft_speed PEER_FOLDER JSON_FILE [GROUP...]\n");
    return 2;
  }
  set_default_backend("native");
  const auto groups = groups_named(std::span(argv, static_cast<size_t>(argc)).subspan(3));
  if (groups.empty()) return 2;
  fmt::print("ours: {}\n", get_backend_info("native").devices.at(0).label);
  open_peers(argv[1]);
  nlohmann::json out = nlohmann::json::array();
  int failed = 0;
  for (const auto& group : groups) {
    set_thread_count(group.threads);
    set_peer_threads(group.threads);
    failed += group.print      ? group.print(group, out)
              : group.amounts  ? print_amounts(group, out)
              : group.by_level ? print_prices(group, out)
                               : print_ratios(group, out);
  }
  std::ofstream(argv[2]) << out.dump(1) << "\n";
  fmt::print("\n{}\n", failed ? fmt::format("{} short", failed) : "all reached");
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace weft::speed

int main(int argc, char** argv) { return weft::speed::go(argc, argv); }

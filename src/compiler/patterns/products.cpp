#include <algorithm>

#include "compiler/pattern.h"
#include "compiler/units.h"

// Products and their companions become one call: products with the same left factor, such as query, key and
// value of attention, and an elementwise call that reads a product and has its shape. A device that compiles
// text makes few kernels of it; others run the calls one by one. So do a convolution and the bias, residual
// and activation that follow it.
namespace weft::compiler {
namespace {

constexpr size_t kCompanions = 24;  // calls after a product in which companions are searched
constexpr size_t kMostCalls = 6;    // of a group

class Grouper {
 public:
  explicit Grouper(const Module& m) : units_(m) {
    for (size_t u = 0; u < units_.size(); ++u) taken_.push_back(units_[u].taken);
  }

  std::vector<Group> run() {
    std::vector<Group> groups;
    for (size_t u = 0; u < units_.size(); ++u) {
      if (taken_[u] || !(is_product(u) || is_conv(u))) continue;
      const auto members = grow(u);
      if (members.size() < 2) continue;
      Group group;
      for (const size_t m : members) {
        taken_[m] = true;
        group.places.push_back(units_[m].place);
        group.name += (group.name.empty() ? "" : "_") + std::string(units_[m].name);
      }
      groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  bool is(size_t u, std::string_view op) const { return !units_[u].chain && op == units_[u].name; }
  bool is_product(size_t u) const { return is(u, "linear") || is(u, "matmul"); }
  bool is_conv(size_t u) const { return is(u, "conv") || is(u, "conv_channels_last"); }
  int32_t left_factor(size_t u) const { return units_.node(u).inputs[0]; }

  std::vector<size_t> grow(size_t first) const {
    std::vector<size_t> members = {first};
    const size_t end = std::min(units_.size(), first + kCompanions);
    const auto join = [&](size_t u) {
      if (taken_[u] || members.size() == kMostCalls) return;
      members.push_back(u);
      if (!units_.may_be_one(members)) members.pop_back();
    };
    for (size_t u = first + 1; u < end; ++u)
      if (is_product(first) && is_product(u) && left_factor(u) == left_factor(first) &&
          units_.result(u) == units_.result(first))
        join(u);
    for (size_t u = members.back() + 1; u < end; ++u)
      if (units_[u].elementwise && reads(u, members) && units_.result(u).shape == units_.result(first).shape)
        join(u);
    return members;
  }
  bool reads(size_t u, const std::vector<size_t>& members) const {
    return std::ranges::any_of(members, [&](size_t m) {
      return std::ranges::any_of(units_[m].outputs, [&](int32_t id) { return units_[u].inputs.count(id); });
    });
  }

  const Units units_;
  std::vector<bool> taken_;  // by unit
};

}  // namespace

Status group_products(Module& m, const Options& options) {
  static constexpr Pattern pattern = {"group_products", Claim::products,
                                      [](const Module& now) { return Grouper(now).run(); }};
  return apply(pattern, m, options);
}

}  // namespace weft::compiler

#include <algorithm>
#include <set>

#include "compiler/pattern.h"
#include "compiler/units.h"

// An elementwise call and the norm or softmax that reads its result become one call: the residual of a layer
// and the norm of the next one, a mask and the softmax of what it leaves. A device that compiles text makes
// one kernel of it. Kernels of add_rms_norm(a, b, weight) and add_layer_norm(a, b, weight, bias) find each
// operand by its place and epsilon among the call's attributes, so operands are distinct, and a bias stands
// behind a weight. The results are those of the first call that something else reads, then the norm.
namespace weft::compiler {
namespace {

class RowGrouper {
 public:
  explicit RowGrouper(const Module& m) : units_(m) {
    for (size_t u = 0; u < units_.size(); ++u)
      if (units_[u].taken) taken_.insert(u);
  }

  std::vector<Group> run() {
    std::vector<Group> groups;
    for (size_t u = 0; u < units_.size(); ++u) {
      const size_t before = before_rows(u);
      if (before == units_.size()) continue;
      taken_.insert({before, u});
      groups.push_back({fmt::format("{}_{}", units_[before].name, units_[u].name),
                        {units_[before].place, units_[u].place},
                        true});
    }
    return groups;
  }

 private:
  bool is_free(size_t u) const { return taken_.count(u) == 0; }
  // The call that becomes one with u at its place; size() for none.
  size_t before_rows(size_t u) const {
    const size_t none = units_.size();
    const std::string_view op = units_[u].name;
    if (units_[u].chain || !is_free(u) || !(op == "softmax" || op == "rms_norm" || op == "layer_norm"))
      return none;
    const ir::Node& rows = units_.node(u);
    const size_t before = units_.maker(rows.inputs[0]);
    if (before == none || !units_[before].elementwise || !is_free(before)) return none;
    const std::array members = {before, u};
    return operands_have_places(units_.node(before), rows) && units_.may_be_one(members) ? before : none;
  }
  static bool operands_have_places(const ir::Node& before, const ir::Node& rows) {
    if (rows.inputs.size() > 2 && rows.inputs[2] >= 0 && rows.inputs[1] < 0) return false;
    std::set<int32_t> seen;
    const auto is_new = [&](int32_t id) { return id < 0 || seen.insert(id).second; };
    return std::ranges::all_of(before.inputs, is_new) &&
           std::all_of(rows.inputs.begin() + 1, rows.inputs.end(), is_new);
  }

  const Units units_;
  std::set<size_t> taken_;
};

}  // namespace

Status group_rows(Module& m, const Options& options) {
  static constexpr Pattern pattern = {"group_rows", Claim::calls,
                                      [](const Module& now) { return RowGrouper(now).run(); }};
  return apply(pattern, m, options);
}

}  // namespace weft::compiler

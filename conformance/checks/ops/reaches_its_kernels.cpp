#include <algorithm>
#include <map>

#include "conformance/asks.h"
#include "conformance/check.h"
#include "conformance/edges.h"
#include "conformance/graphs/groups.h"
#include "conformance/grown.h"
#include "conformance/inputs.h"
#include "conformance/seam/candidates.h"
#include "conformance/seam/usual.h"

// A few small calls of each kernel, so that tools which slow kernels down a hundredfold can watch all of
// them: in each dtype the smallest that it accepts, and the smallest whose rows are ragged, or are not where
// the first one's are. Results and workspaces hold what their memory held, so that tools see it being read.
// A kernel that takes larger calls alone gets those, and one that wants a policy of lower precision small
// integers, which every precision multiplies exactly. Kernels of groups run in compiled graphs.
namespace weft::conformance::checks::reaches_its_kernels {
namespace {

// Rows that no vector, warp or tile divides.
bool is_ragged(const Ask& ask) {
  return std::ranges::any_of(ask.inputs, [](const HostTensor& t) {
    return !t.type.shape.empty() && t.type.shape.back() > 1 && t.type.shape.back() % 8 != 0;
  });
}
/// Of all operands; -1 where one of them is empty.
int64_t elements(const Ask& ask) {
  int64_t all = 0;
  for (const auto& t : ask.inputs) {
    const int64_t n = element_count(std::span<const int64_t>(t.type.shape));
    if (n == 0) return -1;
    all += n;
  }
  return all;
}

/// Small integers, and perhaps scales that are given value by value: exact in any precision.
bool is_of_integers(const Case& c) {
  const auto kind = [](Input::Kind k) { return [k](const Input& i) { return i.kind == k; }; };
  return std::ranges::any_of(c.inputs, kind(Input::Kind::integers)) &&
         std::ranges::none_of(c.inputs, kind(Input::Kind::normal)) &&
         std::ranges::none_of(c.inputs, kind(Input::Kind::uniform));
}

/// The call under a policy that allows this precision.
Result<seam::CallPtr> describe_at(const Ask& ask, uint8_t precision) {
  WEFT_TRY(auto call, describe(ask));
  if (precision == WEFT_PRECISION_STRICT) return call;
  seam::CallDesc loose = call->desc();
  loose.precision = precision;
  return seam::CallPtr(std::make_shared<const seam::OwnedCall>(std::move(loose)));
}

/// The call of a case as types, without data.
Ask types_of(const ir::OpDef& op, const Case& c, DType t) {
  Ask ask{.op = op.name, .attrs = c.attrs};
  for (const Input& i : c.inputs)
    ask.inputs.push_back({{i.dtype.value_or(t), IntList(i.shape.begin(), i.shape.end())}, {}});
  return ask;
}

struct Chosen {
  Case of;
  DType dtype;
  int64_t elements;
  uint8_t precision;
};
/// By dtype, and whether it is ragged.
using Calls = std::map<std::pair<DType, bool>, Chosen>;

/// The kernels to be reached: the backend's own that are asked for ops, and of those that the host generates
/// one of each form.
std::vector<const weft_kernel*> kernels_of(const seam::Device& device) {
  std::vector<const weft_kernel*> all = device.sources[0].kernels;
  std::erase_if(all, [](const weft_kernel* k) {
    const std::string_view op = k->op;
    return op == "region" || op == "*";  // bodies, which have no cases: graphs and models run them
  });
  std::set<std::string> forms;
  for (size_t s = 1; s < device.sources.size(); ++s)
    for (const weft_kernel* k : device.sources[s].kernels)
      if (ir::find_op(k->op) && forms.insert(device.sources[s].provider + std::strrchr(k->id, '.')).second)
        all.push_back(k);
  return all;
}

/// Those of one op.
class Kernels {
 public:
  Kernels(Rig& rig, const ir::OpDef& op, std::vector<const weft_kernel*> kernels)
      : rig_(rig), op_(op), kernels_(std::move(kernels)), calls_(kernels_.size()) {}

  void choose(const CaseFile& file) {
    const OpCases cases = file.cases();
    for (const Case& c : cases) consider(c);
    for (const Case& c : edge_cases(op_)) consider(c);
    consider_grown(cases, {8, 12, 16, 24});
    only_unreached_ = true;
    consider_grown(cases, {40, 56, 80});
    precision_ = WEFT_PRECISION_BF16;
    for (const Case& c : cases)
      if (is_of_integers(c)) consider(c);
  }
  void run(CheckRun& run) {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (calls_[i].empty())
        run.run(fmt::format("{} {}", op_.name, kernels_[i]->id),
                [&] { return Found::skipped("no case reaches it here"); });
      for (const auto& [key, chosen] : calls_[i]) launch(run, *kernels_[i], chosen);
    }
  }

 private:
  void consider_grown(const OpCases& cases, std::initializer_list<int64_t> factors) {
    for (const int64_t factor : factors)
      for (const Case& c : cases)
        if (const auto larger = grown(c, factor)) consider(*larger);
  }
  void consider(const Case& c) {
    for (int i = 0; i < (has_free_dtype(c) ? kDTypeCount : 1); ++i) {
      const auto t = static_cast<DType>(i);
      if (!holds(c.dtypes, t)) continue;
      const Ask ask = types_of(op_, c, t);
      const int64_t n = elements(ask);
      const std::pair key(t, is_ragged(ask));
      const auto has_enough = [&](const Calls& calls) {
        const auto at = calls.find(key);
        return at == calls.end() ? only_unreached_ && !calls.empty() : at->second.elements <= n;
      };
      if (n < 0 || std::ranges::all_of(calls_, has_enough)) continue;
      const auto call = describe_at(ask, precision_);
      for (size_t k = 0; call.ok() && k < kernels_.size(); ++k)
        if (!has_enough(calls_[k]) && rig_.plan(call.value(), *kernels_[k]).ok())
          calls_[k].insert_or_assign(key, Chosen{c, t, n, precision_});
    }
  }

  void launch(CheckRun& run, const weft_kernel& kernel, const Chosen& chosen) {
    Case one = chosen.of;
    one.dtypes = only({chosen.dtype});
    const auto name = [&](const std::string& label) { return fmt::format("{} by {}", label, kernel.id); };
    each_case(
        op_, {one}, [&](const std::string& label) { return run.wants(name(label)); },
        [&](const PreparedCase& c) {
          run.run(name(c.label), [&] {
            run.covered.insert(kernel.id);
            const Ask ask = ask_of(c);
            const auto plan = rig_.plan(value_or_raise(describe_at(ask, chosen.precision)), kernel);
            if (!plan.ok()) return Found::refused(plan.status().message());
            return Found::wrong(judged(c, value_or_raise(rig_.launch(*plan.value(), ask))));
          });
        });
  }

  Rig& rig_;
  const ir::OpDef& op_;
  std::vector<const weft_kernel*> kernels_;
  std::vector<Calls> calls_;
  bool only_unreached_ = false;  ///< only kernels that no smaller call reaches
  uint8_t precision_ = WEFT_PRECISION_STRICT;
};

// Sizes that no tile divides; the last is what kernels take that leave small products to others.
constexpr GroupSize kGroupSizes[] = {{5, 7, 9}, {20, 40, 24}, {72, 200, 136}, {328, 328, 328}};

/// The smallest graph in each dtype that reaches the kernel of a group.
void run_group(CheckRun& run, Rig& rig, const weft_kernel& kernel) {
  bool reached = false;
  for (const DType t : {DType::f32, DType::f16, DType::bf16})
    for (const GroupSize& s : kGroupSizes) {
      auto types = group_case(kernel.op, t, s, false);
      if (!types.ok()) continue;
      const auto reaches = group_reaches(types.value(), rig.device, kernel);
      if (!reaches.ok() || !reaches.value()) continue;
      reached = true;
      const auto name = fmt::format("{} {} {} x {} x {} by {}", kernel.op, weft::name(t), s.rows, s.terms,
                                    s.columns, kernel.id);
      run.run(name, [&] {
        run.covered.insert(kernel.id);
        const auto c = value_or_raise(group_case(kernel.op, t, s, true));
        const auto verdict = run_group_case(c, run.backend(), kernel);
        return verdict.kind == GraphVerdict::Kind::refused ? Found::refused(verdict.reason)
                                                           : Found::wrong(verdict.reason);
      });
      break;
    }
  if (!reached)
    run.run(fmt::format("{} {}", kernel.op, kernel.id),
            [] { return Found::skipped("no graph reaches it here"); });
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  rig.fresh = true;
  std::map<std::string, std::vector<const weft_kernel*>> by_op;
  for (const weft_kernel* k : kernels_of(rig.device)) by_op[k->op].push_back(k);
  for (const auto& file : case_files()) {
    const auto at = by_op.find(file.op);
    if (at == by_op.end()) continue;
    if (run.wants(file.op)) {
      Kernels kernels(rig, op_of(file), at->second);
      kernels.choose(file);
      kernels.run(run);
    }
    by_op.erase(at);
  }
  for (const auto& [op, kernels] : by_op)
    for (const weft_kernel* k : kernels)
      if (!has_group(op))
        run.run(fmt::format("{} {}", op, k->id), [] { return Found::skipped("its op has no cases"); });
      else if (run.wants(op))
        run_group(run, rig, *k);
}

}  // namespace

extern const Check check = {"reaches_its_kernels",
                            "each kernel gives right answers to the smallest calls that it takes", run};

}  // namespace weft::conformance::checks::reaches_its_kernels

#include "lab/tune.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "conformance/seam/rig.h"
#include "conformance/sizes/data.h"
#include "conformance/sizes/work.h"
#include "runtime/devices.h"
#include "seam/preference.h"
#include "weft/backends.h"

namespace weft::lab {
namespace {

using conformance::Ask;
using conformance::Rig;
using program::CompiledProgram;
using runtime::HostTensor;
using Clock = std::chrono::steady_clock;

constexpr double kSample = 5e-4;  // seconds: shorter launches are timed several at a time
constexpr size_t kLeastSamples = 7, kMostSamples = 101;

struct Entrant {
  seam::PreparedPtr plan;
  Rig::Placed placed;
  int64_t launches = 1;         // of a sample
  std::vector<double> seconds;  // of a launch, by sample
};

// Operands of call `index`, as passed to the seam.
Ask ask_of(const program::KernelCall& call, const Values& values) {
  Ask ask{.op = call.op};
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const program::ValueId id = call.inputs[i];
    if (id < 0) ask.absent |= uint64_t{1} << i;
    ask.inputs.push_back(id < 0 ? HostTensor{{DType::u8, {}}, std::vector<std::byte>(1)}
                                : values[static_cast<size_t>(id)]);
  }
  return ask;
}

// Integers from -2 to 2 instead of floats: every order of additions and products gives the same sum.
void make_whole(Ask& ask) {
  uint64_t n = 0;
  for (auto& t : ask.inputs) {
    if (!is_float(t.type.dtype)) continue;
    const auto count = static_cast<size_t>(element_count(std::span<const int64_t>(t.type.shape)));
    for (size_t i = 0; i < count; ++i, ++n)
      store_element(t.type.dtype, t.bytes.data(), i, static_cast<double>(n * 2654435761u % 997 % 5) - 2);
  }
}

Result<std::vector<HostTensor>> results(Rig& rig, seam::PreparedKernel& plan, const Ask& ask) {
  WEFT_TRY(auto run, rig.launch(plan, ask));
  return std::move(run.outputs);
}

// Checks the results of a call.
class Judge {
 public:
  static Result<Judge> of(const CompiledProgram& p, size_t index, const Values& values,
                          const seam::CallPtr& call, double oracle_seconds) {
    Judge j;
    WEFT_TRY(const auto meaning, call_graph(p, index));
    j.ask_ = ask_of(p.calls[index], values);
    if (conformance::oracle_work(meaning) * 1e-7 <= oracle_seconds) {
      WEFT_TRY(j.right_, bound_call(p, index, values));
      return j;
    }
    const bool exact =
        std::ranges::all_of(meaning.nodes, [](const auto& node) { return conformance::is_exact(*node.op); });
    if (!exact) return fail(Code::unsupported, "too large for the oracle, and not exact on whole numbers");
    make_whole(j.ask_);
    Rig reference("reference");
    WEFT_TRY(const auto plan, reference.plan(call));
    WEFT_TRY(j.same_, results(reference, *plan, j.ask_));
    return j;
  }

  std::string words() const {
    return same_.empty() ? "the oracle's bound" : "reference, on whole numbers, to the bit";
  }
  /// What is wrong with the kernel's results; empty if nothing.
  std::string wrong(Rig& rig, seam::PreparedKernel& plan) const {
    auto got = results(rig, plan, ask_);
    if (!got.ok()) return got.status().message();
    for (size_t k = 0; k < same_.size(); ++k)
      if ((*got)[k].bytes != same_[k].bytes) return fmt::format("result {} is another than reference's", k);
    for (size_t k = 0; k < right_.size(); ++k)
      if (const auto v = conformance::judge(to_array((*got)[k]), right_[k]); !v.ok)
        return fmt::format("result {}: {}", k, v.reason);
    return "";
  }

 private:
  Ask ask_;
  std::vector<conformance::Bounded> right_;
  std::vector<HostTensor> same_;
};

Result<double> sample(Rig& rig, Entrant& e) {
  const auto start = Clock::now();
  for (int64_t i = 0; i < e.launches; ++i) WEFT_CHECK(rig.enqueue(*e.plan, e.placed));
  WEFT_CHECK(rig.queue->synchronize());
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(e.launches);
}

// In turns, in a changing order, so that disturbances of the machine affect all of them.
Status time_all(Rig& rig, std::vector<Entrant>& all, double seconds) {
  double round = 0;
  for (Entrant& e : all) {
    WEFT_CHECK(sample(rig, e).take_status());  // warm-up
    WEFT_TRY(const double once, sample(rig, e));
    e.launches = std::clamp<int64_t>(static_cast<int64_t>(kSample / std::max(once, 1e-9)), 1, 1000);
    round += once * static_cast<double>(e.launches);
  }
  const auto rounds = std::clamp(static_cast<size_t>(seconds / round), kLeastSamples, kMostSamples);
  for (size_t r = 0; r < rounds; ++r)
    for (size_t i = 0; i < all.size(); ++i) {
      const size_t turn = (r / 2 + i) % all.size();
      Entrant& e = all[r % 2 ? all.size() - 1 - turn : turn];
      WEFT_TRY(const double s, sample(rig, e));
      e.seconds.push_back(s);
    }
  return {};
}

Timed timed(Entrant& e) {
  Timed t{.kernel = e.plan->kernel.id, .wrong = {}, .samples = e.seconds.size()};
  std::ranges::sort(e.seconds);
  const auto at = [&](size_t quarter) {
    return static_cast<uint64_t>(std::llround(1e9 * e.seconds[(e.seconds.size() - 1) * quarter / 4]));
  };
  t.quarter = at(1), t.nanoseconds = std::max<uint64_t>(at(2), 1), t.three_quarters = at(3);
  return t;
}

size_t fastest_of(const std::vector<Timed>& all) {
  size_t best = 0;
  for (size_t i = 1; i < all.size(); ++i)
    if (all[i].wrong.empty() && all[i].nanoseconds < all[best].nanoseconds &&
        static_cast<double>(all[i].three_quarters) < 0.97 * static_cast<double>(all[0].nanoseconds))
      best = i;
  return best;
}

// Every kernel that accepts the call; first the one that selection takes.
std::vector<seam::PreparedPtr> entrants(seam::Device& device, const seam::CallPtr& call,
                                        seam::PreparedPtr chosen) {
  std::vector<seam::PreparedPtr> all;
  all.push_back(std::move(chosen));
  auto sources = device.sources;
  for (auto& guest : seam::registry().guests(device)) sources.push_back(std::move(guest));
  for (const auto& source : sources)
    for (const weft_kernel* k : source.kernels) {
      if (k == &all[0]->kernel || !seam::is_for(*k, call->desc())) continue;
      if (auto plan = seam::prepare_with(device, *k, call); plan.ok()) all.push_back(std::move(plan).value());
    }
  return all;
}

class Tuner {
 public:
  Tuner(const CompiledProgram& p, bool one_size, std::vector<seam::Device*> devices, const Policy& policy,
        const TuneOptions& options)
      : p_(p), one_size_(one_size), rig_(*devices[0]), policy_(policy), options_(options) {}

  Result<seam::CallPtr> described(size_t index) const {
    WEFT_TRY(auto desc, describe(p_, index));
    desc.constants = constants_of(p_, index, one_size_);
    desc.determinism = policy_.determinism, desc.precision = policy_.precision;
    return seam::CallPtr(std::make_shared<const seam::OwnedCall>(std::move(desc)));
  }

  Status measure(TunedCall& t, const seam::CallPtr& call, const Values& values) {
    std::vector<seam::Refusal> refusals;
    WEFT_TRY(auto chosen, seam::select(rig_.device, call, &refusals));
    if (!chosen) return t.left_out = "no kernel takes it as it is: its body runs step by step", Status();
    auto plans = entrants(rig_.device, call, std::move(chosen));
    if (plans.size() == 1)
      return t.left_out = "only " + std::string(plans[0]->kernel.id) + " takes it", Status();
    auto judge = Judge::of(p_, t.call, values, call, options_.oracle_seconds);
    if (!judge.ok()) return t.left_out = judge.status().message(), Status();
    t.judged = judge->words();
    return compare(t, std::move(plans), *judge, ask_of(p_.calls[t.call], values));
  }

 private:
  Status compare(TunedCall& t, std::vector<seam::PreparedPtr> plans, const Judge& judge, const Ask& ask) {
    std::vector<Entrant> right;
    std::vector<Timed> wrong;
    for (auto& plan : plans) {
      if (auto words = judge.wrong(rig_, *plan); !words.empty()) {
        wrong.push_back({plan->kernel.id, std::move(words), 0, 0, 0, 0});
        if (&plan == &plans[0]) break;  // the default is wrong: nothing to compare with
        continue;
      }
      WEFT_TRY(auto placed, rig_.place(*plan, ask));
      WEFT_CHECK(rig_.pack(*plan, placed));
      right.push_back({std::move(plan), std::move(placed), 1, {}});
    }
    if (!right.empty()) WEFT_CHECK(time_all(rig_, right, options_.seconds));
    for (auto& e : right) t.kernels.push_back(timed(e));
    t.fastest = fastest_of(t.kernels);
    t.kernels.insert(t.kernels.end(), wrong.begin(), wrong.end());
    if (right.empty()) t.left_out = "the kernel that is taken gives a wrong result";
    return {};
  }

  const CompiledProgram& p_;
  bool one_size_;  // of the program that p_ was made of, whose sizes are known
  Rig rig_;
  const Policy& policy_;
  const TuneOptions& options_;
};

Status keep_all(seam::Device& device, const std::vector<std::pair<std::string, const TunedCall*>>& found,
                Tuning& tuning) {
  std::vector<seam::Measured> all;
  for (const auto& [signature, t] : found) {
    if (!t->left_out.empty()) continue;
    seam::Measured m{.call = signature,
                     .kernel = t->kernels[t->fastest].kernel,
                     .contents = {},
                     .instead = t->kernels[0].kernel,
                     .nanoseconds = t->kernels[t->fastest].nanoseconds,
                     .nanoseconds_instead = t->kernels[0].nanoseconds};
    if (seam::registry().find_kernel(device, m.kernel, &m.contents)) all.push_back(std::move(m));
  }
  tuning.kept = all.size(), tuning.file = seam::preference_file(device);
  return all.empty() ? Status() : seam::preferences().keep(device, all);
}

}  // namespace

Result<Tuning> tune(const CompiledProgram& program, std::span<const HostTensor> inputs,
                    const std::string& backend, const Policy& policy, const TuneOptions& options,
                    const std::function<void(const TunedCall&, size_t, size_t)>& see) {
  const seam::Unmeasured alone;
  WEFT_TRY(const CompiledProgram p, without_symbols(program, inputs));
  WEFT_TRY(Values values, first_values(p, inputs));
  WEFT_TRY(auto devices, runtime::devices_for(backend, policy));
  seam::Device& device = *devices[0];
  Tuner tuner(p, program.symbols.empty(), std::move(devices), policy, options);
  std::deque<TunedCall> calls;  // a deque: elements don't move
  std::vector<std::pair<std::string, const TunedCall*>> found;
  std::map<std::string, TunedCall*> seen;
  for (size_t i = 0; i < p.calls.size(); ++i) {
    WEFT_TRY(const auto call, tuner.described(i));
    const std::string signature = seam::signature(call->desc());
    if (auto at = seen.find(signature); at != seen.end()) {
      ++at->second->count;
    } else {
      TunedCall& t = calls.emplace_back();
      t.call = i, t.what = describe_call(p, i);
      WEFT_CHECK(tuner.measure(t, call, values).at(t.what));
      found.emplace_back(signature, &t), seen[signature] = &t;
      see(t, i + 1, p.calls.size());
    }
    WEFT_TRY(auto run, run_call(p, i, {.backend = backend}, policy, values));
    keep(p, i, std::move(run), values);
  }
  Tuning tuning;
  if (options.keep) WEFT_CHECK(keep_all(device, found, tuning));
  tuning.calls.assign(calls.begin(), calls.end());
  return tuning;
}

}  // namespace weft::lab

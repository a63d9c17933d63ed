#include <cmath>

#include "conformance/check.h"
#include "conformance/edges.h"
#include "conformance/sizes/exact.h"

// += at the sizes where loops, vectors and blocks end, and at random sizes.
namespace weft::conformance::checks::accumulates_at_size {
namespace {

// Sums of integers up to this are exact in every float; larger ones may round to it.
constexpr double kExact = 256;

// The previous contents: small integers that differ over more elements than any vector has.
std::vector<double> numbers_before(Random& random) {
  std::vector<double> before;
  for (int i = 0; i < 1021; ++i) before.push_back(static_cast<double>(random.bits() % 5));
  return before;
}

std::string wrong_sum(const Ask& ask, const HostTensor& plain, const HostTensor& sum) {
  const DType t = plain.type.dtype;
  const size_t n = plain.bytes.size() / byte_size(t);
  for (size_t i = 0; i < n; ++i) {
    const auto before = ask.before[i % ask.before.size()],
               added = load_element<double>(t, plain.bytes.data(), i),
               got = load_element<double>(t, sum.bytes.data(), i), want = before + added;
    const bool judged = std::fabs(want) <= kExact && std::fabs(added) < kExact && std::rint(added) == added &&
                        (is_float(t) || want >= static_cast<double>(lowest(t))) &&
                        want <= static_cast<double>(highest(t));
    if (judged && got != want)
      return fmt::format("element {} of {}: {} += {} gave {}", i, text(plain.type.shape), before, added, got);
  }
  return "";
}

bool has_sums(const Ask& ask) {
  const auto call = value_or_raise(describe(ask));
  const auto& desc = call->desc();
  return desc.outputs.size() == 1 && desc.updates.empty() && desc.outputs[0].dtype != DType::boolean;
}

Found each_sum(CheckRun& run, Rig& rig, const Ask& ask, const Ask& adding, const Candidates& sums) {
  const auto plain = value_or_raise(describe(ask));
  for (const auto& sum : sums.plans) {
    const auto alone = value_or_raise(rig.plan(plain, sum->kernel));
    const auto y = value_or_raise(rig.launch(*alone, ask)), z = value_or_raise(rig.launch(*sum, adding));
    run.covered.insert(sum->kernel.id);
    if (const auto words = wrong_sum(adding, y.outputs[0], z.outputs[0]); !words.empty())
      return Found::wrong(fmt::format("{}: {}", sum->kernel.id, words));
  }
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  const LargeCalls which =
      run.options().full ? LargeCalls{1000, 5, 2, 3'000'000} : LargeCalls{60, 0.1, 2, 300'000};
  bool some = false;
  each_large_call(run, rig.device.capability().dtypes, which,
                  [&](const std::string& label, const DrawnCall& call, Random& random) {
                    const Ask ask = exact_ask(call, random);
                    if (!has_sums(ask)) return;
                    Ask adding = ask;
                    adding.accumulate = 1, adding.before = numbers_before(random);
                    // A kernel may refuse +=: the host then gives it a temporary.
                    const auto sums = candidates_of(rig, adding);
                    if (sums.plans.empty()) return;
                    some = true;
                    run.run(label, [&] { return each_sum(run, rig, ask, adding, sums); });
                  });
  if (!some) run.run("every op", [] { return Found::skipped("no kernel takes +="); });
}

}  // namespace

extern const Check check = {"accumulates_at_size", "+= adds to each element, whatever the shape", run, true};

}  // namespace weft::conformance::checks::accumulates_at_size

#include "conformance/sizes/exact.h"

#include <cmath>
#include <cstring>

#include "conformance/check.h"
#include "conformance/rules.h"
#include "conformance/sizes/work.h"
#include "conformance/stopwatch.h"

namespace weft::conformance {

Ask exact_ask(const DrawnCall& call, Random& random) {
  Ask ask{.op = call.op->name, .inputs = draw_exact_operands(call, random)};
  for (size_t i = 0; i < call.attrs.size(); ++i) ask.attrs.push_back({call.op->attrs[i].name, call.attrs[i]});
  return ask;
}

bool is_comparable(const ir::OpDef& op) {
  return op.primitive() && (is_exact(op) || ir::has(op.traits, ir::Trait::elementwise));
}

std::string other_number(const ir::OpDef& op, const HostTensor& got, const HostTensor& want) {
  const DType t = want.type.dtype;
  if (got.type != want.type)
    return fmt::format("got {}, want {}", text(got.type.shape), text(want.type.shape));
  if (got.bytes == want.bytes) return "";
  const Rule& rule = *find_rule(op.name);
  const size_t one = byte_size(t);
  for (size_t i = 0; i < want.bytes.size() / one; ++i) {
    if (std::memcmp(&got.bytes[i * one], &want.bytes[i * one], one) == 0) continue;
    const Real g = decode(t, {}, std::span(got.bytes).subspan(i * one, one)).v[0],
               w = decode(t, {}, std::span(want.bytes).subspan(i * one, one)).v[0];
    const bool same = std::isnan(w) ? std::isnan(g)
                      : g == w      ? !rule.bitwise || std::signbit(g) == std::signbit(w)
                               : !is_exact(op) && std::fabs(g - w) <= 2 * rounding(t, std::fabs(w), rule.c);
    if (!same)
      return fmt::format("element {} of {}: got {:.17g}, want {:.17g}", i, text(got.type.shape), double(g),
                         double(w));
  }
  return "";
}

// Convolutions take hundreds of times as long as sums of the same size.
constexpr double kWorkForEach = 20;

void each_large_call(CheckRun& run, uint64_t claimed, const LargeCalls& which,
                     const std::function<void(const std::string& label, const DrawnCall&, Random&)>& f) {
  size_t done = 0;
  for (const auto& file : case_files()) {
    run.at(done++, case_files().size());
    const ir::OpDef& op = op_of(file);
    if (!which.of(op) || !run.wants(file.op)) continue;
    const OpCases written = file.cases();
    const Stopwatch watch;
    for (uint64_t i = 1; i <= which.cases && watch.seconds() < which.seconds; ++i) {
      if (!run.wants(fmt::format("{} {} ", file.op, i))) continue;
      Random random = random_for(run.options().seed, op, i);
      const auto call = draw_call(op, written, claimed, random, log_uniform(random, which.least, which.most));
      if (call && oracle_work(*call) <= kWorkForEach * static_cast<double>(which.most))
        f(fmt::format("{} {} {}", file.op, i, call->text()), *call, random);
    }
  }
}

}  // namespace weft::conformance

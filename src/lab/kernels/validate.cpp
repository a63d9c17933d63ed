#include "lab/kernels/validate.h"

#include <algorithm>

#include "conformance/inputs.h"
#include "conformance/seam/candidates.h"
#include "conformance/sizes/work.h"
#include "lab/kernels/call_json.h"

namespace weft::lab {
namespace {

constexpr size_t kFew = 8;

Result<double> oracle_seconds(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                              const std::vector<conformance::Array>& inputs) {
  std::vector<TensorType> types;
  for (const auto& a : inputs) types.push_back(type_of(a));
  WEFT_TRY(const auto graph, conformance::graph_of(op, attrs, types));
  return 1e-7 * conformance::oracle_work(graph);
}

// One in `step` of them, from the first on: neighbours are alike.
template <class T>
std::vector<T> spread(std::vector<T> all, size_t count) {
  if (all.size() <= count) return all;
  std::vector<T> some;
  for (size_t i = 0; i < count; ++i) some.push_back(std::move(all[i * all.size() / count]));
  return some;
}

// Launches once, and compares all of the results. Empty, or what is wrong.
Result<std::string> ask(Seat& seat, const ValidationCase& c, const Data& data, uint64_t seed) {
  WEFT_CHECK(seat.contender().open(c.ask).take_status());
  WEFT_CHECK(seat.put(data, seed));
  WEFT_CHECK(seat.once());
  WEFT_CHECK(seat.check_memory());
  const auto results = seat.results();
  Accuracy accuracy;
  for (size_t k = 0; k < c.right.size(); ++k)
    (void)accuracy.add(results[k], c.right[k], fmt::format("result {}", k));
  return accuracy.wrong;
}

}  // namespace

Result<std::vector<ValidationCase>> validation_cases(const Operation& o, double seconds, bool few) {
  const ir::OpDef& op = o.definition();
  std::vector<conformance::Case> wanted;
  WEFT_TRY(const auto all, o.cases());
  for (const auto& c : all)
    if (conformance::holds(c.dtypes, o.dtype)) wanted.push_back(c);
  if (few) wanted = spread(std::move(wanted), kFew);
  std::vector<ValidationCase> found;
  for (const auto& c : wanted) {
    WEFT_TRY(const auto attrs, ir::order_attrs(op, c.attrs));
    const auto inputs = conformance::make_inputs(c, o.dtype, found.size() + 1);
    auto work = oracle_seconds(op, attrs, inputs);
    if (!work.ok() || *work > seconds) continue;  // not for this dtype, or too large
    WEFT_TRY(auto right, conformance::bound_op(op, attrs, inputs));
    conformance::Ask ask{
        .op = o.op, .inputs = {}, .attrs = c.attrs, .constants = o.constants, .one_size = o.one_size};
    for (const auto& a : inputs) ask.inputs.push_back(conformance::host_tensor(a));
    found.push_back({c.why, std::move(ask), std::move(right)});
  }
  return found;
}

Status validate(const std::vector<ValidationCase>& cases, const Process& given, Row& row) {
  Process process = given;
  std::vector<Data> data;
  for (const auto& c : cases) {
    WEFT_TRY(auto d, data_of(c.ask));
    process.memory_bytes = std::max(process.memory_bytes, room_for(d));
    data.push_back(std::move(d));
  }
  if (cases.empty()) return {};
  auto started = Contender::start(row.prepared, process);
  if (!started.ok()) return row.verdict = Verdict::invalid, row.why = started.status().message(), Status();
  Seat seat(std::move(started).value());
  for (size_t i = 0; i < cases.size(); ++i) {
    auto wrong = ask(seat, cases[i], data[i], i + 1);
    if (!wrong.ok() && wrong.status().code() == Code::unsupported) {
      ++row.refused;
      continue;
    }
    ++row.cases;
    if (wrong.ok() && wrong->empty()) continue;
    row.verdict = wrong.ok() ? Verdict::wrong : Verdict::invalid;
    row.why = fmt::format("{} ({}): {}", text(cases[i].ask), cases[i].why,
                          wrong.ok() ? *wrong : wrong.status().message());
    return {};
  }
  return {};
}

}  // namespace weft::lab

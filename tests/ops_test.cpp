#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "conformance/drawn/trial.h"
#include "conformance/prepared.h"
#include "conformance/rules.h"
#include "conformance/run.h"
#include "ir/lower.h"
#include "loops/loops.h"
#include "seam/prepared_kernel.h"
#include "seam/registry.h"

// Every op x case x dtype x backend, judged per element; and every planted fault rejected.
namespace weft::conformance::ops_test {
namespace {

struct Totals {
  std::map<std::string, int> executed, refused;          // by backend
  std::map<std::string, std::set<std::string>> reasons;  // by backend: "exp f64: why"
  std::map<std::string, int> faults_rejected, faults_same;
  Real worst = 0;
  std::string worst_at;
};
Totals& totals() {
  static Totals t;
  return t;
}
const std::vector<std::string>& backends() {
  static const auto all = computing_backends(WEFT_BINARY_DIR "/plugins");
  return all;
}

// Is there something to compute, or is a copy of an operand the whole meaning?
bool wants_kernel(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                  const std::vector<Array>& inputs) {
  std::vector<TensorType> types;
  std::vector<const TensorType*> pointers;
  for (const Array& a : inputs) types.push_back(type_of(a));
  for (const TensorType& t : types) pointers.push_back(&t);
  return op.primitive() || !value_or_raise(ir::lower_to_primitives(op, pointers, attrs)).nodes.empty();
}

// Whatever ran, ran on the backend that was asked, under a name, and nothing was copied elsewhere.
void check_ledger(const ir::OpDef& op, const Outcome& run, const std::string& backend, bool wants) {
  ASSERT_TRUE(!wants || !run.ledger.empty()) << "no kernel is in the ledger";
  for (const auto& row : run.ledger) {
    EXPECT_EQ(row.device, backend) << row.op << " by " << row.kernel;
    EXPECT_FALSE(row.kernel.empty()) << row.op;
    EXPECT_TRUE(row.op == op.name || !op.primitive()) << row.op << " by " << row.kernel;
  }
}

bool compiles_text(const std::string& backend) {
  return value_or_raise(seam::registry().open(backend))->capability().dialect[0] != 0;
}
bool will_run(const char* op) {
  const auto& unit = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < unit.total_test_suite_count(); ++i) {
    const auto& suite = *unit.GetTestSuite(i);
    for (int k = 0; std::string_view(suite.name()) == "Folder/Ops" && k < suite.total_test_count(); ++k) {
      const auto& test = *suite.GetTestInfo(k);
      if (test.should_run() && std::string_view(test.name()) == std::string("EveryCase/") + op) return true;
    }
  }
  return false;
}

class Ops : public ::testing::TestWithParam<CaseFile> {
 protected:
  // All texts are asked for before the first is needed, so that they are compiled many to a program. What the
  // calls give meanwhile means nothing. PoCL does not optimise these 2,700, which takes two thirds of its
  // time: they say the same. Random graphs and models run optimised, and so does each case in `weft check
  // opencl`.
  static void SetUpTestSuite() {
    setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable", 1);
    before_ = loops::compilations();
    seam::Together together;
    for (const auto& file : case_files()) {
      if (!will_run(file.op)) continue;
      const ir::OpDef& op = *ir::find_op(file.op);
      for (const auto& c : file.cases())
        for (int i = 0; i < (has_free_dtype(c) ? kDTypeCount : 1); ++i) {
          const auto t = static_cast<DType>(i);
          const auto attrs = value_or_raise(ir::order_attrs(op, c.attrs));
          const auto inputs = make_inputs(c, t, 1);
          if (holds(c.dtypes, t) && infer_op(op, attrs, inputs).ok())
            for (const auto& backend : backends())
              if (compiles_text(backend)) (void)run_op(op, attrs, inputs, backend);
        }
    }
    raise_if(together.finish());
  }
  static void TearDownTestSuite() {
    unsetenv("POCL_EXTRA_BUILD_FLAGS");
    int executed = 0;
    for (const auto& [backend, n] : totals().executed) {
      std::printf("[ops] %-12s %6d cases executed, %4d refused\n", backend.c_str(), n,
                  totals().refused[backend]);
      executed += n;
    }
    for (const auto& [backend, reasons] : totals().reasons)
      for (const auto& reason : reasons)
        std::printf("[ops] %s refused %s\n", backend.c_str(), reason.c_str());
    for (const auto& [fault, n] : totals().faults_rejected)
      std::printf("[ops] fault '%s': rejected %d times, the right answer itself %d times\n", fault.c_str(), n,
                  totals().faults_same[fault]);
    const uint64_t texts = loops::compilations().texts - before_.texts,
                   programs = loops::compilations().programs - before_.programs;
    std::printf("[ops] %llu texts were compiled as %llu programs\n", static_cast<unsigned long long>(texts),
                static_cast<unsigned long long>(programs));
    // 2,668 when this was written: a composite op has a text for each of its kernels, and none for a size.
    EXPECT_LE(texts, 3000u);
    EXPECT_TRUE(texts < 16 || programs * 16 <= texts);
    std::printf("[ops] %d cases executed; worst error %.3Lf of what is allowed: %s\n", executed,
                totals().worst, totals().worst_at.c_str());
    EXPECT_GT(executed, 0);
  }

  // A fault that is not the right answer must be rejected; each op needs a case that tells them apart.
  void check_faults(const std::vector<Bounded>& right, const std::vector<Array>& inputs) {
    for (size_t k = 0; k < right.size(); ++k) {
      many_ |= right[k].value.v.size() > 1;
      for (const auto& fault : planted_faults(right[k], inputs, stale_)) {
        ++(fault.same ? totals().faults_same : totals().faults_rejected)[fault.name];
        if (fault.same) continue;
        bitten_.insert(fault.name);
        EXPECT_FALSE(judge(fault.output, right[k]).ok)
            << "output " << k << " would pass if it were '" << fault.name << "'";
      }
      stale_ = right[k].value;
    }
  }

  void run_everywhere(const ir::OpDef& op, const std::vector<AttrValue>& attrs,
                      const std::vector<Array>& inputs, const std::vector<Bounded>& right,
                      const std::string& label) {
    const bool wants = wants_kernel(op, attrs, inputs);
    for (const auto& backend : backends()) {
      SCOPED_TRACE("on " + backend);
      const Outcome run = run_op(op, attrs, inputs, backend);
      if (!run.refused.empty()) {
        ++totals().refused[backend];
        const auto line = run.refused.substr(run.refused.find('\n') + 1);
        totals().reasons[backend].insert(std::string(op.name) + ":" + line.substr(0, line.find('\n')));
        EXPECT_NE(backend, "reference") << "the reference computes everything: " << run.refused;
        continue;
      }
      ++totals().executed[backend];
      check_ledger(op, run, backend, wants);
      ASSERT_EQ(run.outputs.size(), right.size());
      for (size_t k = 0; k < right.size(); ++k) {
        const Verdict v = judge(run.outputs[k], right[k]);
        EXPECT_TRUE(v.ok) << "output " << op.outputs[k] << ": " << v.reason;
        if (v.ok && v.worst > totals().worst)
          totals().worst = v.worst, totals().worst_at = label + " on " + backend;
      }
    }
  }

  Array stale_{DType::f32, {3}, {-7.25L, 1234.5L, 0.001L}};
  inline static loops::Compilations before_;
  std::set<std::string, std::less<>> bitten_;  // faults that some case rejected
  bool many_ = false;                          // some result has more than one element
};

TEST_P(Ops, EveryCase) {
  const ir::OpDef* op = ir::find_op(GetParam().op);
  ASSERT_TRUE(op) << "a case file for an op that does not exist";
  uint64_t seed = 1;
  for (const auto& c : GetParam().cases()) {
    const auto attrs = value_or_raise(ir::order_attrs(*op, c.attrs));
    int tried = 0;
    for (int i = 0; i < (has_free_dtype(c) ? kDTypeCount : 1); ++i) {
      const auto t = static_cast<DType>(i);
      if (!holds(c.dtypes, t)) continue;
      const auto inputs = make_inputs(c, t, ++seed);
      const auto bounded = bound_op(*op, attrs, inputs);
      if (!bounded.ok() && bounded.status().code() == Code::invalid_argument)
        continue;  // not an operand of this op
      ASSERT_TRUE(bounded.ok()) << bounded.status().text();
      const auto& right = bounded.value();
      ++tried;
      const std::string label = fmt::format("{} {} ({})", op->name, has_free_dtype(c) ? name(t) : "", c.why);
      SCOPED_TRACE(label);
      check_faults(right, inputs);
      run_everywhere(*op, attrs, inputs, right, label);
    }
    EXPECT_GT(tried, 0) << "no dtype takes the case: " << c.why;
  }
  // full is constant, a loss has one element, reshape copies its operand, and full has none to copy.
  for (const std::string_view fault : {"zero", "constant", "copied input", "shifted by one", "stale"}) {
    const bool itself = (op->n_inputs == 0 && fault != "zero" && fault != "stale") ||
                        (!many_ && fault == "shifted by one") || (!many_ && fault == "constant") ||
                        (fault == "copied input" && std::string_view(op->name) == "reshape");
    EXPECT_TRUE(bitten_.contains(fault) || itself) << "no case tells '" << fault << "' from the right answer";
  }
}

std::vector<CaseFile> files() { return {case_files().begin(), case_files().end()}; }
INSTANTIATE_TEST_SUITE_P(Folder, Ops, ::testing::ValuesIn(files()),
                         [](const auto& info) { return std::string(info.param.op); });

// As many as a test can afford; `weft check reference --liars --full` draws 200.
TEST(OpCases, DrawnLiarsAreCaught) {
  const KeptAnswers kept;
  for (uint64_t i = 0; i < 20; ++i) {
    const Trial t = try_drawn("reference", 6, i);
    fmt::print("  {:<12} {:<60} {}\n", t.liar, t.fault, t.by);
    EXPECT_TRUE(t.caught()) << t.liar << ", " << t.fault << ": " << t.words;
  }
}

TEST(OpCases, EveryOpHasAFile) {
  std::set<std::string> have;
  for (const auto& f : case_files()) have.insert(f.op);
  for (const auto* op : ir::all_ops())
    EXPECT_TRUE(have.contains(op->name)) << "conformance/ops/" << op->name << ".cpp";
}

TEST(OpCases, EveryAttributeIsOffItsDefaultSomewhere) {
  for (const auto& file : case_files()) {
    const auto& op = *ir::find_op(file.op);
    const auto defaults = op.defaults();
    for (size_t i = 0; i < defaults.size(); ++i) {
      bool seen = false;
      for (const auto& c : file.cases())
        seen |= !(value_or_raise(ir::order_attrs(op, c.attrs))[i] == defaults[i]);
      EXPECT_TRUE(seen) << op.name << "." << op.attrs[i].name;
    }
  }
}

TEST(OpCases, EveryPrimitiveHasABound) {
  for (const auto* op : ir::all_ops()) EXPECT_EQ(find_rule(op->name) != nullptr, op->primitive()) << op->name;
}

}  // namespace
}  // namespace weft::conformance::ops_test

#include "conformance/prepared.h"
#include "conformance/run.h"
#include "eager/apply.h"
#include "seam/registry.h"
#include "seam_watchers.h"
#include "test_backends.h"
#include "weft/backend/base.hpp"
#include "weft/policy_scope.h"

// Strict mode: for each op, any failure of its backend is an error that names it, never another device's
// answer. And if another device may step in, the ledger equals the backends' own counts.
namespace weft::testing::strict_test {
namespace {

using namespace conformance;

/// Fails as it is told, on a device whose memory is not the host's.
class Failing : public Watching {
 public:
  using Watching::Watching;
  enum class Mode { none, refuses, launch, allocate } mode = Mode::none;
  uint64_t left = 0;  // allocations that may pass

  weft_code accepts(const weft_kernel& k, weft_device d, const weft_call* c, weft_error* e) override {
    if (mode == Mode::refuses) return backend::fill(e, WEFT_UNSUPPORTED, "injected: no");
    return Watching::accepts(k, d, c, e);
  }
  weft_code launch(const weft_launch* l, weft_error* e) override {
    if (mode == Mode::launch) return backend::fill(e, WEFT_INTERNAL, "injected: the kernel failed");
    return Watching::launch(l, e);
  }
  weft_code allocate(weft_device d, uint64_t bytes, void** handle, weft_error* e) override {
    if (mode == Mode::allocate && left == 0)
      return backend::fill(e, WEFT_OUT_OF_MEMORY, "injected: no memory");
    if (mode == Mode::allocate) --left;
    return Watching::allocate(d, bytes, handle, e);
  }
};
Failing& failing() {
  static Failing& one = []() -> Failing& {
    load_plugin("far");
    auto* made = new Failing("watch_failing", value_or_raise(seam::registry().open("far"))->backend());
    conformance::adopt(*made);
    return *made;
  }();
  return one;
}

/// The first case of each op that computes something in f32, or in what it takes.
std::vector<PreparedCase> a_case_of_each_op() {
  std::vector<PreparedCase> all;
  for (const auto& file : case_files()) {
    bool have = false;
    each_case(
        op_of(file), file.cases(), [&](const std::string&) { return !have; },
        [&](const PreparedCase& c) {
          bool some = true;
          for (const auto& a : c.inputs) some &= !a.v.empty();
          if (!some || (c.dtype != DType::f32 && c.dtype != DType::f64 && c.dtype != DType::i32)) return;
          have = true;
          all.push_back(c);
        });
  }
  return all;
}

/// Operands are there already: what fails is the op.
struct Prepared {
  explicit Prepared(const PreparedCase& c) : c(c), results(c.op.n_outputs) {
    in.reserve(c.inputs.size());
    for (const auto& a : c.inputs)
      in.push_back(to_tensor(a, failing().name())), pointers.push_back(&in.back());
  }
  void run() { eager::apply(c.op, pointers, c.attrs, results); }
  std::string error() {
    return error_of([&] { run(), (void)from_tensor(results[0]); });
  }
  const PreparedCase& c;
  std::vector<Tensor> in, results;
  std::vector<const Tensor*> pointers;
};

std::string elsewhere() {
  std::string s;
  for (const auto& row : ledger_rows())
    if (row.device != failing().name()) s += row.device + " ran " + row.op + "; ";
  return s;
}

// Ops that only give another name to an operand's memory ask no kernel.
bool asks_a_kernel(Prepared& p) {
  reset_ledger();
  failing().mode = Failing::Mode::none;
  p.run();
  for (const auto& row : ledger_rows())
    if (row.calls) return true;
  return false;
}

TEST(Strict, EachFailureOfEachOpIsAnErrorThatNamesIt) {
  const OnBackend on(failing().name());
  auto& device = *value_or_raise(seam::registry().open(failing().name()));
  int ops = 0, allocations = 0;
  for (const auto& c : a_case_of_each_op()) {
    SCOPED_TRACE(c.label);
    Prepared p(c);
    if (!asks_a_kernel(p)) continue;
    ++ops;
    for (const auto& [mode, words] : {std::pair(Failing::Mode::refuses, "injected: no"),
                                      {Failing::Mode::launch, "injected: the kernel failed"}}) {
      eager::clear_call_cache();
      reset_ledger();
      failing().mode = mode;
      const auto said = p.error();
      failing().mode = Failing::Mode::none;
      EXPECT_NE(said.find(words), std::string::npos) << said;
      EXPECT_NE(said.find(failing().name()), std::string::npos) << said;
      EXPECT_EQ(elsewhere(), "");
    }
    // Memory runs out at each allocation in turn, until there is enough.
    for (uint64_t k = 0;; ++k) {
      p.results.assign(c.op.n_outputs, {});
      device.trim();
      reset_ledger();
      failing().mode = Failing::Mode::allocate, failing().left = k;
      const auto said = p.error();
      failing().mode = Failing::Mode::none;
      EXPECT_EQ(elsewhere(), "");
      if (said == "no error") break;
      ++allocations;
      EXPECT_NE(said.find("injected: no memory"), std::string::npos) << "allocation " << k << ": " << said;
      ASSERT_LT(k, 200u);
    }
    // And it works afterwards, on operands that nothing has updated yet.
    Prepared again(c);
    again.run();
    for (size_t k = 0; k < c.right.size(); ++k) {
      const auto v = judge(from_tensor(again.results[k]), c.right[k]);
      EXPECT_TRUE(v.ok) << v.reason;
    }
  }
  fmt::print("[strict] {} ops, {} allocations failed in turn\n", ops, allocations);
  EXPECT_GT(ops, 90);
  EXPECT_GT(allocations, ops / 2);
}

TEST(Strict, WhereAnotherMayStepInTheLedgerTellsWhatBackendsCounted) {
  const OnBackend on(failing().name());
  const PolicyScope allow({.fallback = Fallback::allow});
  int fell = 0;
  for (const auto& c : a_case_of_each_op()) {
    SCOPED_TRACE(c.label);
    if (Prepared first(c); !asks_a_kernel(first)) continue;
    Prepared p(c);
    eager::clear_call_cache();
    reset_ledger();
    failing().reset();
    failing().mode = Failing::Mode::refuses;
    p.run();
    failing().mode = Failing::Mode::none;
    uint64_t in = 0, out = 0, here = 0, there = 0;
    for (const auto& row : ledger_rows()) {
      if (row.op == "copy" && row.device.ends_with("-> " + failing().name()))
        in += row.bytes;
      else if (row.op == "copy")
        out += row.bytes;
      else
        (row.device == failing().name() ? here : there) += row.calls;
    }
    EXPECT_EQ(here, 0u);
    EXPECT_GT(there, 0u);
    EXPECT_EQ(in, failing().bytes_in) << ledger_text();
    EXPECT_EQ(out, failing().bytes_out) << ledger_text();
    for (size_t k = 0; k < c.right.size(); ++k) {
      const auto v = judge(from_tensor(p.results[k]), c.right[k]);
      EXPECT_TRUE(v.ok) << v.reason;
    }
    ++fell;
  }
  EXPECT_GT(fell, 90);
}

}  // namespace
}  // namespace weft::testing::strict_test

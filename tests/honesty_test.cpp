#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include "liars.h"
#include "seam_rig.h"
#include "test_backends.h"
#include "weft/ops.h"

// Ordinary conformance checks, and the proof that they bite: every good backend passes all of them, and every
// liar of liars.cpp is found by the check that its entry names.
namespace weft::testing {
namespace {

/// What is wrong with the backend; empty: nothing.
using Finding = std::string;
constexpr auto kNone = static_cast<const char*>(nullptr);

struct Check {
  const char* name;
  Finding (*run)(const std::string& backend);
  const char* not_on = kNone;  ///< a good backend that says it cannot be held to this
};

/// Runs `ask` there and on the oracle; every value is exact, so the bits must be equal.
Finding differs(Rig& rig, seam::Plan& plan, const Ask& ask, const char* what) {
  Rig oracle("reference");
  auto got = rig.launch(plan, ask);
  const auto want = oracle.run(ask);
  if (!got.ok()) return fmt::format("{}: {}", what, got.status().message());
  if (!want.ok()) return fmt::format("{}: the oracle says {}", what, want.status().message());
  for (size_t k = 0; k < got->outputs.size(); ++k)
    if (got->outputs[k].bytes != want.value().outputs[k].bytes)
      return fmt::format("{} of {}: got {}, expected {}", what, ask.op,
                         fmt::join(numbers(got->outputs[k]), " "),
                         fmt::join(numbers(want.value().outputs[k]), " "));
  return {};
}

Finding differs(Rig& rig, const Ask& ask, const char* what) {
  const auto call = describe(ask);
  if (!call.ok()) return call.status().message();
  const auto plan = rig.plan(call.value());
  return plan.ok() ? differs(rig, *plan.value(), ask, what) : plan.status().message();
}

Finding first(std::initializer_list<Finding> findings) {
  for (const auto& f : findings)
    if (!f.empty()) return f;
  return {};
}

const Attr kTransposed = {"transpose_b", int64_t{1}};

std::vector<Ask> usual_calls() {
  const auto x = counting({3, 5}), index = array({4}, {2, 0, 1, 2}, DType::i64);
  return {{"add", {x, counting({3, 5}, 4)}},
          {"mul", {x, counting({5}, 2)}},
          {"matmul", {x, counting({5, 7})}},
          {"sum", {x}, {{"axes", Shape{1}}}},
          {"max", {x}, {{"axes", Shape{0}}, {"keep", int64_t{1}}}},
          {"cast", {x}, {{"dtype", std::string("i32")}}},
          {"gather", {x, index}},
          {"where", {array({3, 5}, {1, 0, 1}, DType::boolean), x, counting({3, 5}, -3)}},
          {"pad", {x}, {{"axis", int64_t{1}}, {"before", Shape{2}}, {"after", Shape{1}}}},
          {"broadcast", {counting({5})}, {{"shape", Shape{3, 5}}}}};
}

Finding writes_every_element(const std::string& backend) {
  Rig rig(backend);
  for (Ask ask : usual_calls())
    for (const double before : {std::numeric_limits<double>::quiet_NaN(), 0.0}) {
      ask.before = before;
      if (auto f = differs(rig, ask, "poisoned output"); !f.empty()) return f;
    }
  return {};
}

Finding follows_its_data(const std::string& backend) {
  Rig rig(backend);
  for (const Ask& ask : usual_calls()) {
    const auto call = describe(ask);
    const auto plan = rig.plan(call.value());
    if (!plan.ok()) return plan.status().message();
    Ask other = ask;  // the same plan, other numbers
    other.inputs[0] = counting(ask.inputs[0].type.shape, 5, ask.inputs[0].type.dtype);
    if (auto f = first({differs(rig, *plan.value(), ask, "first data"),
                        differs(rig, *plan.value(), other, "second data")});
        !f.empty())
      return f;
  }
  return {};
}

Finding adds_where_asked(const std::string& backend) {
  Rig rig(backend);
  const auto a = counting({4, 4}), b = counting({4, 4}, 3);
  for (const char* op : {"add", "matmul"}) {
    const auto plain = Rig("reference").run({op, {a, b}});
    for (const double before : {0.0, 5.0, std::numeric_limits<double>::quiet_NaN()}) {
      const Ask ask = {.op = op, .inputs = {a, b}, .accumulate = 1, .before = before};
      const auto call = describe(ask);
      const auto plan = rig.plan(call.value());
      if (!plan.ok() && plan.status().code() == Code::unsupported) break;  // the host gives it a temporary
      if (!plan.ok()) return plan.status().message();
      const auto run = rig.launch(*plan.value(), ask);
      if (!run.ok()) return run.status().message();
      const auto got = numbers(run.value().outputs[0]), sum = numbers(plain.value().outputs[0]);
      for (size_t i = 0; i < got.size(); ++i)
        if (before != before ? got[i] == got[i] : got[i] != before + sum[i])
          return fmt::format("{} onto {}: got {}, expected {}", op, before, got[i], before + sum[i]);
    }
  }
  return {};
}

Finding honours_attributes(const std::string& backend) {
  Rig rig(backend);
  const auto x = counting({3, 3}), y = counting({3, 3}, 2), deep = counting({2, 3, 2});
  const Attr across = {"axis", int64_t{1}};
  const auto index = array({2}, {1, 0}, DType::i32);
  return first(
      {differs(rig, {"matmul", {x, y}, {kTransposed}}, "transpose_b"),
       differs(rig, {"matmul", {x, y}, {{"transpose_a", int64_t{1}}}}, "transpose_a"),
       differs(rig, {"sum", {deep}, {{"axes", Shape{1}}, {"keep", int64_t{1}}}}, "axes and keep"),
       differs(rig, {"gather", {x, index}, {across}}, "axis"),
       differs(rig,
               {"slice", {counting({9})}, {{"start", Shape{1}}, {"step", int64_t{3}}, {"stop", Shape{8}}}},
               "start, step and stop")});
}

Finding leaves_inputs_alone(const std::string& backend) {
  Rig rig(backend);
  for (const Ask& ask : usual_calls()) {
    const auto run = rig.run(ask);
    if (!run.ok()) return run.status().message();
    for (size_t i = 0; i < ask.inputs.size(); ++i)
      if (run.value().inputs_after[i].bytes != ask.inputs[i].bytes)
        return fmt::format("{} changed its operand {}", ask.op, i);
  }
  return {};
}

// In a child process: reading such a handle ends it. Launch only, since a worker thread is not in the child.
Finding reads_no_handle(const std::string& backend) {
  Rig rig(backend);
  if (rig.device.host_memory()) return {};  // may read: the handle is an address
  const Ask ask = {"add", {counting({4}), counting({4})}};
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const auto x = value_or_raise(rig.upload(ask.inputs[0])), y = value_or_raise(rig.upload(ask.inputs[0]));
  raise_if(rig.queue->synchronize());
  const pid_t child = fork();
  if (child == 0) {
    const weft_tensor *in[] = {&x->c, &x->c}, *out[] = {&y->c};
    _exit(seam::launch(*plan, *rig.queue, in, out, nullptr).ok() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return WIFSIGNALED(status) ? fmt::format("launch died of signal {}", WTERMSIG(status)) : "launch failed";
}

Finding waits_when_asked(const std::string& backend) {
  setenv("WEFT_FAR_DELAY_US", "5000", 1);  // a queue that is surely not done yet
  Rig rig(backend);
  unsetenv("WEFT_FAR_DELAY_US");
  const Ask ask = {"add", {counting({64}), counting({64})}};
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const auto y = value_or_raise(rig.upload(ask.inputs[0]));
  auto x = value_or_raise(rig.upload(ask.inputs[0]));
  const weft_tensor *in[] = {&x->c, &x->c}, *out[] = {&y->c};
  Status s = seam::launch(*plan, *rig.queue, in, out, nullptr);
  if (s.ok()) s = rig.queue->synchronize();
  if (!s.ok()) return s.message();
  x.reset();  // straight back to the backend: synchronize said that the queue has passed
  return rig.queue->synchronize().message();
}

// Eager drops operands while their launches wait. What the pool keeps of them makes room for another size.
Finding keeps_buffers_until_passed(const std::string& backend) {
  const OnBackend on(backend);
  const int64_t n = 8 << 20;
  auto& device = *value_or_raise(seam::registry().open(backend));
  std::vector<Tensor> large, small;
  const std::vector<std::byte> zeros(static_cast<size_t>(n) * sizeof(float));
  for (int i = 0; i < 4; ++i) {
    const int64_t shape[] = {n};
    large.push_back(Tensor::from_bytes(zeros, shape, DType::f32));
  }
  for (int round = 0; round < 40; ++round)
    for (const auto& t : large) small.push_back(slice(t, 0, Dim(round), Dim(round + 4)));
  large.clear();
  const Tensor other = full(0, {n * 5 / 4});
  Finding finding;
  try {
    for (const auto& t : small)
      if (t.to_vector<float>() != std::vector<float>(4)) finding = "an operand was reused before it was read";
  } catch (const Error& e) {
    finding = e.what();
  }
  device.trim();
  return finding;
}

Finding reports_its_errors(const std::string& backend) {
  Rig rig(backend);
  const auto run = rig.run({"gather", {counting({4}), array({1}, {70}, DType::i64)}});
  if (run.ok()) return "index 70 of 4 was no error";
  if (run.status().message().find("index 70") == std::string::npos) return run.status().message();
  return rig.run({"add", {counting({4}), counting({4})}}).status().message();  // and works afterwards
}

Finding serves_the_shape_asked(const std::string& backend) {
  Rig rig(backend);
  for (const char* op : {"add", "mul"})
    for (const int64_t n : {4, 9, 6, 4})
      if (auto f = differs(rig, {op, {counting({n}), counting({n}, 2)}}, "another shape"); !f.empty())
        return f;
  return {};
}

// A device that runs text cannot raise: opencl answers a wild index with NaN (docs/primitives.md).
constexpr Check kChecks[] = {
    {"writes_every_element", writes_every_element},
    {"follows_its_data", follows_its_data},
    {"adds_where_asked", adds_where_asked},
    {"honours_attributes", honours_attributes},
    {"leaves_inputs_alone", leaves_inputs_alone},
    {"reads_no_handle", reads_no_handle, "opencl"},  // a driver's threads do not survive fork
    {"waits_when_asked", waits_when_asked},
    {"keeps_buffers_until_passed", keeps_buffers_until_passed},
    {"reports_its_errors", reports_its_errors, "opencl"},
    {"serves_the_shape_asked", serves_the_shape_asked},
};

Finding run(const Check& check, const std::string& backend) {
  try {
    return check.run(backend);
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Honesty, GoodBackendsPassEveryCheck) {
  WEFT_NEEDS_PLUGIN("far");
  WEFT_NEEDS_PLUGIN("template");
  for (const auto& backend : backends({"reference", "far", "template", "opencl"}))
    for (const auto& check : kChecks) {
      if (check.not_on && backend == check.not_on) continue;
      EXPECT_EQ(run(check, backend), "") << check.name << " on " << backend;
    }
}

TEST(Honesty, EveryLiarIsCaughtByItsCheck) {
  WEFT_NEEDS_PLUGIN("far");
  std::set<std::string> used;
  for (const auto& liar : liars()) {
    wake(liar);
    const auto* check = std::find_if(std::begin(kChecks), std::end(kChecks), [&](const Check& c) {
      return std::string_view(c.name) == liar.caught_by;
    });
    ASSERT_NE(check, std::end(kChecks)) << liar.caught_by;
    const Finding finding = run(*check, liar.name);
    EXPECT_NE(finding, "") << liar.name << " (" << liar.fault << ") is not caught by " << check->name;
    fmt::print("  {:<26} {:<48} {:<27} {}\n", liar.name, liar.fault, check->name, finding.substr(0, 90));
    used.insert(check->name);
  }
  EXPECT_EQ(used.size(), std::size(kChecks)) << "a check that no liar fails proves nothing";
}

}  // namespace
}  // namespace weft::testing

#include "conformance/gradients.h"

#include "conformance/check.h"
#include "conformance/prepared.h"
#include "weft/backends.h"

// A requested gradient is right, or recording the call is an error; it is never silently missing.
namespace weft::conformance::checks::gradients {
namespace {

// The incoming gradient: all elements differ, or gradients that cancel within a row would be zero.
Array seed_like(const Array& a) {
  Random random(17);
  Array seed{a.dtype, a.shape, {}};
  for (size_t i = 0; i < a.v.size(); ++i) seed.v.push_back(round_to(a.dtype, random.normal()));
  return seed;
}

// An op without a gradient must say so when it is recorded, with its name.
Found refuses(CheckRun& run, const PreparedCase& c, const GradientCall& call) {
  std::vector<Tensor> in;
  for (const Array& a : c.inputs) in.push_back(to_tensor(a, run.backend()));
  try {
    (void)conformance::gradients(call, in, to_tensor(seed_like(c.right[0].value), run.backend()));
  } catch (const Error& e) {
    const std::string_view words = e.what();
    return Found::wrong(
        words.find("gradient") == words.npos ? "the error names no gradient: " + std::string(words) : "");
  }
  return Found::wrong("a gradient that it does not have was given, or dropped in silence");
}

Found gives(CheckRun& run, const PreparedCase& c, const GradientCall& call) {
  const Array seed = seed_like(c.right[0].value);
  const auto want = bounded_gradients(call, c.inputs, seed);
  std::vector<Tensor> in;
  for (const Array& a : c.inputs) in.push_back(to_tensor(a, run.backend()));
  const auto got = conformance::gradients(call, in, to_tensor(seed, run.backend()));
  size_t k = 0;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!call.wanted(i)) continue;
    if (!got[k]) return Found::wrong(fmt::format("no gradient of {}", c.op.inputs[i]));
    if (got[k].backend() != run.backend())
      return Found::wrong(fmt::format("the gradient of {} is on {}", c.op.inputs[i], got[k].backend()));
    if (const auto v = judge(from_tensor(got[k]), want[k]); !v.ok)
      return Found::wrong(fmt::format("gradient of {}: {}", c.op.inputs[i], v.reason));
    ++k;
  }
  return {};
}

bool some_float(const PreparedCase& c) {
  for (const Array& a : c.inputs)
    if (is_float(a.dtype) && !a.v.empty()) return true;
  return false;
}

void run(CheckRun& run) {
  for (const auto& file : case_files()) {
    if (!run.wants(file.op)) continue;
    const ir::OpDef& op = op_of(file);
    OpCases cases = file.cases();
    std::erase_if(cases, [](const Case& c) { return c.no_gradient != nullptr; });
    for (Case& c : cases)
      if (has_free_dtype(c)) c.dtypes &= only({DType::f32});
    each_case(
        op, cases, [&](const std::string& label) { return run.wants(label); },
        [&](const PreparedCase& c) {
          if (!some_float(c)) return;
          const GradientCall call{c.op, c.attrs, [&](size_t i) { return is_float(c.inputs[i].dtype); }};
          run.run(c.label, [&] { return op.differentiable ? gives(run, c, call) : refuses(run, c, call); });
        });
  }
}

}  // namespace

extern const Check check = {
    "gradients", "a gradient that is asked for is the right one, or an error when the call is recorded", run};

}  // namespace weft::conformance::checks::gradients

#include "lab/vectors.h"

#include <cmath>
#include <limits>

#include "conformance/sizes/work.h"
#include "lab/passes.h"

namespace weft::lab {

using conformance::Array;
using conformance::Bounded;
using conformance::Real;
using program::Blob;
using program::CompiledProgram;
using program::TestTensor;
using program::TestVector;
using runtime::HostTensor;

namespace {

TestTensor to_test(const std::string& name, const Array& a) {
  const auto bytes = conformance::encode(a);
  return {name, {a.dtype, to_shape(a.shape)}, Blob::copy_of(bytes.data(), bytes.size())};
}

// The bound around the truth as a bound around the nearest number of its dtype. Zero stays zero: no rounding
// is allowed there.
Blob allowed_around(const Array& stored, const Bounded& bound) {
  std::vector<float> allowed;
  bool exact = true;
  for (size_t i = 0; i < bound.error.size(); ++i) {
    Real error = bound.error[i];
    if (error > 0 && std::isfinite(stored.v[i])) error += std::fabs(bound.value.v[i] - stored.v[i]);
    auto up = static_cast<float>(error);
    if (up < error) up = std::nextafter(up, std::numeric_limits<float>::infinity());
    allowed.push_back(up);
    exact = exact && up == 0;
  }
  return exact ? Blob{} : Blob::copy_of(allowed.data(), allowed.size() * sizeof(float));
}

Bounded bound_of(const TestTensor& wanted, const Blob& allowed) {
  Array value = conformance::decode(wanted.type.dtype,
                                    [&] {
                                      conformance::Dims dims;
                                      for (const Dim d : wanted.type.shape) dims.push_back(d.value());
                                      return dims;
                                    }(),
                                    {wanted.bytes.data, wanted.bytes.size});
  Bounded bound = conformance::exactly(std::move(value));
  for (size_t i = 0; i * sizeof(float) < allowed.size; ++i) {
    float error = 0;
    std::memcpy(&error, allowed.data + i * sizeof error, sizeof error);
    bound.error[i] = std::isnan(error) ? 0 : error;
  }
  return bound;
}

HostTensor to_host(const TestTensor& t) {
  HostTensor out{{t.type.dtype, {}}, {t.bytes.data, t.bytes.data + t.bytes.size}};
  for (const Dim d : t.type.shape) out.type.shape.push_back(d.value());
  return out;
}

std::vector<Symbol> sizes_of(const CompiledProgram& p, const TestVector& t) {
  Bindings bindings;
  for (size_t i = 0; i < t.inputs.size(); ++i) {
    const auto& want = p.values[static_cast<size_t>(p.inputs[i].value)].type.shape;
    for (size_t d = 0; d < want.size(); ++d)
      (void)unify(want[d], t.inputs[i].type.shape[d].value(), bindings);
  }
  std::vector<Symbol> sizes;
  for (const auto& [name, value] : bindings.all()) sizes.push_back({name, value, value});
  return sizes;
}

}  // namespace

Result<double> work_of_test(const CompiledProgram& program, std::span<const HostTensor> inputs) {
  WEFT_TRY(const CompiledProgram p, without_symbols(program, inputs));
  double work = 0;
  for (size_t i = 0; i < p.calls.size(); ++i) {
    WEFT_TRY(const auto graph, call_graph(p, i));
    work += conformance::oracle_work(graph);
  }
  return work;
}

Result<TestVector> make_test(const CompiledProgram& program, std::span<const HostTensor> inputs) {
  WEFT_TRY(const CompiledProgram p, without_symbols(program, inputs));
  WEFT_TRY(const auto bounds, bound_whole(p, inputs));
  TestVector test;
  for (size_t i = 0; i < inputs.size(); ++i)
    test.inputs.push_back(to_test(p.inputs[i].name, to_array(inputs[i])));
  for (size_t k = 0; k < bounds.size(); ++k) {
    const auto& name = k < p.outputs.size() ? p.outputs[k].name : p.states[k - p.outputs.size()].name;
    test.wanted.push_back(to_test(name, bounds[k].value));
    const Array stored = bound_of(test.wanted.back(), {}).value;
    test.allowed.push_back(allowed_around(stored, bounds[k]));
  }
  return test;
}

Result<std::vector<Verified>> run_tests(const CompiledProgram& program, const std::string& backend,
                                        const Policy& policy) {
  std::vector<Verified> all;
  for (size_t i = 0; i < program.tests.size(); ++i) {
    const TestVector& test = program.tests[i];
    Verified v{.test = i, .wrong = "", .worst = 0, .sizes = sizes_of(program, test)};
    std::vector<HostTensor> inputs;
    for (const auto& t : test.inputs) inputs.push_back(to_host(t));
    WEFT_TRY(const auto out, run_whole(program, inputs, backend, policy));
    for (size_t k = 0; k < out.size(); ++k) {
      const auto verdict = conformance::judge(to_array(out[k]), bound_of(test.wanted[k], test.allowed[k]));
      v.worst = std::max(v.worst, static_cast<double>(verdict.worst));
      if (!verdict.ok && v.wrong.empty())
        v.wrong = fmt::format("{} {}: {}", k < program.outputs.size() ? "output" : "state",
                              test.wanted[k].name, verdict.reason);
    }
    all.push_back(std::move(v));
  }
  return all;
}

}  // namespace weft::lab

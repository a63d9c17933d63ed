#include "cli/program/tests.h"

#include "cli/show.h"
#include "lab/vectors.h"

namespace weft::cli {

void add_test_options(Syntax& app, TestOptions& o) {
  app.add_option("--tests", o.count,
                 "how many tests the file carries for weft verify; default: 1, if it takes about a second")
      .range(0, 1000);
}

// Twice the sizes of the test before, as far as the symbols go.
static void grow(const program::CompiledProgram& p, int64_t test, ProgramInputs& inputs) {
  inputs.sizes.clear();
  for (const auto& s : p.symbols) {
    int64_t size = std::max<int64_t>(s.min, 1);
    for (int64_t i = 0; i < test && size <= s.max / 2; ++i) size *= 2;
    inputs.sizes.push_back(fmt::format("{}={}", s.name, std::clamp(size, s.min, s.max)));
  }
}

void add_tests(program::CompiledProgram& p, const TestOptions& o, ProgramInputs inputs) {
  if (o.count > 1 && !inputs.file.empty())
    throw UsageError(invalid("--inputs are those of one test; --tests {} wants more", o.count));
  const bool sized = !inputs.sizes.empty();
  for (int64_t i = 0; i < (o.count < 0 ? 1 : o.count); ++i) {
    if (!sized && i > 0) grow(p, i, inputs);
    const auto in = value_or_raise(inputs_of(p, inputs, i));
    if (o.count < 0 && value_or_raise(lab::work_of_test(p, in)) > lab::kMostTestWork)
      return note("the file carries no test: the oracle would take too long; --tests 1 makes one");
    p.tests.push_back(value_or_raise(lab::make_test(p, in)));
  }
}

}  // namespace weft::cli

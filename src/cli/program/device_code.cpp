#include "cli/program/device_code.h"

#include <cstdlib>

#include "cli/program/backend.h"
#include "cli/show.h"
#include "lab/vectors.h"
#include "runtime/devices.h"
#include "weft/policy_scope.h"

namespace weft::cli {

void add_code_options(Syntax& app, CodeOptions& o) {
  app.add_option("--device-code", o.backends,
                 "a backend whose compiled code goes into the file, as its tests want it, for devices of the "
                 "same kind; may be "
                 "given again")
      .one_at_a_time()
      .type_name("BACKEND");
}

static program::DeviceCode code_of(const program::CompiledProgram& p, const std::string& backend) {
  check_computes(backend);
  const seam::NotedArtefacts noted;
  for (const auto& v : value_or_raise(lab::run_tests(p, backend, current_policy())))
    if (!v.wrong.empty()) throw Error(fail(Code::internal, "test {} on {}: {}", v.test, backend, v.wrong));
  const seam::Device& device = *value_or_raise(runtime::devices_for(backend, current_policy()))[0];
  program::DeviceCode code{seam::device_words(device), seam::capability_hash(device), {}};
  for (const auto& [key, bytes] : noted.all())
    code.artefacts.emplace_back(key, program::Blob::copy_of(bytes.data(), bytes.size()));
  return code;
}

void add_device_code(program::CompiledProgram& p, const CodeOptions& o) {
  if (o.backends.empty()) return;
  if (p.tests.empty())
    throw UsageError(
        invalid("--device-code runs the tests of the program, which has none; --tests 1 makes one"));
  ::setenv("WEFT_KEEP_BINARIES", "1", 1);  // PoCL gives binaries away only if asked
  for (const auto& backend : o.backends) {
    auto code = code_of(p, backend);
    if (code.artefacts.empty())
      note(fmt::format("{} compiled nothing that a file could hold", backend));
    else
      p.device_code.push_back(std::move(code));
  }
}

void note_unused_code(const program::CompiledProgram& p, const std::string& backend) {
  if (p.device_code.empty()) return;
  const auto devices = value_or_raise(runtime::devices_for(backend, current_policy()));
  for (const auto& s : runtime::unused_code(p, devices))
    note(fmt::format("{} bytes of section \"{}\" are of no use: {}", s.size, s.name, s.why));
}

}  // namespace weft::cli

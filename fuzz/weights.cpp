#include "program/plan.h"

#include "fuzz/sealed.h"
#include "fuzz/target.h"

namespace weft::fuzz {
namespace {

/// A weight and a state, whose bytes lie in the file "w".
const program::CompiledProgram& owner() {
  static const program::CompiledProgram p = [] {
    const float numbers[] = {1, 2, 3, 4};
    program::CompiledProgram made;
    made.name = "owner";
    made.values = {{{DType::f32, {4}}, 0}, {{DType::f32, {2}}, 0}};
    made.weights = {{"weight", 0, 0}};
    made.states = {{"state", 1, 1, 1}};
    made.blobs = {program::Blob::copy_of(numbers, 16), program::Blob::copy_of(numbers, 8)};
    return made;
  }();
  return p;
}

Result<program::CompiledProgram> read(std::string_view weights) {
  const std::string program = write_head(owner(), write_beside(owner(), "w"));
  return deserialize(program::Blob::copy_of(program.data(), program.size()),
                     [&](const std::string&) -> Result<program::Blob> {
                       return program::Blob::copy_of(weights.data(), weights.size());
                     });
}

}  // namespace

// The file of weights beside a program: what is taken is what the program was compiled with.
void target(std::string_view input) {
  const Sealed mended(input);
  for (const std::string_view bytes : {input, std::string_view(mended.bytes())}) {
    const auto p = read(bytes);
    if (refused(p)) continue;
    expect(program::serialize(p.value()) == program::serialize(owner()), "no other weights are taken");
  }
}

}  // namespace weft::fuzz

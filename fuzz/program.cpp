#include "program/program.h"

#include "fuzz/sealed.h"
#include "fuzz/target.h"

namespace weft::fuzz {
namespace {

Result<program::CompiledProgram> read(std::string_view bytes) {
  return program::deserialize(program::Blob::copy_of(bytes.data(), bytes.size()));
}

}  // namespace

// A program's file.
void target(std::string_view input) {
  if (auto raw = read(input); !refused(raw)) expect(program::verify(*raw).ok(), "what is read is valid");
  auto p = read(Sealed(input).bytes());
  if (refused(p)) return;
  expect(program::verify(*p).ok(), "what is read is valid");
  expect(!program::print(*p).empty(), "a program prints");
  const std::string file = program::serialize(*p);
  auto again = read(file);
  expect(again.ok(), "what is written can be read: " + again.status().text());
  expect(program::serialize(*again) == file, "the same program gives the same bytes");
}

}  // namespace weft::fuzz

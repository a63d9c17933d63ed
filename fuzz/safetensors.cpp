#include "formats/safetensors.h"

#include <algorithm>
#include <cstring>

#include "fuzz/target.h"

namespace weft::fuzz {

using formats::TensorEntry;

static bool same(const TensorEntry& a, const TensorEntry& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

// The bytes of a file.
void target(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  auto file = formats::parse_safetensors(std::vector(bytes.begin(), bytes.end()), "input");
  if (refused(file)) return;
  auto written = formats::encode_safetensors(file->tensors, file->metadata);
  expect(written.ok(), "what is read can be written: " + written.status().text());
  auto again = formats::parse_safetensors(*written, "written");
  expect(again.ok(), "what is written can be read: " + again.status().text());
  expect(again->metadata == file->metadata, "metadata goes round");
  expect(std::ranges::equal(again->tensors, file->tensors, same), "tensors go round");
}

}  // namespace weft::fuzz

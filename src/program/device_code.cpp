#include <algorithm>
#include <cstring>

#include "base/shown.h"
#include "program/plan.h"

// The section "device code": for each kind of device what it is in words, the hash of its capability, a
// count, and as many artefacts, each a key and bytes. Counts are 8 bytes, and so is the length before each
// text.
namespace weft::program {
namespace {

using Bytes = std::span<const std::byte>;

constexpr size_t kLongestKey = 200;

// Each item takes 8 bytes at least, so no count makes the reader allocate more than there is.
Result<uint64_t> take_count(Bytes& rest) {
  uint64_t n = 0;
  if (rest.size() < sizeof n) return invalid("it ends inside a count");
  std::memcpy(&n, rest.data(), sizeof n);
  rest = rest.subspan(sizeof n);
  if (n > rest.size() / 8) return invalid("{} items where {} bytes are left", n, rest.size());
  return n;
}

// Keys become names of files in the user's cache.
bool is_key(std::string_view key) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !key.empty() && key.size() < kLongestKey && key[0] != '.' && std::ranges::all_of(key, plain);
}
bool is_hash(std::string_view text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

Result<DeviceCode> take_device(Bytes& rest, const std::shared_ptr<const void>& owner) {
  DeviceCode code;
  WEFT_TRY(code.device, take_text(rest));
  WEFT_TRY(code.capability, take_text(rest));
  if (code.device.size() > kLongestKey || !is_hash(code.capability))
    return invalid("a device without a name or hash");
  WEFT_TRY(const uint64_t n, take_count(rest));
  for (uint64_t i = 0; i < n; ++i) {
    WEFT_TRY(std::string key, take_text(rest));
    WEFT_TRY(const Bytes bytes, take_bytes(rest));
    if (!is_key(key)) return invalid("artefact {} has no proper key", i);
    if (!code.artefacts.empty() && code.artefacts.back().first >= key)
      return invalid("artefact '{}' does not come after '{}'", shown(key),
                     shown(code.artefacts.back().first));
    code.artefacts.emplace_back(std::move(key), Blob{bytes.data(), bytes.size(), owner});
  }
  return code;
}

}  // namespace

std::string write_device_code(const CompiledProgram& program) {
  std::string out;
  if (program.device_code.empty()) return out;
  append_count(out, program.device_code.size());
  for (const DeviceCode& code : program.device_code) {
    append_text(out, code.device), append_text(out, code.capability);
    append_count(out, code.artefacts.size());
    for (const auto& [key, blob] : code.artefacts)
      append_text(out, key), append_text(out, {reinterpret_cast<const char*>(blob.data), blob.size});
  }
  return out;
}

Status read_device_code(Bytes bytes, const std::shared_ptr<const void>& owner, CompiledProgram& program) {
  if (bytes.empty()) return {};
  WEFT_TRY(const uint64_t n, take_count(bytes));
  if (n == 0) return invalid("it is there, and holds none");
  for (uint64_t i = 0; i < n; ++i) {
    WEFT_TRY(auto code, take_device(bytes, owner));
    program.device_code.push_back(std::move(code));
  }
  if (!bytes.empty()) return invalid("bytes follow the last one");
  return {};
}

}  // namespace weft::program

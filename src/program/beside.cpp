#include <cstring>
#include <map>

#include "base/shown.h"
#include "program/container.h"
#include "program/plan.h"

// A program and the file of its weights, both containers. The program says what each blob of the other file
// is: "beside" holds the file's name, then the size and the hash of each blob, in 24 bytes. The file says it,
// too: "weights" holds the name and the type of each blob. So a file that was changed is told from one that
// was damaged, and what differs is said in words.
namespace weft::program {
namespace {

using Bytes = std::span<const std::byte>;

struct Named {
  std::string name, type;  // "weight 'blocks.0.norm.bias'", "f32[16]"
};

/// What each of `n` blobs is. Also for programs that verify() refuses: an index may be out of range.
std::vector<Named> names_of(const CompiledProgram& p, size_t n) {
  std::vector<Named> out(n);
  const auto add = [&](const char* kind, const std::string& name, ValueId value, int32_t blob) {
    if (blob < 0 || static_cast<size_t>(blob) >= n || !out[static_cast<size_t>(blob)].name.empty()) return;
    const bool known = value >= 0 && static_cast<size_t>(value) < p.values.size();
    out[static_cast<size_t>(blob)] = {fmt::format("{} '{}'", kind, name),
                                      known ? text(p.values[static_cast<size_t>(value)].type) : "?"};
  };
  for (const auto& w : p.weights) add("weight", w.name, w.value, w.blob);
  for (const auto& s : p.states) add("state", s.name, s.before, s.blob);
  for (size_t i = 0; i < n; ++i)
    if (out[i].name.empty()) out[i] = {fmt::format("blob {}", i), "bytes"};
  return out;
}

struct Expected {
  uint64_t size = 0;
  Hash hash;
};
struct Beside {
  std::string file;
  std::vector<Expected> blobs;
};
static_assert(sizeof(Expected) == 24);

Result<Beside> read_beside(Bytes bytes) {
  Beside out;
  WEFT_TRY(out.file, take_text(bytes));
  const auto bad = [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (out.file.empty() || out.file == "." || out.file == ".." || std::ranges::any_of(out.file, bad))
    return invalid("it names no file of a folder");
  if (bytes.size() % sizeof(Expected) != 0)
    return invalid("{} bytes are not a multiple of {}", bytes.size(), sizeof(Expected));
  out.blobs.resize(bytes.size() / sizeof(Expected));
  if (!bytes.empty()) std::memcpy(out.blobs.data(), bytes.data(), bytes.size());
  return out;
}

Result<std::map<std::string, size_t>> read_weights(Bytes bytes, size_t blobs,
                                                   std::vector<std::string>& types) {
  std::map<std::string, size_t> places;
  while (!bytes.empty()) {
    WEFT_TRY(std::string name, take_text(bytes));
    WEFT_TRY(types.emplace_back(), take_text(bytes));
    if (!places.emplace(std::move(name), types.size() - 1).second) return invalid("two have one name");
  }
  if (types.size() != blobs) return invalid("{} names for {} blobs", types.size(), blobs);
  return places;
}

/// "missing: weight 'a', weight 'b' and 7 more", where there are some.
void say(std::string& out, const char* what, const std::vector<std::string>& which) {
  constexpr size_t kSaid = 5;
  if (which.empty()) return;
  out += fmt::format("{}{}: ", out.empty() ? "" : "; ", what);
  for (size_t i = 0; i < std::min(kSaid, which.size()); ++i) out += (i ? ", " : "") + which[i];
  if (which.size() > kSaid) out += fmt::format(" and {} more", which.size() - kSaid);
}

/// The blobs of `file`, in the program's order.
Result<std::vector<size_t>> match(const Container& file, const Beside& beside, const CompiledProgram& p) {
  std::vector<std::string> types, missing, extra, other, changed;
  auto places = read_weights(file.weights, file.blobs.size(), types);
  if (!places.ok()) return fail(Code::corrupt, "weights: {}", places.status().message());
  std::vector<size_t> out;
  const auto wanted = names_of(p, beside.blobs.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto at = places->find(wanted[i].name);
    if (at == places->end()) {
      missing.push_back(shown(wanted[i].name));
      continue;
    }
    const size_t k = at->second;
    places->erase(at);
    out.push_back(k);
    if (types[k] != wanted[i].type)
      other.push_back(
          fmt::format("{} is {}, there {}", shown(wanted[i].name), shown(wanted[i].type), shown(types[k])));
    else if (file.blobs[k].size() != beside.blobs[i].size || file.hashes[k] != beside.blobs[i].hash)
      changed.push_back(shown(wanted[i].name));
  }
  for (const auto& [name, place] : *places) extra.push_back(shown(name));
  std::string wrong;
  say(wrong, "missing", missing), say(wrong, "not of the program", extra);
  say(wrong, "of another type", other), say(wrong, "changed since it was compiled", changed);
  if (!wrong.empty()) return fail(Code::corrupt, "they are not those of the program: {}", wrong);
  return out;
}

Status attach(const Beside& beside, const OpenWeights& open, CompiledProgram& p) {
  if (!open)
    return fail(Code::unavailable, "they lie in a file, so the program must be loaded from one, too");
  WEFT_TRY(Blob bytes, open(beside.file));
  if (reinterpret_cast<uintptr_t>(bytes.data) % 64 != 0) bytes = Blob::copy_of(bytes.data, bytes.size);
  WEFT_TRY(const Container file, open_container({bytes.data, bytes.size}));
  if (file.holds != Holds::weights)
    return fail(Code::corrupt, "header: it is a program, not a file of weights");
  WEFT_TRY(const auto places, match(file, beside, p));
  for (const size_t k : places) p.blobs.push_back({file.blobs[k].data(), file.blobs[k].size(), bytes.owner});
  return {};
}

}  // namespace

std::string write_beside(const CompiledProgram& program, std::string_view file) {
  std::string out;
  append_text(out, file);
  for (const Blob& b : program.blobs) {
    const Expected e{b.size, hash128({b.data, b.size})};
    out.append(reinterpret_cast<const char*>(&e), sizeof e);
  }
  return out;
}

std::string write_weights(const CompiledProgram& program) {
  std::string out;
  for (const Named& b : names_of(program, program.blobs.size()))
    append_text(out, b.name), append_text(out, b.type);
  return out;
}

Status take_beside(Bytes section, const OpenWeights& open, CompiledProgram& program) {
  auto beside = read_beside(section);
  if (!beside.ok()) return fail(Code::corrupt, "beside: {}", beside.status().message());
  program.weights_file = beside->file;
  return attach(*beside, open, program).at(fmt::format("weights in {}", shown(beside->file)));
}

}  // namespace weft::program

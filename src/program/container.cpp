#include "program/container.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace weft::program {
namespace {

static_assert(std::endian::native == std::endian::little, "the file is little-endian and read in place");

constexpr uint64_t kAlign = 64;
constexpr uint16_t kMajor = 1;
// Bit k: feature k, which a reader must know to read the file.
constexpr uint64_t kBeside = 1;   // the blobs are in another file
constexpr uint64_t kWeights = 2;  // there is no plan: it is that other file
constexpr uint64_t kKnownFeatures = kBeside | kWeights;
constexpr uint32_t kMaxSections = 1024;
constexpr std::array<std::string_view, 8> kKnown = {"plan",   "origin",  "test vectors", "device code",
                                                    "beside", "weights", "blob table",   "blobs"};
constexpr std::array<char, 8> kMagic = {'\x89', 'W',  'E',  'F',
                                        'T',    '\r', '\n', '\x1a'};  // shows text-mode damage

struct Header {
  std::array<char, 8> magic = kMagic;
  uint16_t major = kMajor, minor = 0;  // the smallest that has what is in the file
  uint32_t sections = 0;
  uint64_t features = 0;
  uint64_t file_size = 0;
  Hash table;
  Hash self;  // of the bytes before it
};
struct Entry {
  char name[16] = {};  // zero-padded
  uint64_t offset = 0, size = 0;
  Hash hash;  // zero for "blobs": the blob table holds one hash a blob
};
struct BlobEntry {
  uint64_t offset = 0, size = 0;  // from the start of section "blobs"
  Hash hash;
};
static_assert(sizeof(Header) == 64 && sizeof(Entry) == 48 && sizeof(BlobEntry) == 32);

using Bytes = std::span<const std::byte>;

Bytes bytes_of(const void* data, size_t n) { return {static_cast<const std::byte*>(data), n}; }
constexpr uint64_t align_up(uint64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

template <class T>
void append(std::string& out, const T& record) {
  out.append(reinterpret_cast<const char*>(&record), sizeof record);
}

template <class T>
T record_at(Bytes file, uint64_t at) {
  T t;
  std::memcpy(&t, file.data() + at, sizeof t);
  return t;
}

template <class... A>
Status corrupt(fmt::format_string<A...> text, A&&... args) {
  return fail(Code::corrupt, text, std::forward<A>(args)...);
}

/// Checks that bytes [from, to) are in the file and zero; the error is about what follows them.
Status check_padding(Bytes file, uint64_t from, uint64_t to, std::string_view before) {
  for (uint64_t i = from; i < to; ++i)
    if (file[i] != std::byte{0})
      return corrupt("{}: the padding before it is not zero at byte {}", before, i);
  return {};
}

Result<Header> read_header(Bytes file) {
  if (file.size() < sizeof(Header))
    return corrupt("header: {} bytes are too few for a Weft program", file.size());
  const auto h = record_at<Header>(file, 0);
  if (h.magic != kMagic) return corrupt("header: not a Weft program (the first 8 bytes differ)");
  if (hash128(file.first(offsetof(Header, self))) != h.self) return corrupt("header: its hash differs");
  if (h.major != kMajor)
    return fail(Code::version, "header: format version {}.{}; this Weft reads {}.x", h.major, h.minor,
                kMajor);
  if (const uint64_t unknown = h.features & ~kKnownFeatures)
    return fail(Code::version, "header: needs feature {}, which this Weft does not know; use a newer one",
                std::countr_zero(unknown));
  if (h.features == (kBeside | kWeights)) return corrupt("header: features 0 and 1 exclude each other");
  if (h.file_size != file.size())
    return corrupt("header: the file has {} bytes, its header says {}", file.size(), h.file_size);
  return h;
}

struct Section {
  std::string name;
  Bytes bytes;
};

/// Section names appear in messages: letters and spaces, then zeros up to the end.
Result<std::string> section_name(const Entry& e, size_t index) {
  const size_t n = strnlen(e.name, sizeof e.name);
  bool good = n > 0;
  for (size_t i = 0; i < sizeof e.name; ++i) {
    const char c = e.name[i];
    good = good && (i < n ? (c >= 'a' && c <= 'z') || c == ' ' : c == 0);
  }
  if (!good) return corrupt("section table: section {} has no proper name", index);
  return std::string(e.name, n);
}

Result<std::vector<Section>> read_table(Bytes file, const Header& h) {
  const uint64_t end = sizeof(Header) + uint64_t{h.sections} * sizeof(Entry);
  if (h.sections > kMaxSections || end > file.size())
    return corrupt("section table: {} sections do not fit a file of {} bytes", h.sections, file.size());
  if (hash128(file.subspan(sizeof(Header), end - sizeof(Header))) != h.table)
    return corrupt("section table: its hash differs");
  std::vector<Section> sections;
  uint64_t at = end;
  for (uint32_t i = 0; i < h.sections; ++i) {
    const auto e = record_at<Entry>(file, sizeof(Header) + i * sizeof(Entry));
    WEFT_TRY(std::string name, section_name(e, i));
    for (const auto& s : sections)
      if (s.name == name) return corrupt("section table: two sections are called {}", name);
    if (e.offset != align_up(at) || e.offset > file.size() || e.size > file.size() - e.offset)
      return corrupt("section table: {} has {} bytes at {}; wanted it at {}, inside {} bytes", name, e.size,
                     e.offset, align_up(at), file.size());
    WEFT_CHECK(check_padding(file, at, e.offset, name));
    const Bytes bytes = file.subspan(e.offset, e.size);
    if ((name == "blobs" ? Hash{} : hash128(bytes)) != e.hash) return corrupt("{}: its hash differs", name);
    sections.push_back({std::move(name), bytes});
    at = e.offset + e.size;
  }
  if (at != file.size()) return corrupt("section table: sections end at {} of {} bytes", at, file.size());
  return sections;
}

Result<Bytes> find(const std::vector<Section>& sections, std::string_view name) {
  for (const auto& s : sections)
    if (s.name == name) return s.bytes;
  return corrupt("section table: no section {}", name);
}

Status read_blobs(Bytes table, Bytes blobs, Container& c) {
  if (table.size() % sizeof(BlobEntry) != 0)
    return corrupt("blob table: {} bytes are not a multiple of {}", table.size(), sizeof(BlobEntry));
  uint64_t at = 0;
  for (size_t i = 0; i < table.size() / sizeof(BlobEntry); ++i) {
    const auto e = record_at<BlobEntry>(table, i * sizeof(BlobEntry));
    if (e.offset != align_up(at) || e.offset > blobs.size() || e.size > blobs.size() - e.offset)
      return corrupt("blob table: blob {} has {} bytes at {}; wanted it at {}, inside {} bytes", i, e.size,
                     e.offset, align_up(at), blobs.size());
    const std::string name = fmt::format("blob {}", i);
    WEFT_CHECK(check_padding(blobs, at, e.offset, name));
    c.blobs.push_back(blobs.subspan(e.offset, e.size));
    c.hashes.push_back(e.hash);
    if (hash128(c.blobs.back()) != e.hash) return corrupt("{}: its hash differs", name);
    at = e.offset + e.size;
  }
  if (at != blobs.size()) return corrupt("blob table: blobs end at {} of {} bytes", at, blobs.size());
  return {};
}

Entry entry(std::string_view name, uint64_t after, uint64_t size, Hash hash) {
  Entry e{.offset = align_up(after), .size = size, .hash = hash};
  name.copy(e.name, sizeof e.name);
  return e;
}

}  // namespace

size_t blob_padding(std::span<const Blob> blobs, size_t i) {
  return i + 1 == blobs.size() ? 0 : align_up(blobs[i].size) - blobs[i].size;
}

std::string container_head(const std::vector<NamedSection>& given, std::span<const Blob> blobs, Holds holds) {
  std::string blob_table;
  uint64_t blob_bytes = 0;
  for (const Blob& b : blobs) {
    append(blob_table, BlobEntry{align_up(blob_bytes), b.size, hash128({b.data, b.size})});
    blob_bytes = align_up(blob_bytes) + b.size;
  }
  std::vector<NamedSection> sections;
  for (const NamedSection& s : given)
    if (!s.bytes.empty() || (s.name != "test vectors" && s.name != "device code" && s.name != "beside"))
      sections.push_back(s);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(sections, name, &NamedSection::name) != sections.end();
  };
  const int minor = has("device code") ? 3 : holds != Holds::program ? 2 : has("test vectors") ? 1 : 0;
  sections.push_back({"blob table", blob_table});
  const auto n = static_cast<uint32_t>(sections.size()) + 1;
  uint64_t at = sizeof(Header) + n * sizeof(Entry);
  std::string table;
  for (const auto& [name, body] : sections) {
    const Entry e = entry(name, at, body.size(), hash128(bytes_of(body.data(), body.size())));
    append(table, e);
    at = e.offset + e.size;
  }
  append(table, entry("blobs", at, blob_bytes, {}));

  Header h{.minor = static_cast<uint16_t>(minor),
           .sections = n,
           .features = holds == Holds::program_beside ? kBeside
                       : holds == Holds::weights      ? kWeights
                                                      : 0,
           .file_size = align_up(at) + blob_bytes,
           .table = hash128(bytes_of(table.data(), table.size()))};
  h.self = hash128(bytes_of(&h, offsetof(Header, self)));
  std::string out;
  append(out, h);
  out += table;
  for (const auto& [name, body] : sections) {
    out.resize(align_up(out.size()));
    out += body;
  }
  out.resize(align_up(out.size()));
  return out;
}

Result<Container> open_container(Bytes file) {
  WEFT_TRY(const Header header, read_header(file));
  WEFT_TRY(const auto sections, read_table(file, header));
  Container c;
  c.holds = header.features == kBeside    ? Holds::program_beside
            : header.features == kWeights ? Holds::weights
                                          : Holds::program;
  if (c.holds == Holds::weights) {
    WEFT_TRY(c.weights, find(sections, "weights"));
  } else {
    WEFT_TRY(c.plan, find(sections, "plan"));
    WEFT_TRY(c.origin, find(sections, "origin"));
  }
  if (c.holds == Holds::program_beside) {
    WEFT_TRY(c.beside, find(sections, "beside"));
  }
  for (const auto& s : sections) {
    if (s.name == "test vectors") c.tests = s.bytes;
    if (s.name == "device code") c.code = s.bytes;
    if (std::ranges::find(kKnown, s.name) == kKnown.end())
      c.skipped.push_back({s.name, s.bytes.size(), "this Weft does not know it"});
  }
  WEFT_TRY(const Bytes table, find(sections, "blob table"));
  WEFT_TRY(const Bytes blobs, find(sections, "blobs"));
  WEFT_CHECK(read_blobs(table, blobs, c));
  return c;
}

}  // namespace weft::program

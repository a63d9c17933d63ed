#include "formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/output_file.h"
#include "base/shown.h"
#include "formats/json.h"

namespace weft::formats {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie");

constexpr const char* kMetadata = "__metadata__";

struct DTypeName {
  DType dtype;
  const char* name;
};
constexpr DTypeName kNames[] = {
    {DType::f64, "F64"},        {DType::f32, "F32"}, {DType::f16, "F16"}, {DType::bf16, "BF16"},
    {DType::i32, "I32"},        {DType::i64, "I64"}, {DType::u32, "U32"}, {DType::u64, "U64"},
    {DType::boolean, "BOOL"},   {DType::u8, "U8"},   {DType::i8, "I8"},   {DType::f8e4m3, "F8_E4M3"},
    {DType::f8e5m2, "F8_E5M2"},
};

const char* format_name(DType t) {
  return std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& n) { return n.dtype == t; })
      ->name;
}

// Product of shape and element size; false if it overflows 64 bits, as in a damaged file.
bool checked_bytes(std::span<const int64_t> shape, DType dtype, uint64_t& bytes) {
  bytes = byte_size(dtype);
  for (const int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes)) return false;
  return true;
}

template <class... A>
Status damaged(const std::string& where, fmt::format_string<A...> text, A&&... args) {
  return fail(Code::corrupt, "{}: damaged or no safetensors file: {}", where,
              fmt::format(text, std::forward<A>(args)...));
}

Result<DType> read_dtype(const std::string& where, const std::string& tensor, const json& fields) {
  const auto field = fields.find("dtype");
  if (field == fields.end() || !field->is_string())
    return damaged(where, "tensor '{}' has no text field 'dtype'", shown(tensor));
  const auto& text = field->get_ref<const std::string&>();
  for (const auto& n : kNames)
    if (text == n.name) return n.dtype;
  return damaged(where, "tensor '{}' has the unknown dtype '{}'", shown(tensor), shown(text));
}

Result<std::vector<uint64_t>> read_numbers(const std::string& where, const std::string& tensor,
                                           const json& fields, const char* name) {
  const auto field = fields.find(name);
  if (field == fields.end() || !field->is_array())
    return damaged(where, "tensor '{}' has no list '{}'", shown(tensor), name);
  std::vector<uint64_t> out;
  for (const auto& v : *field) {
    if (!v.is_number_unsigned() || v.get<uint64_t>() > uint64_t{INT64_MAX})
      return damaged(where, "tensor '{}': '{}' holds {}, no size", shown(tensor), name, shown(json_text(v)));
    out.push_back(v.get<uint64_t>());
  }
  return out;
}

Result<TensorEntry> read_entry(const std::string& where, const std::string& name, const json& fields,
                               std::span<const std::byte> data) {
  if (!fields.is_object()) return damaged(where, "tensor '{}' is no object", shown(name));
  TensorEntry e;
  e.name = name;
  WEFT_TRY(e.dtype, read_dtype(where, name, fields));
  WEFT_TRY(const auto shape, read_numbers(where, name, fields, "shape"));
  WEFT_TRY(const auto offsets, read_numbers(where, name, fields, "data_offsets"));
  e.shape.assign(shape.begin(), shape.end());
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size())
    return damaged(where, "tensor '{}': data_offsets must be [begin, end] within {} bytes, got {}",
                   shown(name), data.size(), shown(json_text(fields["data_offsets"])));
  uint64_t bytes = 0;
  if (!checked_bytes(e.shape, e.dtype, bytes) || bytes != offsets[1] - offsets[0])
    return damaged(where, "tensor '{}': {}{} does not have {} bytes", shown(name), weft::name(e.dtype),
                   shown(text(std::span<const int64_t>(e.shape))), offsets[1] - offsets[0]);
  e.bytes = data.subspan(offsets[0], bytes);
  return e;
}

Status read_metadata(const std::string& where, const json& fields, std::map<std::string, std::string>& out) {
  if (!fields.is_object()) return damaged(where, "__metadata__ is no object");
  for (const auto& [key, value] : fields.items()) {
    if (!value.is_string()) return damaged(where, "__metadata__ field '{}' is no text", shown(key));
    out[key] = value.get<std::string>();
  }
  return {};
}

// Every byte of the data belongs to exactly one tensor, as the format requires.
Status check_cover(const std::string& where, const Safetensors& file, std::span<const std::byte> data) {
  const std::byte* at = data.data();
  for (const auto& t : file.tensors) {
    if (t.bytes.data() < at)
      return damaged(where, "the bytes of tensor '{}' overlap another's", shown(t.name));
    if (t.bytes.data() > at)
      return damaged(where, "{} bytes before tensor '{}' belong to no tensor", t.bytes.data() - at,
                     shown(t.name));
    at += t.bytes.size();
  }
  const auto rest = data.data() + data.size() - at;
  return rest == 0 ? Status() : damaged(where, "{} bytes at the end belong to no tensor", rest);
}

}  // namespace

const TensorEntry* Safetensors::find(std::string_view name) const {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  return at == tensors.end() ? nullptr : &*at;
}

Result<Safetensors> parse_safetensors(std::vector<std::byte> bytes, const std::string& where) {
  const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return parse_safetensors(SharedBytes{kept, *kept}, where);
}

Result<Safetensors> parse_safetensors(SharedBytes bytes, const std::string& where) {
  Safetensors file;
  file.file = std::move(bytes);
  const auto all = file.file.bytes;
  uint64_t header = 0;
  if (all.size() < sizeof header) return damaged(where, "it has {} bytes, too few for a header", all.size());
  std::memcpy(&header, all.data(), sizeof header);
  if (header > kMaxSafetensorsHeader)
    return damaged(where, "the header says {} bytes, the format has at most {}", header,
                   kMaxSafetensorsHeader);
  if (header > all.size() - sizeof header)
    return damaged(where, "the header says {} bytes, the file has {}", header, all.size());
  const char* text = reinterpret_cast<const char*>(all.data()) + sizeof header;
  WEFT_TRY(const json root,
           parse_json_object({text, header}, where + ": damaged or no safetensors file: the header"));
  const auto data = all.subspan(sizeof header + header);
  for (const auto& [name, fields] : root.items()) {
    if (name == kMetadata) {
      WEFT_CHECK(read_metadata(where, fields, file.metadata));
      continue;
    }
    WEFT_TRY(auto entry, read_entry(where, name, fields, data));
    file.tensors.push_back(std::move(entry));
  }
  std::stable_sort(file.tensors.begin(), file.tensors.end(), [](const auto& a, const auto& b) {
    return a.bytes.data() != b.bytes.data() ? a.bytes.data() < b.bytes.data()
                                            : a.bytes.size() < b.bytes.size();
  });
  WEFT_CHECK(check_cover(where, file, data));
  return file;
}

Result<Safetensors> read_safetensors(const std::string& path) {
  WEFT_TRY(auto bytes, read_file(path));
  return parse_safetensors(std::move(bytes), path);
}

Result<Safetensors> map_safetensors(const std::string& path) {
  WEFT_TRY(auto bytes, map_file(path));
  return parse_safetensors(std::move(bytes), path);
}

// Names must be UTF-8 and not the reserved one.
static Status check_words(std::span<const TensorEntry> tensors,
                          const std::map<std::string, std::string>& metadata) {
  for (const auto& t : tensors) {
    if (t.name == kMetadata) return invalid("safetensors: no tensor can be named '{}'", kMetadata);
    if (!is_json_text(t.name))
      return invalid("safetensors: the name {} of a tensor is not UTF-8", shown(json_quoted(t.name)));
  }
  for (const auto& [key, value] : metadata)
    if (!is_json_text(key) || !is_json_text(value))
      return invalid("safetensors: the metadata {}: {} is not UTF-8", shown(json_quoted(key)),
                     shown(json_quoted(value)));
  return {};
}

// Everything before the elements: the length of the header, and the header.
static Result<std::string> encode_header(std::span<const TensorEntry> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  WEFT_CHECK(check_words(tensors, metadata));
  json header = json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t at = 0;
  for (const auto& t : tensors) {
    uint64_t bytes = 0;
    if (!checked_bytes(t.shape, t.dtype, bytes) || __builtin_add_overflow(at, bytes, &bytes))
      return invalid("safetensors: tensor '{}' of {}{} has no size that a number holds", shown(t.name),
                     name(t.dtype), text(std::span<const int64_t>(t.shape)));
    if (header.contains(t.name)) return invalid("safetensors: the name '{}' appears twice", shown(t.name));
    header[t.name] = {{"dtype", format_name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {at, bytes}}};
    at = bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // aligns the elements to 8
  const uint64_t length = text.size();
  if (length > kMaxSafetensorsHeader)
    return invalid("safetensors: names and metadata take {} bytes, the format's header has at most {}",
                   length, kMaxSafetensorsHeader);
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

static Status check_size(const TensorEntry& t, std::span<const std::byte> elements) {
  uint64_t bytes = 0;
  if (!checked_bytes(t.shape, t.dtype, bytes) || bytes != elements.size())
    return invalid("safetensors: tensor '{}' of {}{} has {} bytes", shown(t.name), name(t.dtype),
                   text(std::span<const int64_t>(t.shape)), elements.size());
  return {};
}

Result<std::vector<std::byte>> encode_safetensors(std::span<const TensorEntry> tensors,
                                                  const std::map<std::string, std::string>& metadata) {
  WEFT_TRY(const auto header, encode_header(tensors, metadata));
  const auto begin = std::as_bytes(std::span(header));
  std::vector<std::byte> out(begin.begin(), begin.end());
  for (const auto& t : tensors) {
    WEFT_CHECK(check_size(t, t.bytes));
    out.insert(out.end(), t.bytes.begin(), t.bytes.end());
  }
  return out;
}

void order_by_width(std::vector<TensorEntry>& tensors) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto& a, const auto& b) { return byte_size(a.dtype) > byte_size(b.dtype); });
}

// `elements` returns memory of the caller, or a vector that is freed once written.
template <class Elements>
static Status write_tensors(const std::string& path, std::span<const TensorEntry> tensors,
                            const std::map<std::string, std::string>& metadata, const Elements& elements) {
  WEFT_TRY(const auto header, encode_header(tensors, metadata));
  WEFT_TRY(auto file, OutputFile::open(path));
  WEFT_CHECK(file.write(std::as_bytes(std::span(header))));
  for (const auto& t : tensors) {
    const auto& bytes = elements(t);
    WEFT_CHECK(check_size(t, bytes));
    WEFT_CHECK(file.write(bytes));
  }
  return file.commit();
}

Status write_safetensors(const std::string& path, std::span<const TensorEntry> tensors,
                         const std::map<std::string, std::string>& metadata) {
  for (const auto& t : tensors) WEFT_CHECK(check_size(t, t.bytes));  // before anything is written to a pipe
  return write_tensors(path, tensors, metadata, [](const TensorEntry& t) { return t.bytes; });
}

Status write_safetensors(const std::string& path, std::span<const TensorEntry> tensors,
                         const std::map<std::string, std::string>& metadata,
                         const std::function<std::vector<std::byte>(const TensorEntry&)>& elements) {
  return write_tensors(path, tensors, metadata, elements);
}

}  // namespace weft::formats

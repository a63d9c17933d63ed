#include "weft/checkpoint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/safetensors.h"

namespace weft::nn {
namespace {

using nlohmann::json;

constexpr const char* kKind = "char_model";
constexpr int kVersion = 1;

// Of the description and every tensor's bytes, each beginning from the one before. It notices accidents, not
// enemies.
std::string hash(json description, std::span<const formats::TensorEntry> tensors) {
  description.erase("hash");
  const std::string text = description.dump();
  uint64_t h = XXH3_64bits(text.data(), text.size());
  for (const auto& t : tensors) h = XXH3_64bits_withSeed(t.bytes.data(), t.bytes.size(), h);
  return fmt::format("{:016x}", h);
}

std::vector<Tensor> all_tensors(const CharModel& model, const AdamW& optimizer) {
  auto all = parameters(model);
  for (const auto& list : {states(model), optimizer.states()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

json to_json(const RunInfo& info) {
  const auto& c = info.config;
  return {{"kind", kKind},
          {"version", kVersion},
          {"vocabulary", io::to_utf8(info.vocabulary.characters())},
          {"context", c.context},
          {"embed", c.embed},
          {"hidden", c.hidden},
          {"dropout", c.dropout},
          {"step", info.step},
          {"seed", info.seed}};
}

Status bad_field(const std::string& path, const char* name, const std::string& why) {
  return fail(Code::corrupt, "{}: field '{}' {}", path, name, why);
}

template <class T>
Status read_field(const std::string& path, const json& root, const char* name, T& to) {
  const auto at = root.find(name);
  if (at == root.end()) return bad_field(path, name, "is missing");
  const bool fits = std::is_same_v<T, std::string> ? at->is_string()
                    : std::is_floating_point_v<T>  ? at->is_number()
                    : std::is_signed_v<T>          ? at->is_number_integer() && *at >= 0
                                                   : at->is_number_unsigned();
  if (!fits) return bad_field(path, name, "has the wrong kind of value, " + at->dump());
  to = at->get<T>();
  return {};
}

Status check_sizes(const std::string& path, const CharModelConfig& c, size_t have_bytes) {
  // Far beyond what is useful, and small enough that no product leaves 64 bits.
  constexpr int64_t kMost = 1 << 20;
  for (const auto& [name, value] :
       {std::pair("context", c.context), {"embed", c.embed}, {"hidden", c.hidden}})
    if (value < 1 || value > kMost)
      return bad_field(path, name, fmt::format("is {}, wanted 1 to {}", value, kMost));
  if (!(c.dropout >= 0 && c.dropout < 1))
    return bad_field(path, "dropout", fmt::format("is {}, wanted [0, 1)", c.dropout));
  // A model is made in the sizes of the description before its tensors are looked at: they must be able to be
  // there.
  const double weights =
      double(c.context) * double(c.embed) * double(c.hidden) + double(c.hidden) * double(c.hidden);
  if (weights > double(have_bytes))
    return fail(Code::corrupt,
                "{}: fields 'context' {}, 'embed' {} and 'hidden' {} ask for more weights than the file has",
                path, c.context, c.embed, c.hidden);
  return {};
}

Result<json> read_description(const std::string& path, const formats::Safetensors& file) {
  const auto text = file.metadata.find("weft");
  if (text == file.metadata.end())
    return bad_field(path, "weft", "is missing in the metadata: not a Weft checkpoint");
  json root = json::parse(text->second, nullptr, false);
  if (!root.is_object()) return bad_field(path, "weft", "holds no JSON object");
  return root;
}

Result<RunInfo> read_info(const std::string& path, const json& root, const formats::Safetensors& file) {
  RunInfo info;
  std::string kind, vocabulary;
  int64_t version = 0;
  WEFT_CHECK(read_field(path, root, "kind", kind));
  if (kind != kKind)
    return bad_field(path, "kind", fmt::format("is '{}', wanted '{}': another model", kind, kKind));
  WEFT_CHECK(read_field(path, root, "version", version));
  if (version != kVersion)
    return bad_field(path, "version", fmt::format("is {}, this program reads {}", version, kVersion));
  WEFT_CHECK(read_field(path, root, "vocabulary", vocabulary));
  WEFT_CHECK(read_field(path, root, "context", info.config.context));
  WEFT_CHECK(read_field(path, root, "embed", info.config.embed));
  WEFT_CHECK(read_field(path, root, "hidden", info.config.hidden));
  WEFT_CHECK(read_field(path, root, "dropout", info.config.dropout));
  WEFT_CHECK(read_field(path, root, "step", info.step));
  WEFT_CHECK(read_field(path, root, "seed", info.seed));
  WEFT_CHECK(check_sizes(path, info.config, file.data.size()));
  try {
    info.vocabulary = io::Vocabulary(io::from_utf8(vocabulary));
  } catch (const Error& e) {
    return bad_field(path, "vocabulary", e.status().message());
  }
  info.config.vocabulary = info.vocabulary.size();
  return info;
}

// Last, because whatever is wrong in a more telling way has been said by then.
Status check_hash(const std::string& path, const json& root, const formats::Safetensors& file) {
  std::string said;
  WEFT_CHECK(read_field(path, root, "hash", said));
  if (said != hash(root, file.tensors))
    return bad_field(path, "hash", "does not match what the file holds: damaged");
  return {};
}

Tensor take(const std::string& path, const formats::Safetensors& file, const std::string& name,
            const TensorType& want) {
  const auto* e = file.find(name);
  if (!e) throw Error(fail(Code::corrupt, "{}: tensor '{}' is missing", path, name));
  const TensorType have{e->dtype, to_shape(e->shape)};
  if (!(have == want))
    throw Error(
        fail(Code::corrupt, "{}: tensor '{}' is {}, the model wants {}", path, name, text(have), text(want)));
  return Tensor::from_bytes(e->bytes, e->shape, e->dtype);
}

void make_folder(const std::string& folder) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) throw Error(fail(Code::io, "can't make the folder {}: {}", folder, ec.message()));
}

}  // namespace

std::string checkpoint_path(const std::string& folder) {
  return (std::filesystem::path(folder) / "model.safetensors").string();
}
bool has_checkpoint(const std::string& folder) { return std::filesystem::exists(checkpoint_path(folder)); }

FolderLock::FolderLock(const std::string& folder) {
  make_folder(folder);
  fd_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  const int why = errno;
  if (fd_ >= 0) ::close(fd_);
  throw Error(why == EWOULDBLOCK
                  ? fail(Code::io,
                         "{}: another training run writes here; wait for it, or name another folder", folder)
                  : fail(Code::io, "can't keep the folder {}: {}", folder, std::strerror(why)));
}
FolderLock::~FolderLock() { ::close(fd_); }

void save_checkpoint(const std::string& folder, const RunInfo& info, const CharModel& model,
                     const AdamW& optimizer) {
  make_folder(folder);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<formats::TensorEntry> entries;
  for (const auto& t : all_tensors(model, optimizer)) {
    bytes.push_back(t.to_bytes());
    const auto shape = t.sizes();
    entries.push_back({t.name(), t.dtype(), {shape.begin(), shape.end()}, bytes.back()});
  }
  // Aligned by size, as the format asks: wide elements first.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return byte_size(a.dtype) > byte_size(b.dtype); });
  json description = to_json(info);
  description["hash"] = hash(description, entries);
  raise_if(formats::write_safetensors(checkpoint_path(folder), entries, {{"weft", description.dump()}}));
}

Checkpoint load_checkpoint(const std::string& folder) {
  const std::string path = checkpoint_path(folder);
  const auto file = value_or_raise(formats::read_safetensors(path));
  const json root = value_or_raise(read_description(path, file));
  auto info = value_or_raise(read_info(path, root, file));
  const auto* weight = file.find("hidden1.weight");
  const DType dtype =
      weight && is_float(weight->dtype) && is_compute(weight->dtype) ? weight->dtype : DType::f32;
  CharModel model(info.config);
  replace(
      model, [&](const Field& f) { return take(path, file, f.name, {f.dtype, to_shape(f.shape)}); }, dtype);
  AdamW optimizer(parameters(model));
  optimizer.replace_states([&](const Tensor& t) { return take(path, file, t.name(), t.type()); });
  raise_if(check_hash(path, root, file));
  return {std::move(info), std::move(model), std::move(optimizer)};
}

}  // namespace weft::nn

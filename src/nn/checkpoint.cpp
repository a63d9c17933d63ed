#include "weft/checkpoint.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "formats/json.h"
#include "formats/safetensors.h"
#include "nn/folder.h"
#include "nn/settings.h"
#include "weft/state_dict.h"

namespace weft::nn {
namespace {

using nlohmann::json;

constexpr const char* kKind = "language_model";
constexpr int kVersion = 2;

// A chained hash of the description and every tensor's bytes in file order. Detects accidents, not attacks.
template <class Bytes>
std::string hash(json description, std::span<const formats::TensorEntry> tensors, const Bytes& bytes_of) {
  description.erase("hash");
  const std::string text = description.dump();
  uint64_t h = XXH3_64bits(text.data(), text.size());
  for (const auto& t : tensors) {
    const auto& bytes = bytes_of(t);
    h = XXH3_64bits_withSeed(bytes.data(), bytes.size(), h);
  }
  return fmt::format("{:016x}", h);
}

json to_json(const RunInfo& info) {
  return {{"kind", kKind},
          {"version", kVersion},
          {"step", info.step},
          {"settings", settings_json(info.settings)},
          {"tokenizer", info.tokenizer.to_json()},
          {"tokenizer_config", info.tokenizer.config_json()}};
}

/// A checkpoint file: its tensors and its description.
class File {
 public:
  explicit File(std::string path)
      : path_(std::move(path)), file_(value_or_raise(formats::read_safetensors(path_))) {
    const auto text = file_.metadata.find("weft");
    if (text == file_.metadata.end()) throw bad("weft", "is missing in the metadata: not a Weft checkpoint");
    root_ = value_or_raise(formats::parse_json_object(text->second, path_ + ": field 'weft'"));
  }

  RunInfo info() const {
    if (const json kind = field("kind"); kind != kKind)
      throw bad("kind", fmt::format("is {}, wanted \"{}\": another model", kind.dump(), kKind));
    if (const json version = field("version"); version != kVersion)
      throw bad("version", fmt::format("is {}, this program reads {}", version.dump(), kVersion));
    RunInfo out;
    const json step = field("step"), settings = field("settings"), tokenizer = field("tokenizer");
    if (!step.is_number_unsigned() || step.get<uint64_t>() > std::numeric_limits<int64_t>::max())
      throw bad("step", "is " + step.dump() + ", no count");
    if (!settings.is_object()) throw bad("settings", "is no object");
    const json config = root_.value("tokenizer_config", json(""));  // absent in older files
    if (!tokenizer.is_string()) throw bad("tokenizer", "is no text");
    if (!config.is_string()) throw bad("tokenizer_config", "is no text");
    out.step = step.get<int64_t>();
    raise_if(read_settings(path_, settings, out.settings));
    try {
      out.tokenizer = io::Tokenizer::from_json(tokenizer.get<std::string>(), config.get<std::string>());
    } catch (const Error& e) {
      throw bad("tokenizer", e.status().message());
    }
    return out;
  }

  /// Builds the model of the settings; failures are reported as errors of the file.
  template <class Make>
  auto made(Make make) const {
    try {
      return make();
    } catch (const Error& e) {
      throw bad("settings", "make nothing: " + e.status().message());
    }
  }

  std::unique_ptr<LanguageModel> model(const TrainSettings& settings) const {
    auto model = made([&] { return make_model(settings.model); });
    replace(
        *model, [&](const Field& f) { return take(f.name, {f.dtype, to_shape(f.shape)}); }, settings.dtype);
    return model;
  }
  Tensor take(const std::string& name, const TensorType& want) const {
    const auto* e = file_.find(name);
    if (!e) throw Error(fail(Code::corrupt, "{}: tensor '{}' is missing", path_, name));
    const TensorType have{e->dtype, to_shape(e->shape)};
    if (!(have == want))
      throw Error(fail(Code::corrupt, "{}: tensor '{}' is {}, the model wants {}", path_, name, text(have),
                       text(want)));
    return Tensor::from_bytes(e->bytes, e->shape, e->dtype);
  }

  // Last, so that more specific errors come first.
  void check_hash() const {
    if (field("hash") != hash(root_, file_.tensors, [](const auto& t) { return t.bytes; }))
      throw bad("hash", "does not match what the file holds: damaged");
  }

 private:
  json field(const char* name) const {
    const auto at = root_.find(name);
    if (at == root_.end()) throw bad(name, "is missing");
    return *at;
  }
  Error bad(const char* name, const std::string& why) const { return Error(bad_field(path_, name, why)); }

  std::string path_;
  formats::Safetensors file_;
  json root_;
};

int64_t vocabulary_of(const LanguageModelConfig& config) {
  return std::visit([](const auto& c) { return c.vocabulary; }, config);
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const TrainSettings& s, std::vector<Tensor> parameters) {
  if (s.optimizer == OptimizerKind::sgd)
    return std::make_unique<SGD>(
        std::move(parameters),
        SGDConfig{.momentum = s.momentum, .weight_decay = s.weight_decay, .clip = s.clip});
  return std::make_unique<AdamW>(std::move(parameters), AdamWConfig{.beta1 = s.beta1,
                                                                    .beta2 = s.beta2,
                                                                    .epsilon = s.epsilon,
                                                                    .weight_decay = s.weight_decay,
                                                                    .clip = s.clip});
}

Checkpoint begin_run(const RunInfo& info) {
  const int64_t vocabulary = vocabulary_of(info.settings.model);
  if (vocabulary < info.tokenizer.size())
    throw Error(invalid("the model has a vocabulary of {}, the tokenizer has ids up to {}", vocabulary,
                        info.tokenizer.size() - 1));
  auto model = make_model(info.settings.model);
  build(*model, {.seed = info.settings.seed, .dtype = info.settings.dtype});
  auto optimizer = make_optimizer(info.settings, parameters(*model));
  return {info, std::move(model), std::move(optimizer)};
}

std::string checkpoint_path(const std::string& folder) {
  return (std::filesystem::path(folder) / "model.safetensors").string();
}
bool has_checkpoint(const std::string& folder) {
  std::error_code no_such_name;
  return std::filesystem::exists(checkpoint_path(folder), no_such_name);
}

void save_checkpoint(const std::string& folder, const Checkpoint& run) {
  TrainSettings back;  // checks that the text can be read again
  if (const Status s = read_settings("the run", settings_json(run.info.settings), back); !s.ok())
    throw Error(invalid("{}", s.message()));
  make_folder(folder);
  auto tensors = state_dict(*run.model);
  for (const Tensor& t : run.optimizer->states()) tensors.emplace(t.name(), t);
  std::vector<formats::TensorEntry> entries;
  for (const auto& [name, t] : tensors) {
    const auto shape = t.sizes();
    entries.push_back({name, t.dtype(), {shape.begin(), shape.end()}, {}});
  }
  formats::order_by_width(entries);
  const auto bytes_of = [&](const formats::TensorEntry& e) { return tensors.at(e.name).to_bytes(); };
  json description = to_json(run.info);
  description["hash"] = hash(description, entries, bytes_of);
  raise_if(
      formats::write_safetensors(checkpoint_path(folder), entries, {{"weft", description.dump()}}, bytes_of));
}

TrainedModel load_trained(const std::string& folder) {
  const File file(checkpoint_path(folder));
  TrainedModel out{file.info(), nullptr};
  out.model = file.model(out.info.settings);
  file.check_hash();
  return out;
}

Checkpoint load_checkpoint(const std::string& folder) {
  const File file(checkpoint_path(folder));
  Checkpoint run{file.info(), nullptr, nullptr};
  run.model = file.model(run.info.settings);
  run.optimizer = file.made([&] { return make_optimizer(run.info.settings, parameters(*run.model)); });
  run.optimizer->replace_states([&](const Tensor& t) { return file.take(t.name(), t.type()); });
  file.check_hash();
  return run;
}

}  // namespace weft::nn

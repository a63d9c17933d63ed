#include "weft/checkpoint.h"

#include <nlohmann/json.hpp>

#include "formats/json.h"
#include "formats/safetensors.h"
#include "fuzz/folder.h"
#include "fuzz/target.h"
#include "nn/settings.h"

namespace weft::fuzz {

static void settings_go_round(const nlohmann::json& root) {
  nn::TrainSettings settings, again;
  if (refused(nn::read_settings("input", root, settings))) return;
  const auto written = nn::settings_json(settings);
  auto read = formats::parse_json_object(written.dump(), "written");
  expect(read.ok(), "settings are written as JSON: " + read.status().text());
  const Status s = nn::read_settings("written", *read, again);
  expect(s.ok(), "what is written can be read: " + s.text());
  expect(nn::settings_json(again) == written, "settings go round");
}

// What a checkpoint says of itself, as JSON. The file has none of its tensors, so that everything is read and
// the model is made, and then that is said.
void target(std::string_view input) {
  static const Folder folder;
  auto file = formats::encode_safetensors({}, {{"weft", std::string(input)}});
  if (refused(file)) return;  // metadata that is not UTF-8
  folder.write("model.safetensors", {reinterpret_cast<const char*>(file->data()), file->size()});
  expect(refused_by([] { (void)nn::load_trained(folder.path()); }), "tensors are missed");
  auto root = formats::parse_json_object(input, "input");
  if (!refused(root) && root->contains("settings") && (*root)["settings"].is_object())
    settings_go_round((*root)["settings"]);
}

}  // namespace weft::fuzz

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/file.h"
#include "import/import.h"

// A graph that somebody else wrote: whatever its JSON says, it is imported, or refused in words.
namespace weft::hostile_json_test {
namespace {

using nlohmann::json;

const std::string kFolder = WEFT_SOURCE_DIR "/conformance/data/import/mlp/";

std::string graph_text() {
  const auto bytes = value_or_raise(formats::read_file(kFolder + "model_ir.json"));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Status imported(const std::string& text) {
  static const std::vector files = {value_or_raise(formats::map_safetensors(kFolder + "model.safetensors"))};
  const auto model = importer::parse_model_ir(text, "m.json");
  return model.ok() ? importer::import_model(model.value(), files).take_status() : model.status();
}

TEST(HostileJson, EveryTruncationIsRefused) {
  const std::string text = json::parse(graph_text()).dump();
  ASSERT_TRUE(imported(text).ok());
  for (size_t n = 0; n < text.size(); ++n) {
    const Status s = imported(text.substr(0, n));
    ASSERT_EQ(s.code(), Code::corrupt) << n << ": " << s.text();
    ASSERT_NE(s.message().find("m.json"), std::string::npos) << s.text();
  }
}

// Each value of the graph, large or small, in the place of each other one.
TEST(HostileJson, AnyValueAnywhereIsRefusedInWordsOrTaken) {
  const json graph = json::parse(graph_text());
  std::vector<json::json_pointer> places;
  const std::function<void(const json&, const json::json_pointer&)> walk =
      [&](const json& at, const json::json_pointer& path) {
        places.push_back(path);
        if (at.is_structured())
          for (const auto& [key, value] : at.items())
            walk(value, at.is_array() ? path / static_cast<size_t>(std::stoul(key)) : path / key);
      };
  walk(graph, json::json_pointer());
  const std::vector<json> hostile = {nullptr,
                                     true,
                                     -1,
                                     0,
                                     1e308,
                                     std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<uint64_t>::max(),
                                     "",
                                     std::string("\0\n\x7f", 3),
                                     std::string(100'000, 'x'),
                                     json::array(),
                                     json::array({json::array({-1})}),
                                     json::object(),
                                     json::object({{"name", "x"}})};
  size_t refused = 0, taken = 0;
  for (const auto& place : places)
    for (const json& value : hostile) {
      json bad = graph;
      bad[place] = value;
      const Status s = imported(bad.dump());
      (s.ok() ? taken : refused) += 1;
      if (!s.ok()) {
        ASSERT_FALSE(s.message().empty()) << place;
        ASSERT_LT(s.message().size(), 5000) << place << ": a long text is cut";
      }
      ASSERT_NE(s.code(), Code::internal) << place << " " << value.dump().substr(0, 99) << ": " << s.text();
    }
  std::printf("%zu graphs refused, %zu imported\n", refused, taken);
  EXPECT_GT(refused, places.size() * 5);
}

TEST(HostileJson, TextThatIsNoJson) {
  const std::string text = json::parse(graph_text()).dump(), name = "\"model_name\":";
  const size_t at = text.find(name);
  ASSERT_NE(at, std::string::npos);
  const auto with = [&](const std::string& value) {
    return imported(text.substr(0, at) + name + value + "," + text.substr(at));
  };
  EXPECT_NE(with("\"twice\"").message().find("model_name"), std::string::npos) << "a name that stands twice";
  for (const std::string value : {"1e999", "\"\xff\"", "\"\\ud800\"", "\"\\u12\"", "01", "+1", "'a'"}) {
    const Status s = imported(text.substr(0, at) + "\"other\":" + value + "," + text.substr(at));
    EXPECT_EQ(s.code(), Code::corrupt) << value << ": " << s.text();
  }
  EXPECT_EQ(imported(std::string(1'000'000, '[')).code(), Code::corrupt);
  EXPECT_EQ(imported(std::string(1'000'000, '{')).code(), Code::corrupt);
}

}  // namespace
}  // namespace weft::hostile_json_test

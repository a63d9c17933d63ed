#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/element.h"
#include "formats/json.h"
#include "import/call.h"
#include "lab/vectors.h"
#include "strided_inputs.h"

// What PyTorch exported computes here what it computes there (scripts/import_oracle).
namespace weft::import_test {
namespace {

using namespace testing::imported;
using nlohmann::json;

// ---- whole models
std::vector<std::string> model_folders() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kData + "import"))
    if (entry.is_directory() && entry.path().filename() != "symbols") out.push_back(entry.path().filename());
  std::ranges::sort(out);
  return out;
}
class ImportedModels : public ::testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return kData + "import/" + GetParam() + "/"; }
  /// The answers whose names begin with "in." or "out.", in the order of `ports`.
  static std::vector<Array> answers(const formats::Safetensors& file, const std::string& prefix,
                                    const json& ports) {
    std::vector<Array> out;
    for (const auto& port : ports) {
      const auto* t = file.find(prefix + port["name"].get<std::string>());
      out.push_back(conformance::decode(t->dtype, {t->shape.begin(), t->shape.end()}, t->bytes));
    }
    return out;
  }
};

TEST_P(ImportedModels, SayWhatPyTorchSays) {
  const std::string text = read(folder() + "model_ir.json");
  const json ports = json::parse(text);
  const std::array files = {value_or_raise(formats::read_safetensors(folder() + "model.safetensors"))};
  const auto answers_file = value_or_raise(formats::read_safetensors(folder() + "answers.safetensors"));
  const auto inputs = answers(answers_file, "in.", ports["graph_inputs"]);
  const auto wanted = answers(answers_file, "out.", ports["graph_outputs"]);

  // In f64: what PyTorch says is right, to f64's rounding.
  const Model wide = model_of(with_dtype(text, "float32", "float64"), files, inputs);
  expect_within(wanted, value_or_raise(conformance::noise_bound(*wide.imported.graph, wide.operands)), 2);

  const Model m = model_of(text, files, inputs);
  const auto bound = value_or_raise(conformance::noise_bound(*m.imported.graph, m.operands));
  const auto fused = read_again(m);
  for (const auto& backend : zoo_backends()) {
    SCOPED_TRACE(backend);
    for (const auto& out : runs_of(fused, m, backend, 3)) expect_within(out, bound, 1);
  }
  const auto unfused = std::make_shared<program::CompiledProgram>(program_of(m, false));
  for (const auto& out : runs_of(unfused, m, zoo_backends()[0], 3)) expect_within(out, bound, 1);
  const auto n = static_cast<std::ptrdiff_t>(inputs.size());
  expect_same_bits_of_strided_inputs(*fused, {m.operands.begin(), m.operands.begin() + n}, "native");
}
INSTANTIATE_TEST_SUITE_P(All, ImportedModels, ::testing::ValuesIn(model_folders()),
                         [](const auto& info) { return info.param; });

// ---- graphs of one node
Array array_of(const json& elements, const json& info) {
  Array a{*importer::dtype_from_torch(info["dtype"].get<std::string>()), {}, {}};
  for (const auto& n : info["shape"]) a.shape.push_back(n.get<int64_t>());
  for (const auto& e : elements)
    a.v.push_back(e.is_string() ? std::strtold(e.get<std::string>().c_str(), nullptr) : e.get<long double>());
  return a;
}
std::vector<Array> arrays_of(const json& all, const json& infos) {
  std::vector<Array> out;
  for (size_t i = 0; i < all.size(); ++i) out.push_back(array_of(all[i], infos[i]));
  return out;
}
// The weights of a case as a file.
formats::Safetensors weights_of(const json& c, const json& ir) {
  std::vector<formats::TensorEntry> entries;
  std::vector<std::vector<std::byte>> bytes;
  bytes.reserve(c["weights"].size());
  for (const auto& info : ir["weights"]) {
    const auto name = info["name"].get<std::string>();
    if (!c["weights"].contains(name)) continue;
    const Array a = array_of(c["weights"][name], info);
    bytes.push_back(conformance::encode(a));
    entries.push_back({name, a.dtype, {a.shape.begin(), a.shape.end()}, bytes.back()});
  }
  formats::order_by_width(entries);
  return value_or_raise(
      formats::parse_safetensors(value_or_raise(formats::encode_safetensors(entries, {})), "case"));
}

// Of a case in f64 (or in the dtypes that it is about), the truth is PyTorch's. In f32 every backend is
// judged.
TEST(ImportedNodes, SayWhatPyTorchSays) {
  const json all = value_or_raise(formats::read_json_object(kData + "import/nodes.json"))["cases"];
  for (const json& c : all) {
    SCOPED_TRACE(c["name"].get<std::string>());
    const std::string text = c["ir"].dump();
    for (const bool narrow : {false, true}) {
      const json ir = json::parse(narrow ? with_dtype(text, "float64", "float32") : text);
      const std::array files = {weights_of(c, ir)};
      try {
        const Model m = model_of(ir.dump(), files, arrays_of(c["inputs"], ir["graph_inputs"]));
        const auto bound = value_or_raise(conformance::noise_bound(*m.imported.graph, m.operands));
        if (!narrow) expect_within(arrays_of(c["outputs"], ir["graph_outputs"]), bound, 2);
        for (const auto& backend : testing::backends({"reference", "native"})) {
          SCOPED_TRACE(backend);
          if (narrow || backend == "reference") expect_within(run_compiled(m, backend), bound, 1);
        }
      } catch (const Error& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
}

// ---- what is refused
json tensor_info(const char* name, std::vector<int64_t> shape, const char* producer = nullptr) {
  json t{{"name", name}, {"shape", shape}, {"dtype", "float32"}};
  if (producer) t["producer_node"] = producer;
  return t;
}
// One node on x: f32[2, 3], with a result of that shape.
json one_node(const char* op, json attrs = json::object()) {
  return {{"model_name", "m"},
          {"graph_inputs", {tensor_info("x", {2, 3})}},
          {"graph_outputs", {tensor_info("y", {2, 3})}},
          {"weights", json::array()},
          {"nodes",
           {{{"name", "y"},
             {"op_type", op},
             {"inputs", {tensor_info("x", {2, 3}, "x")}},
             {"outputs", {tensor_info("y", {2, 3})}},
             {"attrs", std::move(attrs)}}}}};
}
/// A file of weights that has this one.
formats::Safetensors file_of(const char* name, const Array& a) {
  const auto bytes = conformance::encode(a);
  const formats::TensorEntry entry{name, a.dtype, {a.shape.begin(), a.shape.end()}, bytes};
  return value_or_raise(
      formats::parse_safetensors(value_or_raise(formats::encode_safetensors({&entry, 1}, {})), "file"));
}
Status imported(const json& ir) {
  const auto model = importer::parse_model_ir(ir.dump(), "m.json");
  if (!model.ok()) return model.status();
  return importer::import_model(model.value(), {}).take_status();
}
void expect_refused(const json& ir, Code code, const std::string& words) {
  const Status status = imported(ir);
  EXPECT_EQ(status.code(), code) << status.text();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.text();
}

TEST(ImportRefusals, NameAllOpsThatAreMissingWithTheirNodes) {
  json ir = one_node("aten.unheard_of.default");
  ir["nodes"].push_back(ir["nodes"][0]);
  ir["nodes"][1]["name"] = "z";
  ir["nodes"].push_back(ir["nodes"][0]);
  ir["nodes"][2]["name"] = "w", ir["nodes"][2]["op_type"] = "wrap_with_set_grad_enabled";
  expect_refused(ir, Code::unsupported,
                 "aten.unheard_of.default: y, z\n  wrap_with_set_grad_enabled: w\nhint:");
}
TEST(ImportRefusals, SayWhatToDoInstead) {
  expect_refused(one_node("aten.nonzero.default"), Code::unsupported,
                 "aten.nonzero.default: y: how many results there are depends on data");
  json ir = one_node("aten.permute.default", {{"dims", {0, 1}}});
  ir["nodes"][0]["name"] = "turned", ir["nodes"][0]["outputs"][0]["name"] = "turned";
  json strided = one_node("aten.as_strided.default", {{"size", {2, 3}}, {"stride", {3, 1}}})["nodes"][0];
  strided["inputs"] = {tensor_info("turned", {2, 3}, "turned")};
  ir["nodes"].push_back(strided);
  expect_refused(ir, Code::unsupported, "make it by contiguous()");
  expect_refused(one_node("aten.as_strided.default", {{"size", {2, 3}}, {"stride", {4, 1}}}),
                 Code::unsupported, "it reaches element 6 of f32[2, 3]");
}
TEST(ImportRefusals, NameAllNodesThatCantBeConverted) {
  json ir = one_node("aten.softmax.int", {{"dim", 7}});
  ir["nodes"].push_back(one_node("aten.dropout.default", {{"p", 0.5}, {"train", true}})["nodes"][0]);
  ir["nodes"][1]["name"] = "drop";
  const Status status = imported(ir);
  EXPECT_NE(status.message().find("node 'y' (aten.softmax.int): argument 'dim': axis 7"), std::string::npos);
  EXPECT_NE(status.message().find("node 'drop' (aten.dropout.default): it drops"), std::string::npos);
}
TEST(ImportRefusals, ArgumentsAndResultsAreChecked) {
  expect_refused(one_node("aten.softmax.int"), Code::unsupported,
                 "argument 'dim': wanted a whole number, got nothing");
  expect_refused(one_node("aten.gelu.default", {{"approximate", "cubic"}}), Code::unsupported, "no 'cubic'");
  expect_refused(one_node("aten.add.Tensor"), Code::unsupported, "argument 'other' is a tensor or a number");
  expect_refused(one_node("aten.sum.default"), Code::unsupported,
                 "result 0 is f32[], but the file says f32[2, 3]");
  json ir = one_node("aten.relu.default");
  ir["nodes"][0]["inputs"].push_back(tensor_info("x", {2, 3}, "x"));
  expect_refused(ir, Code::unsupported, "1 of its 2 belong to none");
  ir = one_node("aten.relu.default");
  ir["nodes"][0]["inputs"][0]["producer_node"] = "nobody", ir["nodes"][0]["inputs"][0]["name"] = "nothing";
  expect_refused(ir, Code::unsupported, "tensor 'nothing' is made by no node before this one");
}
// Files of pytorch-ir list tensors without those that are None.
TEST(ImportRefusals, ATensorThatMayBeTheWeightOrTheBias) {
  json ir = one_node("aten.layer_norm.default", {{"normalized_shape", {3}}});
  ir["weights"] = {tensor_info("a", {3})}, ir["weight_name_mapping"] = {{"p_a", "a"}, {"p_a_bias", "a"}};
  auto& inputs = ir["nodes"][0]["inputs"];
  inputs.push_back(tensor_info("p_a", {3}));
  expect_refused(ir, Code::unsupported, "'p_a' may be the weight or the bias");
  inputs[1]["name"] = "p_a_bias";
  const auto made = [&] {
    const std::array files = {file_of("a", {DType::f32, {3}, {10, 20, 30}})};
    const Array x{DType::f32, {2, 3}, {1, 1, 1, 2, 2, 2}};
    return run_compiled(model_of(ir.dump(), files, {x}), "reference")[0].v;
  };
  const std::vector<conformance::Real> as_bias = {10, 20, 30, 10, 20, 30}, as_weight(6, 0);
  EXPECT_EQ(made(), as_bias);
  inputs[0]["arg"] = "input", inputs[1]["arg"] = "weight";
  EXPECT_EQ(made(), as_weight);
  inputs[1]["name"] = "p_a", inputs[1]["arg"] = "bias";
  EXPECT_EQ(made(), as_bias);
}
TEST(ImportRefusals, AWeightThatTwoFilesHave) {
  json ir = one_node("aten.mul.Tensor");
  ir["weights"] = {tensor_info("a", {3})}, ir["weight_name_mapping"] = {{"p_a", "a"}};
  ir["nodes"][0]["inputs"].push_back(tensor_info("p_a", {3}));
  const auto file = file_of("a", {DType::f32, {3}, {1, 2, 3}});
  const auto model = value_or_raise(importer::parse_model_ir(ir.dump(), "m.json"));
  EXPECT_TRUE(importer::import_model(model, std::array{file}).ok());
  const auto twice = importer::import_model(model, std::array{file, file});
  EXPECT_NE(twice.status().message().find("weight 'a' is in several of the files"), std::string::npos);
}
TEST(ImportRefusals, WeightsAreListed) {
  json ir = one_node("aten.add.Tensor");
  ir["weights"] = {tensor_info("layer.a", {3}), tensor_info("lifted_tensor_0", {3})};
  ir["weight_name_mapping"] = {{"p_a", "layer.a"}, {"c_0", "lifted_tensor_0"}};
  ir["nodes"][0]["inputs"] = {tensor_info("p_a", {3}), tensor_info("c_0", {3})};
  ir["nodes"][0]["outputs"][0]["shape"] = {3}, ir["graph_outputs"][0]["shape"] = {3};
  expect_refused(ir, Code::invalid_argument, "weight 'layer.a' (f32[3]) is in none of the files");
  expect_refused(ir, Code::invalid_argument, "export on the CPU");
}
// Of the files that are given: all that don't fit, at once. What no weight asks for is a note.
TEST(ImportRefusals, WeightsThatDoNotFitAreListed) {
  json ir = one_node("aten.add.Tensor");
  ir["weights"] = json::array(), ir["weight_name_mapping"] = json::object();
  for (const char* name : {"absent", "long", "whole", "good"}) {
    ir["weights"].push_back(tensor_info(name, {3}));
    ir["weight_name_mapping"][std::string("p_") + name] = name;
  }
  ir["nodes"].push_back(ir["nodes"][0]);
  ir["nodes"][1]["name"] = "z", ir["nodes"][1]["outputs"][0] = tensor_info("z", {3});
  ir["nodes"][0]["inputs"] = {tensor_info("p_absent", {3}), tensor_info("p_long", {3})};
  ir["nodes"][1]["inputs"] = {tensor_info("p_whole", {3}), tensor_info("p_good", {3})};
  ir["nodes"][0]["outputs"][0]["shape"] = {3}, ir["graph_outputs"][0]["shape"] = {3};
  const std::vector<std::byte> bytes(64);
  const auto entry = [&](const char* name, DType t, std::vector<int64_t> shape) {
    const auto n = static_cast<size_t>(element_count(std::span<const int64_t>(shape)));
    return formats::TensorEntry{
        name, t, {shape.begin(), shape.end()}, std::span(bytes).first(n * byte_size(t))};
  };
  const auto said = [&](std::vector<formats::TensorEntry> entries) {
    formats::order_by_width(entries);
    const std::array files = {value_or_raise(
        formats::parse_safetensors(value_or_raise(formats::encode_safetensors(entries, {})), "weights"))};
    const auto model = value_or_raise(importer::parse_model_ir(ir.dump(), "m.json"));
    auto made = importer::import_model(model, files);
    if (!made.ok()) return made.status().message();
    return made->notes.empty() ? std::string() : made->notes[0];
  };
  const std::string wrong =
      said({entry("long", DType::f32, {4}), entry("whole", DType::i64, {3}), entry("good", DType::f32, {3})});
  EXPECT_NE(wrong.find("weight 'absent' (f32[3]) is in none of the files"), wrong.npos) << wrong;
  EXPECT_NE(wrong.find("weight 'long' is f32[4], but the model wants f32[3]"), wrong.npos) << wrong;
  EXPECT_NE(wrong.find("weight 'whole' is i64[3], but the model wants f32[3]"), wrong.npos) << wrong;
  EXPECT_EQ(
      said({entry("absent", DType::f32, {3}), entry("long", DType::f32, {3}), entry("whole", DType::f32, {3}),
            entry("good", DType::f32, {3}), entry("extra", DType::f32, {1})}),
      "1 of the tensors given are none of the model's, as 'extra'");
}

TEST(ImportRefusals, DtypesThatWeftDoesNotHaveAreListed) {
  json ir = one_node("aten.relu.default");
  ir["nodes"][0]["outputs"][0]["dtype"] = "complex64";
  ir["graph_inputs"][0]["dtype"] = "int16";
  expect_refused(ir, Code::unsupported, "node 'y': complex64\n  tensor 'x': int16");
}
TEST(ImportRefusals, WhatIsNoSuchFile) {
  EXPECT_EQ(importer::parse_model_ir("[]", "m").status().code(), Code::corrupt);
  EXPECT_EQ(importer::parse_model_ir("{\"a\": -Infinit}", "m").status().code(), Code::corrupt);
  expect_refused({{"nodes", 3}}, Code::corrupt, "weights: wanted a list, got nothing");
  for (const json& size : {json(-1), json(1e30), json(int64_t{1} << 60), json("s0"), json(nullptr)}) {
    json ir = one_node("aten.relu.default");
    ir["graph_inputs"][0]["shape"][0] = size;
    EXPECT_EQ(imported(ir).code(), Code::corrupt) << size;
  }
  json deep = one_node("aten.relu.default");
  for (int i = 0; i < 40; ++i) deep["nodes"][0]["attrs"]["a"] = json::array({deep["nodes"][0]["attrs"]["a"]});
  EXPECT_EQ(imported(deep).code(), Code::corrupt);
}
// Whether reshape() makes a view depends on strides, which the file does not say.
TEST(ImportRefusals, WritesThatMayReachAnotherTensor) {
  json ir = one_node("aten.reshape.default");
  ir["nodes"][0]["name"] = "r", ir["nodes"][0]["outputs"][0]["name"] = "r";
  json write = one_node("aten.relu_.default")["nodes"][0];
  write["name"] = "w", write["inputs"] = {tensor_info("r", {2, 3}, "r")};
  write["outputs"][0]["name"] = "w";
  json read = one_node("aten.exp.default")["nodes"][0];
  ir["nodes"].push_back(write), ir["nodes"].push_back(read);
  expect_refused(ir, Code::unsupported, "node 'r' (aten.reshape.default) is a view or a copy");
}
TEST(ImportFormat, PythonsInfinitiesAreNumbers) {
  std::string text = one_node("aten.clamp.default", {{"min", "LEAST"}, {"max", "MOST"}}).dump();
  text = with_dtype(with_dtype(text, "\"LEAST\"", "-Infinity"), "\"MOST\"", "Infinity");
  const auto model = value_or_raise(importer::parse_model_ir(text, "m.json"));
  EXPECT_TRUE(importer::import_model(model, {}).ok());
}
TEST(ImportFormat, PowersOfSymbolsAreProducts) {
  json ir = one_node("aten.relu.default");
  ir["symbols"] = {{"s0", {2, 4}}};
  const auto shape_of = [&](const std::string& size) {
    for (json* t : {&ir["graph_inputs"][0], &ir["graph_outputs"][0], &ir["nodes"][0]["inputs"][0],
                    &ir["nodes"][0]["outputs"][0]})
      (*t)["shape"] = {size, 3};
    return importer::parse_model_ir(ir.dump(), "m.json");
  };
  EXPECT_EQ(value_or_raise(shape_of("2*s0**3 - 1")).inputs[0].type.shape[0].max(), 127);
  for (const char* wrong : {"s0**", "s0**1", "s0**24", "**2", "2**s0"})
    EXPECT_FALSE(shape_of(wrong).ok()) << wrong;
}
TEST(ImportFormat, HalvesOfAFileBecomeTheModelsFloats) {
  json ir = one_node("aten.mul.Tensor");
  ir["weights"] = {tensor_info("a", {3})}, ir["weight_name_mapping"] = {{"p_a", "a"}};
  ir["nodes"][0]["inputs"].push_back(tensor_info("p_a", {3}));
  const std::array files = {file_of("other.name", {DType::bf16, {3}, {1, 2, 0.5}})};
  const Array x{DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}};
  const Model m = model_of(ir.dump(), files, {x}, {.tied = {{"a", "other.name"}}});
  EXPECT_EQ(run_compiled(m, "reference")[0].v, (std::vector<conformance::Real>{1, 4, 1.5, 4, 10, 3}));
}
TEST(ImportFormat, TheTableHasEachOpOnce) {
  std::set<std::string_view> names;
  for (const auto* family : importer::all_families())
    for (const auto& op : family->ops) EXPECT_TRUE(names.insert(op.name).second) << op.name;
  EXPECT_GT(names.size(), 250u);
}

// ---- sizes that are symbols

/// What a run of the program on `input` must give first, and how far off it may be.
Bounded truth_of(const program::CompiledProgram& p, const Array& input, const conformance::Dims& shape) {
  const std::array in = {host_tensor(input)};
  const auto test = value_or_raise(lab::make_test(p, in));
  const auto& wanted = test.wanted[0];
  Bounded b{conformance::decode(wanted.type.dtype, shape, {wanted.bytes.data, wanted.bytes.size}), {}};
  b.value.dtype = input.dtype;
  for (size_t i = 0; i < b.value.v.size(); ++i)
    b.error.push_back(load_element<double>(DType::f32, test.allowed[0].data, i));
  return b;
}

// Fused and not, each in one session, whose sizes change and come back. PyTorch is held to the same bounds.
TEST(ImportedSymbols, RunAtEverySize) {
  const std::string folder = kData + "import/symbols/";
  const std::array files = {value_or_raise(formats::read_safetensors(folder + "model.safetensors"))};
  const auto answers = value_or_raise(formats::read_safetensors(folder + "answers.safetensors"));
  const Model m = model_of(read(folder + "model_ir.json"), files, {});
  const auto answer = [&](const std::string& name) {
    const auto* t = answers.find(name);
    return conformance::decode(t->dtype, {t->shape.begin(), t->shape.end()}, t->bytes);
  };
  const auto fused = read_again(m);
  const auto unfused = std::make_shared<const program::CompiledProgram>(program_of(m, false));
  std::vector<Array> inputs;
  std::vector<std::vector<Bounded>> bounds;
  for (int i = 0; i < 3; ++i) {
    const Array wanted = answer(fmt::format("out.{}", i));
    inputs.push_back(answer(fmt::format("in.{}", i)));
    bounds.push_back({truth_of(*unfused, inputs.back(), wanted.shape)});
    expect_within({wanted}, bounds.back(), 1);
  }
  for (const auto& backend : zoo_backends())
    for (const auto& program : {fused, unfused}) {
      if (backend == "opencl" && program == unfused) continue;  // compiling each op takes seconds
      const auto session = value_or_raise(
          runtime::Session::create(program, value_or_raise(runtime::devices_for(backend, {})), {}));
      for (const size_t i : {0, 1, 2, 1, 0, 0, 2}) {
        SCOPED_TRACE(fmt::format("{}, {}fused, size {}", backend, program == fused ? "" : "un", i));
        const std::array in = {host_tensor(inputs[i])};
        expect_within(host_arrays(value_or_raise(session->run(in))), bounds[i], 1);
      }
    }
}

}  // namespace
}  // namespace weft::import_test

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "imported_model.h"
#include "lab/vectors.h"

// Decoders of transformers with a cache of 32,768 positions (scripts/lib/decoders.py): tokens at positions up
// to the last get the scores that transformers gives them, so rope's angles are right there, and the cache
// and its mask.
namespace weft::import_far_test {
namespace {

using namespace testing::imported;

constexpr int64_t kPositions = 32768, kMiddle = 16383;

// What far_cache() of decoders.py gives.
Array numbers(DType dtype, const Shape& shape, int64_t which) {
  Array a{dtype, dims_of(shape), {}};
  const int64_t n = element_count(std::span<const Dim>(shape)).value();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t drawn = ((i + 1) * 2654435761 + 97 * which) % (int64_t{1} << 32) >> 16;
    a.v.push_back(static_cast<long double>(drawn) / 32768 - 1);
  }
  return a;
}
// The cache as the weights that the graph wants.
formats::Safetensors cache_of(const std::string& ir_text) {
  const auto ir = value_or_raise(importer::parse_model_ir(ir_text, "model_ir.json"));
  std::vector<std::vector<std::byte>> bytes;
  std::vector<formats::TensorEntry> entries;
  bytes.reserve(2);
  for (const auto& [name, which] : {std::pair{"keys_0", 0}, {"values_0", 1}}) {
    const TensorType& type = ir.weights.find(std::string_view(name))->second;
    bytes.push_back(conformance::encode(numbers(type.dtype, type.shape, which)));
    entries.push_back({name, type.dtype, dims_of(type.shape), bytes.back()});
  }
  return value_or_raise(
      formats::parse_safetensors(value_or_raise(formats::encode_safetensors(entries, {})), "cache"));
}
Array answer(const formats::Safetensors& file, const std::string& name) {
  const auto* t = file.find(name);
  return conformance::decode(t->dtype, {t->shape.begin(), t->shape.end()}, t->bytes);
}

// What the program must say of tokens from that position on.
program::TestVector test_of(const program::CompiledProgram& p, const Array& tokens, int64_t first) {
  Array positions{DType::i64, {tokens.shape[1]}, {}};
  for (int64_t i = 0; i < tokens.shape[1]; ++i) positions.v.push_back(first + i);
  std::vector<runtime::HostTensor> inputs;
  for (const Array* a : {&tokens, static_cast<const Array*>(&positions)}) inputs.push_back(host_tensor(*a));
  return value_or_raise(lab::make_test(p, inputs));
}

// The largest difference to what the oracle says, in units of what rounding allows it.
double worst(const program::TestVector& test, const Array& scores) {
  const Array truth =
      conformance::decode(DType::f64, scores.shape, {test.wanted[0].bytes.data, test.wanted[0].bytes.size});
  std::vector<float> allowed(test.allowed[0].size / sizeof(float));
  std::memcpy(allowed.data(), test.allowed[0].data, test.allowed[0].size);
  double most = allowed.size() == truth.v.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < allowed.size(); ++i)
    most = std::max(most, std::fabs(double(truth.v[i] - scores.v[i])) / double(allowed[i]));
  return most;
}

class FarPositions : public ::testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return kData + "far/" + GetParam() + "/"; }
  Model model(const std::string& text) const {
    const auto weights = value_or_raise(formats::read_safetensors(folder() + "model.safetensors"));
    return model_of(text, std::array{weights, cache_of(text)}, {});
  }
};

// In f64 the oracle is as near to transformers as rounding lets it; in f32 the backends are to the oracle.
TEST_P(FarPositions, SayWhatTransformersSays) {
  const std::string text = read(folder() + "model_ir.json");
  const auto answers = value_or_raise(formats::read_safetensors(folder() + "answers.safetensors"));
  const Model wide_model = model(with_dtype(text, "float32", "float64")), narrow_model = model(text);
  const auto wide = program_of(wide_model);
  auto narrow = program_of(narrow_model);
  for (const int64_t first : {kMiddle, kPositions - 2}) {
    SCOPED_TRACE(first);
    const Array tokens = answer(answers, fmt::format("tokens.{}", first));
    const Array scores = answer(answers, fmt::format("scores.{}", first));
    EXPECT_LE(worst(test_of(wide, tokens, first), scores), 2);
    if (first == kMiddle) {
      EXPECT_GT(worst(test_of(wide, tokens, first + 1), scores), 1e6) << "one position further is another";
    }
    if (first > kMiddle) narrow.tests.push_back(test_of(narrow, tokens, first));
  }
  for (const auto& backend : testing::backends({"reference", "native", "openmp", "opencl"}))
    for (const auto& v : value_or_raise(lab::run_tests(narrow, backend, {})))
      EXPECT_EQ(v.wrong, "") << backend << ", test " << v.test;
}
INSTANTIATE_TEST_SUITE_P(Kinds, FarPositions, ::testing::Values("llama", "qwen2"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::import_far_test

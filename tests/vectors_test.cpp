#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/element.h"
#include "compiler/compile.h"
#include "lab/vectors.h"
#include "seam/registry.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// The tests that a program file carries, and old files.
namespace weft::testing::vectors_test {
namespace {

namespace fs = std::filesystem;
using runtime::HostTensor;

/// A chain behind a product, rows in a table, and a state that adds up.
program::CompiledProgram small_model(DType dtype = DType::f32) {
  Tensor total = full(0.5, {4}, dtype);
  const auto counted = [&](int64_t rows, double step) {
    return reshape(cast(iota(rows * 4) * 5, dtype) * step - 0.4, {rows, 4});
  };
  const Tensor table = counted(6, 0.015), weight = counted(4, 0.02);
  const Dim n = Dim::symbol("vector_rows", 1, 40);
  auto f = compile(
      [&](const std::vector<Tensor>& in) {
        const Tensor h = tanh(matmul(embedding(table, in[0]), weight) * 0.5) + in[1];
        assign(total, total + sum(h, {0}));
        return std::vector<Tensor>{softmax(h, 1).named("y"), argmax(h, 1).named("best")};
      },
      {{"ids", {DType::i32, {n}}}, {"x", {dtype, {n, 4}}}}, {.name = "small", .backend = "reference"});
  return f.snapshot();
}

std::vector<HostTensor> inputs_for(const program::CompiledProgram& p, int64_t rows) {
  std::vector<HostTensor> in(2);
  in[0] = {{DType::i32, {rows}}, std::vector<std::byte>(static_cast<size_t>(rows) * 4)};
  const DType dtype = p.values[static_cast<size_t>(p.inputs[1].value)].type.dtype;
  in[1].type = {dtype, {rows, 4}};
  in[1].bytes.resize(in[1].type.bytes());
  for (int64_t i = 0; i < rows; ++i)
    store_element(DType::i32, in[0].bytes.data(), static_cast<size_t>(i), double(i * 5 % 6));
  for (int64_t i = 0; i < rows * 4; ++i)
    store_element(dtype, in[1].bytes.data(), static_cast<size_t>(i), double(i * 7 % 11) / 8 - 0.6);
  return in;
}

program::CompiledProgram with_tests(program::CompiledProgram p) {
  for (const int64_t rows : {1, 7}) p.tests.push_back(value_or_raise(lab::make_test(p, inputs_for(p, rows))));
  return p;
}

TEST(Vectors, EveryBackendPassesThem) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto p = with_tests(small_model(dtype));
    ASSERT_EQ(p.tests.size(), 2u);
    ASSERT_EQ(p.tests[1].wanted.size(), 3u) << "two outputs and a state";
    EXPECT_EQ(p.tests[1].allowed[1].size, 0u) << "integers are exact";
    EXPECT_EQ(p.tests[1].allowed[0].size, 7 * 4 * sizeof(float));
    for (const char* backend : {"reference", "native"}) {
      const auto verified = value_or_raise(lab::run_tests(p, backend, {}));
      ASSERT_EQ(verified.size(), 2u);
      for (const auto& v : verified) EXPECT_EQ(v.wrong, "") << backend;
      EXPECT_EQ(verified[1].sizes[0].min, 7);
      if (backend == std::string("native") && dtype == DType::f32) {
        EXPECT_GT(verified[1].worst, 0) << "something was rounded, or nothing was compared";
      }
    }
  }
}

TEST(Vectors, TheyAreTheSameBytesEachTimeAndStayInTheFile) {
  const auto p = with_tests(small_model());
  const std::string file = program::serialize(p);
  EXPECT_EQ(file, program::serialize(with_tests(small_model())));
  auto again = program::deserialize(program::Blob::copy_of(file.data(), file.size()));
  ASSERT_TRUE(again.ok()) << again.status().text();
  EXPECT_EQ(program::serialize(*again), file);
  for (const auto& v : value_or_raise(lab::run_tests(*again, "native", {}))) EXPECT_EQ(v.wrong, "");
}

TEST(Vectors, AWrongNumberIsFound) {
  auto p = with_tests(small_model());
  const auto wrong = [&] { return value_or_raise(lab::run_tests(p, "native", {}))[1].wrong; };
  ASSERT_EQ(wrong(), "");
  const auto good = p.blobs;
  for (auto& weight : p.weights) {  // the weight that is multiplied, and the table
    auto& blob = p.blobs[static_cast<size_t>(weight.blob)];
    std::vector<float> numbers(blob.size / 4);
    std::memcpy(numbers.data(), blob.data, blob.size);
    numbers.back() += 1e-4f;
    blob = program::Blob::copy_of(numbers.data(), blob.size);
    EXPECT_TRUE(wrong().starts_with("output y: element ")) << weight.name << ": " << wrong();
    p.blobs = good;
  }
  const float other[] = {0.5f, 0.5f, 0.5f, 0.5001f};
  p.blobs[static_cast<size_t>(p.states[0].blob)] = program::Blob::copy_of(other, sizeof other);
  EXPECT_TRUE(wrong().starts_with("state ")) << wrong();
}

TEST(Vectors, AProgramThatHasRunKeepsThemOnlyWithoutStates) {
  auto p = with_tests(small_model());
  auto session =
      value_or_raise(runtime::Session::create(std::make_shared<const program::CompiledProgram>(p),
                                              {value_or_raise(seam::registry().open("native"))}, {}));
  EXPECT_TRUE(value_or_raise(session->snapshot()).tests.empty()) << "they begin with other states";
}

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Files as Weft wrote them, one for each version of the format: `version_1_1.weft` carries tests, the
/// weights of `version_1_2.weft` lie beside it, `version_1_3.weft` has code of a device that is nowhere.
TEST(Vectors, OldFilesRun) {
  const fs::path again = fs::temp_directory_path() / fmt::format("weft_golden_{}", ::getpid());
  fs::create_directories(again);
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(WEFT_SOURCE_DIR "/tests/golden")) {
    if (entry.path().extension() == ".weights") continue;
    auto p = compiler::read_file(entry.path().string());
    ASSERT_TRUE(p.ok()) << p.status().text();
    ++files;
    auto newest = *p;
    if (p->tests.empty()) newest.tests = with_tests(*p).tests;
    for (const char* backend : {"reference", "native"})
      for (const auto& v : value_or_raise(lab::run_tests(newest, backend, {})))
        EXPECT_EQ(v.wrong, "") << entry.path() << " on " << backend;
    ASSERT_TRUE(program::write_file(*p, (again / entry.path().filename()).string(), p->weights_file).ok());
  }
  for (const auto& entry : fs::directory_iterator(WEFT_SOURCE_DIR "/tests/golden"))
    EXPECT_EQ(slurp(again / entry.path().filename()), slurp(entry.path()))
        << entry.path() << ": the same version is written";
  fs::remove_all(again);
  EXPECT_EQ(files, 4u);
}

}  // namespace
}  // namespace weft::testing::vectors_test

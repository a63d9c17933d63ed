#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "lab/vectors.h"
#include "program/container.h"
#include "program/plan.h"
#include "run_command.h"
#include "runtime/devices.h"
#include "runtime/session.h"
#include "small_program.h"
#include "test_backends.h"

// What devices compiled, in program files: taken where it fits, and never missed.
namespace weft::device_code_test {
namespace {

namespace fs = std::filesystem;
using program::CompiledProgram;

const std::string kMlp = WEFT_SOURCE_DIR "/conformance/data/import/mlp/";

class DeviceCode : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  // A process with a cache of its own, which is empty, compiles for OpenCL.
  Outcome compiled(const std::string& out) const {
    const std::string caches =
        fmt::format("POCL_CACHE_DIR={0}/pocl WEFT_CACHE_DIR={0}/cache ", folder_.string());
    return run_command(caches + WEFT_BINARY_DIR "/weft compile " + kMlp + "model_ir.json --weights " + kMlp +
                       "model.safetensors --tests 1 --device-code opencl --out " + out);
  }
  CompiledProgram opencl_program() const {
    const auto made = compiled(at("m.weft"));
    if (made.status != 0) throw Error(fail(Code::internal, "{}", made.text));
    return value_or_raise(program::read_file(at("m.weft")));
  }
  fs::path folder_ = fs::temp_directory_path() / fmt::format("weft_device_code_{}", ::getpid());
};

std::string wrong(const CompiledProgram& p, const std::string& backend) {
  std::string all;
  for (const auto& v : value_or_raise(lab::run_tests(p, backend, {}))) all += v.wrong;
  return all;
}
size_t unused(const CompiledProgram& p, const std::string& backend) {
  return runtime::unused_code(p, value_or_raise(runtime::devices_for(backend, {}))).size();
}

TEST_F(DeviceCode, StaysInTheFile) {
  const auto p = program::coded_program();
  const std::string file = serialize(p);
  EXPECT_EQ(file[10], 3) << "the minor version";
  const auto again = value_or_raise(program::load(file));
  ASSERT_EQ(again.device_code.size(), 1u);
  EXPECT_EQ(again.device_code[0].device, "opencl: a device");
  ASSERT_EQ(again.device_code[0].artefacts.size(), 2u);
  EXPECT_EQ(again.device_code[0].artefacts[1].first, "opencl-01");
  EXPECT_EQ(again.device_code[0].artefacts[1].second.size, 9u);
  EXPECT_EQ(serialize(again), file);
  EXPECT_NE(print(again).find("code of opencl: a device: 2 artefacts"), std::string::npos);
  EXPECT_EQ(serialize(program::tested_program())[10], 1) << "without it the file is one of an older version";
}

TEST_F(DeviceCode, WhatIsNoneIsRefusedWithTheSection) {
  const auto said = [](const std::function<void(CompiledProgram&)>& change) {
    auto p = program::coded_program();
    change(p);
    return program::load(serialize(p)).status().message();
  };
  EXPECT_EQ(said([](auto& p) { p.device_code[0].artefacts[0].first = "../evil"; }),
            "device code: artefact 0 has no proper key");
  EXPECT_EQ(said([](auto& p) { p.device_code[0].artefacts[1].first = "opencl-00"; }),
            "device code: artefact 'opencl-00' does not come after 'opencl-00'");
  EXPECT_EQ(said([](auto& p) { p.device_code[0].capability = "?"; }),
            "device code: a device without a name or hash");
  auto p = program::small_program();
  const std::string bytes = program::write_device_code(program::coded_program());
  for (size_t n = 1; n < bytes.size(); ++n)
    EXPECT_FALSE(read_device_code(std::as_bytes(std::span(bytes).first(n)), {}, p).ok()) << n;
}

// OpenCL gets what the file has, where it would have compiled.
TEST_F(DeviceCode, IsTakenInsteadOfCompiling) {
  WEFT_NEEDS_BACKEND("opencl");
  const auto p = opencl_program();
  ASSERT_EQ(p.device_code.size(), 1u);
  const auto& code = p.device_code[0];
  ASSERT_FALSE(code.artefacts.empty());
  for (const auto& [key, blob] : code.artefacts)
    EXPECT_TRUE(key.starts_with("opencl-") && blob.size > 0) << key;
  EXPECT_EQ(unused(p, "opencl"), 0u);
  const seam::NotedArtefacts noted;
  EXPECT_EQ(wrong(p, "opencl"), "");
  EXPECT_EQ(noted.got(), code.artefacts.size());
  EXPECT_EQ(noted.all().size(), code.artefacts.size()) << "nothing was compiled";
}

TEST_F(DeviceCode, OfAnotherDeviceIsLeftAloneAndWhyIsSaid) {
  WEFT_NEEDS_BACKEND("opencl");
  auto p = opencl_program();
  EXPECT_EQ(wrong(p, "native"), "");
  const auto why = runtime::unused_code(p, value_or_raise(runtime::devices_for("native", {})));
  ASSERT_EQ(why.size(), 1u);
  EXPECT_NE(why[0].why.find("it was compiled for opencl: "), std::string::npos) << why[0].why;
  EXPECT_NE(why[0].why.find(", and here is native: "), std::string::npos) << why[0].why;
  const auto verified = weft_program("verify " + at("m.weft") + " --backend native");
  EXPECT_EQ(verified.status, 0);
  EXPECT_NE(verified.text.find("are of no use: it was compiled for opencl"), std::string::npos)
      << verified.text;
  p.device_code[0].capability = std::string(32, 'a');
  EXPECT_EQ(unused(p, "opencl"), 1u);
  const seam::NotedArtefacts noted;
  EXPECT_EQ(wrong(p, "opencl"), "");
  EXPECT_EQ(noted.got(), 0u);
}

// Bytes under a right key that are no program: the text is compiled.
TEST_F(DeviceCode, ThatIsNoCodeIsNotMissed) {
  WEFT_NEEDS_BACKEND("opencl");
  auto p = opencl_program();
  for (auto& [key, blob] : p.device_code[0].artefacts) blob = program::Blob::copy_of("no program", 10);
  EXPECT_EQ(wrong(p, "opencl"), "");
}

TEST_F(DeviceCode, WantsATestToRun) {
  const auto r = weft_program("compile " + kMlp + "model_ir.json --weights " + kMlp +
                              "model.safetensors --tests 0 --device-code native --out " + at("m.weft"));
  EXPECT_EQ(r.status, 2);
  EXPECT_NE(r.text.find("--tests 1 makes one"), std::string::npos) << r.text;
}

}  // namespace
}  // namespace weft::device_code_test

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler/compile.h"
#include "lab/kernels/call_json.h"
#include "lab/kernels/contest.h"
#include "lab/kernels/program_calls.h"
#include "seam/preference.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Operands that hold the same bytes in every launch, as the weights of a program: kernels may pack them once.
namespace weft::lab::lab_constants_test {
namespace {

// x [8, 64] by a weight [48, 64].
Operation layer(uint64_t constants) {
  Operation o{"linear",
              "a layer",
              {.inputs = {conformance::normal({8, 64}), conformance::normal({48, 64})}},
              DType::f32,
              {{{0, -1}, 0}, {{-1, 0}, 1}}};
  o.constants = constants;
  return o;
}

std::string signature_of(const Operation& o) {
  return seam::signature(value_or_raise(lab::describe(ask_of(o)))->desc());
}

Tensor filled(const IntList& shape) {
  const std::vector<float> v(static_cast<size_t>(element_count(std::span<const int64_t>(shape))), 0.5f);
  return Tensor::of(std::span<const float>(v), shape, DType::f32, "native");
}

TEST(LabConstants, ACallWithThemIsAnotherCall) {
  EXPECT_NE(signature_of(layer(2)), signature_of(layer(0))) << "another kernel may be the fastest";
  EXPECT_NE(layer(2).label().find("constant f32[48, 64]"), std::string::npos) << layer(2).label();
  for (const bool one_size : {false, true}) {
    Operation o = layer(2);
    o.one_size = one_size;
    const auto again = ask_from(to_json(ask_of(o)));
    EXPECT_EQ(again.constants, 2u);
    EXPECT_EQ(again.one_size, one_size);
  }
}

TEST(LabConstants, TheyAreThoseThatSessionsPack) {
  const Tensor weight = filled({48, 64}), table = filled({64, 64});
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("weft_constants_{}", ::getpid())).string();
  compile(
      [&](const std::vector<Tensor>& in) {
        return std::vector{linear(linear(in[0], table), weight), matmul(in[0], table)};
      },
      {{"x", {DType::f32, {Dim::symbol("rows_of_x", 1, 16), 64}}}}, {.backend = "native", .fuse = false})
      .save(path);
  const auto program = value_or_raise(compiler::read_file(path));
  std::filesystem::remove(path);
  const std::vector inputs{conformance::counting({8, 64})};
  const auto calls = value_or_raise(operations_of_program(program, inputs));
  size_t layers = 0;
  for (const auto& o : calls.operations) {
    const bool by_weight = o.call.inputs.back().shape == conformance::Dims{48, 64};
    layers += by_weight;
    EXPECT_EQ(o.constants, by_weight ? 2u : 0u) << o.label() << ": calls of two ops read the table";
    EXPECT_FALSE(o.one_size) << "it has a symbol";
  }
  EXPECT_EQ(layers, 1u);
}

TEST(LabConstants, APackedWeightIsRightAndPackedOutsideOfTheTurns) {
  ContestOptions options;
  options.process.command = {WEFT_BINARY_DIR "/weft", "lab", "--worker", "--threads", "1"};
  options.quick = true, options.seconds = 0, options.sample = 2e-4;
  const auto see = [](const std::string&) {};
  const auto packed = value_or_raise(compare(layer(2), {"native", "native.linear.packed"}, options, see));
  for (const Row& row : packed.rows) {
    EXPECT_FALSE(row.out()) << row.contender << ": " << row.why;
    EXPECT_GT(row.cases, 0u);
  }
  EXPECT_EQ(packed.rows[0].kernel, "native.linear.packed");
}

}  // namespace
}  // namespace weft::lab::lab_constants_test

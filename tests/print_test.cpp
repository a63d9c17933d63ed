#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "weft/jit.h"
#include "weft/ops.h"

namespace weft::print_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

TEST(Print, ColumnsAreAlignedAndTheTypeFollows) {
  EXPECT_EQ(text(Tensor::of({1.5, -2, 0.25, -kNan}, {2, 2})),
            "[[ 1.5000, -2.0000],\n"
            " [ 0.2500,     nan]]  f32[2, 2]");
  EXPECT_EQ(text(Tensor::of({1, 2, 3, 40, 5, 6, 7, 8}, {2, 2, 2}, DType::i64)),
            "[[[ 1,  2],\n"
            "  [ 3, 40]],\n"
            "\n"
            " [[ 5,  6],\n"
            "  [ 7,  8]]]  i64[2, 2, 2]");
  EXPECT_EQ(text(Tensor::of({1, 0, 1}, {3}, DType::boolean)), "[ true, false,  true]  bool[3]");
}

TEST(Print, EveryDTypeHasItsWords) {
  EXPECT_EQ(text(Tensor::scalar(2.5, DType::f16)), "2.5000  f16[]");
  EXPECT_EQ(text(Tensor::scalar(2.5, DType::bf16)), "2.5000  bf16[]");
  EXPECT_EQ(text(Tensor::scalar(2, DType::f64)), "2.  f64[]");
  EXPECT_EQ(text(Tensor::scalar(-3, DType::i8)), "-3  i8[]");
  const int64_t two[] = {2};
  const uint64_t large[] = {~uint64_t{0}, 0};
  EXPECT_EQ(text(Tensor::of(std::span<const uint64_t>(large), two, DType::u64)),
            "[18446744073709551615,                    0]  u64[2]");
  const int64_t least[] = {INT64_MIN, INT64_MAX};
  EXPECT_EQ(text(Tensor::of(std::span<const int64_t>(least), two, DType::i64)),
            "[-9223372036854775808,  9223372036854775807]  i64[2]");
  for (int t = 0; t < kDTypeCount; ++t)
    EXPECT_NE(text(Tensor::scalar(1, static_cast<DType>(t))).find(name(static_cast<DType>(t))),
              std::string::npos);
}

TEST(Print, DigitsFollowTheSizesOfTheNumbers) {
  EXPECT_EQ(text(Tensor::of({1, 5000, kInf, -kInf}, {4})), "[   1., 5000.,   inf,  -inf]  f32[4]");
  EXPECT_EQ(text(Tensor::of({0.5, 5000}, {2})), "[5.0000e-01, 5.0000e+03]  f32[2]");
  EXPECT_EQ(text(Tensor::of({0.00001}, {1}, DType::f64)), "[1.0000e-05]  f64[1]");
  EXPECT_EQ(text(Tensor::of({3e9, 0}, {2})), "[3.0000e+09, 0.0000e+00]  f32[2]");
  EXPECT_EQ(text(Tensor::of({-0.0, 0.0}, {2})), "[-0.,  0.]  f32[2]");
}

TEST(Print, NothingIsEmptyBrackets) {
  EXPECT_EQ(text(full(0, {0})), "[]  f32[0]");
  EXPECT_EQ(text(full(0, {2, 0, 3}, DType::i32)), "[]  i32[2, 0, 3]");
  EXPECT_EQ(text(Tensor()), "an empty Tensor");
}

TEST(Print, LongTensorsAreShortenedAndLongRowsFolded) {
  EXPECT_EQ(text(iota(1001)), "[   0,    1,    2, ...,  998,  999, 1000]  i32[1001]");
  const std::string whole = text(iota(1000));
  EXPECT_EQ(whole.find("..."), std::string::npos);
  EXPECT_EQ(whole.substr(whole.find('\n') - 12), whole.substr(68)) << whole;
  std::istringstream lines(whole);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 90u) << line;
  EXPECT_EQ(text(reshape(iota(2000), {500, 4})),
            "[[   0,    1,    2,    3],\n"
            " [   4,    5,    6,    7],\n"
            " [   8,    9,   10,   11],\n"
            " ...,\n"
            " [1988, 1989, 1990, 1991],\n"
            " [1992, 1993, 1994, 1995],\n"
            " [1996, 1997, 1998, 1999]]  i32[500, 4]");
}

TEST(Print, StreamsFmtBackendsAndTraces) {
  const Tensor x = Tensor::of({1, 2}, {2});
  std::ostringstream out;
  out << x;
  EXPECT_EQ(out.str(), "[1., 2.]  f32[2]");
  EXPECT_EQ(fmt::format("{:>20}", x), "    [1., 2.]  f32[2]");
  const std::string other = default_backend() == "native" ? "reference" : "native";
  EXPECT_EQ(text(x.to(other)), "[1., 2.]  f32[2] on " + other);
  std::string inside;
  (void)trace(
      [&](const std::vector<Tensor>& in) {
        inside = text(in[0]) + ", " + text(x);
        return std::vector<Tensor>{in[0] + x};
      },
      {{"x", {DType::f32, {Dim::symbol("batch", 1, 8), 2}}}});
  EXPECT_EQ(inside, "f32[batch, 2], f32[2]");
}

}  // namespace
}  // namespace weft::print_test

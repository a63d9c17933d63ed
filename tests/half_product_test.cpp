#include <gtest/gtest.h>

#include <random>

#include "test_backends.h"
#include "weft/backends.h"
#include "weft/ops.h"

// Products of halves on native, around the sizes at which it takes another way. Small integers have exact
// sums, so every element is the exact one, rounded once: the bits of `reference`.
namespace weft::testing::half_product_test {
namespace {

class Drawn {
 public:
  Tensor integers(std::initializer_list<int64_t> shape, DType dtype) {
    int64_t n = 1;
    for (const int64_t d : shape) n *= d;
    std::vector<double> values(static_cast<size_t>(n));
    for (double& v : values) v = static_cast<double>(static_cast<int>(random_() % 9)) - 4;
    return Tensor::of(std::span<const double>(values), std::span(shape.begin(), shape.size()), dtype);
  }

 private:
  std::mt19937 random_{7};
};

template <class F>
void expect_bits_of_reference(F f, const std::string& what) {
  const auto on = [&](const char* backend) {
    const OnBackend there(backend);
    return f(Drawn());
  };
  EXPECT_EQ(on("native").to_bytes(), on("reference").to_bytes()) << what;
}

TEST(HalfProduct, LinearIsRoundedOnceForAnyNumberOfRows) {
  if (!is_backend_available("native")) GTEST_SKIP() << "native is not available here";
  for (const DType t : {DType::bf16, DType::f16})
    for (const int64_t m : {1, 2, 3, 4, 5, 8, 9, 70})
      for (const int64_t k : {1, 15, 64, 83})
        for (const int64_t n : {1, 63, 130})
          for (const bool bias : {false, true})
            expect_bits_of_reference(
                [&](Drawn drawn) {
                  const Tensor x = drawn.integers({m, k}, t), w = drawn.integers({n, k}, t);
                  return linear(x, w, bias ? drawn.integers({n}, t) : Tensor());
                },
                fmt::format("{} m {} k {} n {} bias {}", name(t), m, k, n, bias));
}

TEST(HalfProduct, MatmulIsRoundedOnceHoweverItsOperandsLie) {
  if (!is_backend_available("native")) GTEST_SKIP() << "native is not available here";
  for (const DType t : {DType::bf16, DType::f16})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const auto [m, k, n, batch] : {std::array<int64_t, 4>{1, 40, 70, 1},
                                            {5, 33, 1, 2},
                                            {9, 1, 65, 3},
                                            {600, 20, 5, 1},
                                            {40, 70, 50, 9}})
          expect_bits_of_reference(
              [&](Drawn drawn) {
                const Tensor a = ta ? drawn.integers({batch, k, m}, t) : drawn.integers({batch, m, k}, t);
                const Tensor b = tb ? drawn.integers({n, k}, t) : drawn.integers({k, n}, t);
                return matmul(a, b, ta, tb);
              },
              fmt::format("{} batch {} m {} k {} n {} transposed {} {}", name(t), batch, m, k, n, ta, tb));
}

// Wider than what is widened at a time, and more rows than are made at once.
TEST(HalfProduct, LargeOnesAreMadeInPieces) {
  if (!is_backend_available("native")) GTEST_SKIP() << "native is not available here";
  for (const bool turned : {false, true})
    expect_bits_of_reference(
        [&](Drawn drawn) {
          const Tensor a = drawn.integers({520, 1000}, DType::bf16);
          const Tensor b =
              turned ? drawn.integers({1100, 1000}, DType::bf16) : drawn.integers({1000, 1100}, DType::bf16);
          return matmul(a, b, false, turned);
        },
        turned ? "transposed" : "as it lies");
}

}  // namespace
}  // namespace weft::testing::half_product_test

#include <limits>

#include "test_backends.h"
#include "weft/ops.h"
#include "weft/tensor.h"

// A C++ number with a tensor is that number or an error, never silently another one.
namespace weft::testing::scalars_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Scalars, AreRefusedWhereTheDtypeDoesNotHoldThem) {
  const Tensor x = Tensor::of({1, 2, 3}, {3}, DType::i32), h = full(60000, {2}, DType::f16),
               state = Tensor::of({1, 0}, {2}, DType::u64);
  for (const auto& f :
       {std::function([&] { (void)(x * 0.5); }), std::function([&] { (void)(x + 0.5); }),
        std::function([&] { (void)(x - 1e10); }), std::function([&] { (void)(x / kInfinity); }),
        std::function([&] { (void)full(0.5, {2}, DType::i64); }),
        std::function([&] { (void)full(300, {2}, DType::u8); }),
        std::function([&] { (void)full(2, {2}, DType::boolean); }),
        std::function([&] { (void)full(-1, {2}, DType::u32); }),
        std::function([&] { (void)full(1e6, {2}, DType::f16); }), std::function([&] { (void)(h * 1e-9); }),
        std::function([&] { (void)(h + -1e-9); }),
        std::function([&] { (void)uniform(state, 0, 1e30, {2}, DType::f16); }),
        std::function([&] { (void)pad(x, 0, 1, 1, 0.5); }), std::function([&] { (void)clamp(x, 0.5, 2); }),
        std::function([&] { (void)Tensor::scalar(0.5, DType::i32); }),
        std::function([&] { (void)Tensor::scalar(1000, DType::f8e4m3); }),
        std::function([&] { (void)Tensor::scalar(0x1p63, DType::i64); }),  // stored, it would be 2^63 - 1
        std::function([&] { (void)full(0x1p64, {2}, DType::u64); }),
        std::function([&] { (void)Tensor::of({1, 2.5}, {2}, DType::i8); })})
    EXPECT_NE(error_of(f).find("can't hold"), std::string::npos) << error_of(f);
  EXPECT_NE(error_of([&] { (void)(x * 0.5); }).find("cast(x, DType::f32)"), std::string::npos);
}

TEST(Scalars, AreTakenWhereItDoes) {
  const Tensor x = Tensor::of({1, 2, 3}, {3}, DType::i32), h = Tensor::of({1, 2, 3}, {3}, DType::f16);
  EXPECT_EQ((x * 3).to_vector<int>(), (std::vector{3, 6, 9}));
  EXPECT_EQ((x / -1).to_vector<int>(), (std::vector{-1, -2, -3}));
  EXPECT_EQ((h * 0.1).dtype(), DType::f16);  // rounded, as in PyTorch
  EXPECT_EQ((h * kInfinity).to_vector<double>()[0], kInfinity);
  EXPECT_EQ(clamp(x, 2).to_vector<int>(), (std::vector{2, 2, 3}));
  EXPECT_EQ((h * 1e-7).dtype(), DType::f16);  // a subnormal
  EXPECT_EQ(clamp(h - 2, 1e-9, 1).to_vector<double>(), (std::vector{0.0, 0.0, 1.0}));
  EXPECT_EQ(clamp(h, -1e30, 2).to_vector<double>(), (std::vector{1.0, 2.0, 2.0}));
  EXPECT_EQ(sign(Tensor::of({0, 7}, {2}, DType::u32)).to_vector<int>(), (std::vector{0, 1}));
}

}  // namespace
}  // namespace weft::testing::scalars_test

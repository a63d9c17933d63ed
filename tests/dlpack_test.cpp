#include "weft/dlpack.h"

#include <dlfcn.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "eager/tensor_impl.h"
#include "test_backends.h"
#include "weft/jit.h"
#include "weft/ops.h"

// Import and export by DLPack. The other library is tests/plugins/good_foreign_memory.c.
namespace weft::dlpack_test {
namespace {

using testing::error_of;

using Make = DLManagedTensor* (*)(size_t, uint64_t, int, const int64_t*, const int64_t*, DLDataType, int*);

class DlPack : public ::testing::TestWithParam<const char*> {
 protected:
  static void* symbol(const char* name) {
    static void* library = dlopen(WEFT_BINARY_DIR "/plugins/good_foreign_memory.so", RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : nullptr;
  }
  void SetUp() override {
    ASSERT_NE(symbol("make_foreign"), nullptr);
    if (testing::backends({backend()}).empty()) GTEST_SKIP() << "not on this machine";
  }
  void TearDown() override {
    for (auto* m : all_) reinterpret_cast<void (*)(DLManagedTensor*)>(symbol("end_foreign"))(m);
  }
  std::string backend() const { return GetParam(); }

  /// f32 numbers 0, 1, 2, ... at `offset`, seen under these strides (none: row-major).
  DLManagedTensor* foreign(IntList shape, IntList strides = {}, uint64_t offset = 0, size_t numbers = 120,
                           DLDataType dtype = {kDLFloat, 32, 1}) {
    auto* m = reinterpret_cast<Make>(symbol("make_foreign"))(
        offset + numbers * 4, offset, static_cast<int>(shape.size()), shape.data(),
        strides.empty() ? nullptr : strides.data(), dtype, &deleted_);
    numbers_ = reinterpret_cast<float*>(static_cast<char*>(m->dl_tensor.data) + offset);
    if (offset % 4 == 0) std::iota(numbers_, numbers_ + numbers, 0.f);
    all_.push_back(m);
    return m;
  }

  int deleted_ = 0;
  float* numbers_ = nullptr;
  std::vector<DLManagedTensor*> all_;
};

std::vector<float> values(const Tensor& t) { return t.to_vector<float>(); }

TEST_P(DlPack, AnImportIsTheMemoryItself) {
  {
    const Tensor t = from_dlpack(foreign({2, 3}, {}, 64), backend());
    EXPECT_EQ(t.sizes(), (IntList{2, 3}));
    EXPECT_EQ(t.backend(), backend());
    EXPECT_EQ(values(t), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    numbers_[4] = 40;
    EXPECT_EQ(values(t + t), (std::vector<float>{0, 2, 4, 6, 80, 10})) << "a write of its owner is seen";
    const Tensor same = t.detach();
    EXPECT_EQ(deleted_, 0);
  }
  EXPECT_EQ(deleted_, 1);
}

TEST_P(DlPack, KernelsAreToldHowItIsAligned) {
  for (const uint64_t offset : {4, 8, 20, 32, 64}) {
    const Tensor t = from_dlpack(foreign({4}, {}, offset), backend());
    const uint64_t alignment = t.impl()->c.alignment;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers_) % alignment, 0u) << offset;
    EXPECT_GE(alignment, 4u) << offset;
  }
}

TEST_P(DlPack, WhatWeftWritesItsOwnerSees) {
  const auto of = [&](std::vector<float> v, IntList shape) {
    return Tensor::of(std::span<const float>(v), shape, DType::f32, backend());
  };
  const auto step = [&](const Tensor& p) {
    sgd_step(p, of({1, 1, 1, 1}, {2, 2}), of({0, 0, 0, 0}, {2, 2}), of({0.5f}, {}));
  };
  step(from_dlpack(foreign({2, 2}, {}, 8), backend()));
  EXPECT_EQ(deleted_, 1);
  auto* m = foreign({2, 2});
  const Tensor held = from_dlpack(m, backend());
  step(held);
  EXPECT_EQ(values(held), (std::vector<float>{-0.5f, 0.5f, 1.5f, 2.5f}));
  EXPECT_EQ(std::vector<float>(numbers_, numbers_ + 4), (std::vector<float>{-0.5f, 0.5f, 1.5f, 2.5f}));
  const Tensor transposed = from_dlpack(foreign({2, 2}, {1, 2}), backend());
  EXPECT_EQ(error_of([&] { step(transposed); }),
            "invalid argument: sgd_step: 'parameter' is written in place, and was imported with strides [1, "
            "2]; copy "
            "it first");
}

// Enqueued work must end before the deleter runs: otherwise it would read what the deleter writes.
TEST_P(DlPack, TheDeleterComesAfterTheLastUse) {
  std::vector<Tensor> sums;
  for (int i = 0; i < 20; ++i) {
    Tensor t = from_dlpack(foreign({120}), backend());
    Tensor sum = t + t;
    for (int k = 0; k < 5; ++k) sum = sum + t;
    sums.push_back(std::move(sum));
  }
  EXPECT_EQ(deleted_, 20);
  for (const Tensor& sum : sums) {
    const auto got = values(sum);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], 7 * static_cast<float>(i));
  }
}

TEST_P(DlPack, AnyThreadMayLetGoOfIt) {
  Tensor t = from_dlpack(foreign({5}), backend());
  Tensor twice = t + t;
  std::thread([moved = std::move(t)]() mutable { moved = Tensor(); }).join();
  EXPECT_EQ(deleted_, 1);
  EXPECT_EQ(values(twice), (std::vector<float>{0, 2, 4, 6, 8}));
}

TEST_P(DlPack, StridesAndOffsetsAreRead) {
  const struct {
    IntList shape, strides;
    std::vector<float> want;
  } cases[] = {
      {{3, 2}, {1, 3}, {0, 3, 1, 4, 2, 5}},      // a transposed matrix
      {{3, 2}, {8, 2}, {0, 2, 8, 10, 16, 18}},   // of the same shape, elsewhere
      {{2, 3}, {10, 2}, {0, 2, 4, 10, 12, 14}},  // rows with gaps, every other column
      {{3}, {0}, {0, 0, 0}},                     // one element, again and again
      {{2, 1, 2}, {7, 99, 1}, {0, 1, 7, 8}},     // an axis of one element has any stride
      {{2, 2}, {2, 1}, {0, 1, 2, 3}},            // row-major, said aloud
      {{}, {}, {0}},
  };
  for (const auto& c : cases)
    for (const uint64_t offset : {0, 4, 12, 64, 100}) {
      SCOPED_TRACE(fmt::format("{} by {}, from byte {}", text(std::span<const int64_t>(c.shape)),
                               text(std::span<const int64_t>(c.strides)), offset));
      const Tensor t = from_dlpack(foreign(c.shape, c.strides, offset), backend());
      EXPECT_EQ(values(t), c.want);
      auto doubled = c.want;
      for (float& v : doubled) v *= 2;
      EXPECT_EQ(values(t + t), doubled);
      EXPECT_EQ(values(t.detach() + t.detach()), doubled);
      EXPECT_EQ(values(t.to("reference")), c.want);
      EXPECT_EQ(values(t.to("reference").to(backend())), c.want);
    }
  EXPECT_EQ(deleted_, 35);
}

// Composite ops, gradients and programs on a transposed matrix.
TEST_P(DlPack, ATransposedMatrixIsAnOperandLikeAnyOther) {
  const Tensor x = from_dlpack(foreign({3, 4}, {1, 3}), backend());
  const auto rows = values(x);
  const Tensor plain = Tensor::of(std::span<const float>(rows), IntList{3, 4}, DType::f32, backend());
  EXPECT_EQ(values(softmax(x, 1)), values(softmax(plain, 1)));
  EXPECT_EQ(values(matmul(x, permute(plain, {1, 0}))), values(matmul(plain, permute(plain, {1, 0}))));
  EXPECT_EQ(values(sum(x, {0})), values(sum(plain, {0})));
  const auto gradient = [](Tensor leaf) {
    leaf.requires_grad(true);
    sum(leaf * leaf, {}).backward();
    return leaf.grad().to_vector<float>();
  };
  EXPECT_EQ(gradient(x.detach()), gradient(plain.detach()));
  auto program = compile([](const std::vector<Tensor>& in) { return std::vector{in[0] * in[0] + in[0]}; },
                         {{"x", {DType::f32, {3, 4}}}}, {.backend = backend()});
  EXPECT_EQ(values(program({x})[0]), values(plain * plain + plain));
  // The header that it had is used again for a plain tensor.
  for (int i = 0; i < 3; ++i) {
    {
      const Tensor gone = from_dlpack(foreign({2, 2}, {1, 2}, 12), backend());
    }
    EXPECT_EQ(values(plain + plain)[1], 2 * rows[1]);
  }
}

TEST_P(DlPack, WhatCannotBeImportedStaysItsOwners) {
  const auto refused = [&](DLManagedTensor* m) {
    const std::string words = error_of([&] { (void)from_dlpack(m, backend()); });
    EXPECT_EQ(deleted_, 0);
    return words;
  };
  EXPECT_EQ(refused(foreign({3}, {-1})),
            "invalid argument: from_dlpack: strides [-1]: none may be negative; copy it first");
  EXPECT_EQ(
      refused(foreign({3}, {}, 2)),
      "invalid argument: from_dlpack: the elements of f32 begin at an address that is no multiple of 4; "
      "copy it first");
  EXPECT_EQ(refused(foreign({3}, {}, 0, 120, {kDLFloat, 32, 4})),
            "invalid argument: from_dlpack: no dtype has DLPack's code 2, 32 bits and 4 lanes");
  EXPECT_EQ(refused(foreign({3}, {}, 0, 120, {kDLComplex, 64, 1})),
            "invalid argument: from_dlpack: no dtype has DLPack's code 5, 64 bits and 1 lanes");
  EXPECT_EQ(
      refused(foreign({INT64_MAX, INT64_MAX})),
      "invalid argument: from_dlpack: [9223372036854775807, 9223372036854775807] is no shape of a tensor");
  EXPECT_EQ(
      refused(foreign({3, 3}, {INT64_MAX, 1})).find("reach beyond what 64 bits count") == std::string::npos,
      false);
  EXPECT_EQ(error_of([] { (void)from_dlpack(nullptr); }),
            "invalid argument: from_dlpack: there is no tensor");
  auto* nowhere = foreign({3});
  void* const data = std::exchange(nowhere->dl_tensor.data, nullptr);
  EXPECT_EQ(refused(nowhere), "invalid argument: from_dlpack: the exporter has no memory for its 12 bytes");
  nowhere->dl_tensor.data = data;
  auto* elsewhere = foreign({3});
  elsewhere->dl_tensor.device.device_type = kDLCUDA;
  EXPECT_NE(refused(elsewhere).find("out of "), std::string::npos);
}

TEST_P(DlPack, NoElementsAreNoMemory) {
  auto* m = foreign({0, 3});
  m->dl_tensor.data = nullptr;
  const Tensor none = from_dlpack(m, backend());
  EXPECT_EQ(none.sizes(), (IntList{0, 3}));
  m->dl_tensor.data = numbers_;
  EXPECT_EQ(deleted_, 1);
}

TEST_P(DlPack, AnExportIsTheMemoryItself) {
  const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
  Tensor t = Tensor::of(std::span<const float>(numbers), IntList{2, 3}, DType::f32, backend());
  DLManagedTensor* m = to_dlpack(t + t);
  EXPECT_EQ(m->dl_tensor.ndim, 2);
  EXPECT_EQ(IntList(m->dl_tensor.shape, m->dl_tensor.shape + 2), (IntList{2, 3}));
  EXPECT_EQ(IntList(m->dl_tensor.strides, m->dl_tensor.strides + 2), (IntList{3, 1}));
  if (m->dl_tensor.device.device_type == kDLCPU) {
    const auto* at =
        reinterpret_cast<const float*>(static_cast<char*>(m->dl_tensor.data) + m->dl_tensor.byte_offset);
    EXPECT_EQ(std::vector<float>(at, at + 6), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  }
  if (backend() == "far") {  // its handles mean nothing to anybody, itself included
    EXPECT_NE(error_of([&] { (void)from_dlpack(m, backend()); }).find("out of reach"), std::string::npos);
    m->deleter(m);
    return;
  }
  const Tensor back = from_dlpack(m, backend());
  EXPECT_EQ(values(back), (std::vector<float>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(values(back + back), (std::vector<float>{4, 8, 12, 16, 20, 24}));
}

TEST_P(DlPack, AnExportOfAnImportGoesRound) {
  DLManagedTensor* m = to_dlpack(from_dlpack(foreign({3, 2}, {1, 3}), backend()));
  EXPECT_EQ(IntList(m->dl_tensor.strides, m->dl_tensor.strides + 2), (IntList{1, 3}));
  EXPECT_EQ(deleted_, 0);
  m->deleter(m);
  EXPECT_EQ(deleted_, 1);
}

TEST_P(DlPack, WhatCannotBeExportedSaysWhy) {
  EXPECT_EQ(error_of([] { (void)to_dlpack(Tensor()); }), "invalid argument: to_dlpack: the tensor is empty");
  Tensor leaf = Tensor::of(std::span<const float>(std::vector<float>{1}), IntList{1}, DType::f32, backend());
  leaf.requires_grad(true);
  EXPECT_NE(error_of([&] { (void)to_dlpack(leaf); }).find("detach() it first"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Backends, DlPack,
                         ::testing::Values("reference", "native", "openmp", "opencl", "far"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace weft::dlpack_test

#include "seam/transfer.h"

#include "conformance/seam/patterns.h"
#include "seam/registry.h"
#include "seam_watchers.h"
#include "test_backends.h"
#include "weft/tensor.h"

// Copies between devices: directly if one side is host memory, through pinned pieces otherwise.
namespace weft::transfer_test {
namespace {

using conformance::Pattern;

TEST(Transfers, EveryByteArrivesAndNoOther) {
  (void)testing::counting_backend();
  const auto names = testing::backends({"reference", "far", "watch_counting", "opencl"});
  ASSERT_GE(names.size(), 3u);
  constexpr uint64_t kMiB = 1 << 20, kBefore = 192, kBehind = 100;
  for (const auto& from : names)
    for (const auto& to : names)
      for (const uint64_t bytes :
           {uint64_t{0}, uint64_t{1}, 4 * kMiB - 1, 4 * kMiB, 4 * kMiB + 1, 9 * kMiB + 77}) {
        SCOPED_TRACE(fmt::format("{} -> {}, {} bytes", from, to, bytes));
        auto &a = *value_or_raise(seam::registry().open(from)),
             &b = *value_or_raise(seam::registry().open(to));
        const auto queue_a = value_or_raise(a.open_queue()), queue_b = value_or_raise(b.open_queue());
        const auto source = value_or_raise(a.allocate_unpooled(kBefore + bytes)),
                   target = value_or_raise(b.allocate_unpooled(kBefore + bytes + kBehind));
        const Pattern sent(bytes + 1), around(99);
        const auto all = sent.bytes(bytes), old = around.bytes(kBefore + bytes + kBehind);
        raise_if(queue_a->copy_in(*source.get(), kBefore, all.data(), bytes));
        raise_if(queue_b->copy_in(*target.get(), 0, old.data(), old.size()));
        raise_if(
            seam::transfer(*queue_a, {*source.get(), kBefore}, *queue_b, {*target.get(), kBefore}, bytes));
        std::vector<std::byte> got(old.size());
        raise_if(queue_b->copy_out(got.data(), *target.get(), 0, got.size()));
        const std::span<const std::byte> seen(got);
        EXPECT_FALSE(sent.first_wrong(seen.subspan(kBefore, bytes)));
        EXPECT_FALSE(around.first_wrong(seen.first(kBefore)));
        EXPECT_FALSE(around.first_wrong(seen.subspan(kBefore + bytes), kBefore + bytes));
        raise_if(queue_a->synchronize());
        raise_if(queue_b->synchronize());
      }
}

// The pieces go to one transfer at a time, also where threads copy in opposite directions.
TEST(Transfers, ThreadsMayCopyInOppositeDirections) {
  WEFT_NEEDS_PLUGIN("far");
  const std::string other = testing::counting_backend().name();
  std::atomic<int> wrong = 0;
  const auto copies = [&](const std::string& here, const std::string& there, float first) {
    const OnBackend on(here);
    std::vector<float> numbers(1'300'000);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = first + static_cast<float>(i % 1000);
    const Tensor t = Tensor::of(std::span<const float>(numbers), IntList{1'300'000}, DType::f32, here);
    for (int i = 0; i < 4; ++i)
      if (t.to(there).to_vector<float>() != numbers) ++wrong;
  };
  std::thread a([&] { copies("far", other, 1); }), b([&] { copies(other, "far", 2); });
  a.join(), b.join();
  EXPECT_EQ(wrong, 0);
  for (const auto& name : {std::string("far"), other}) value_or_raise(seam::registry().open(name))->trim();
}

}  // namespace
}  // namespace weft::transfer_test

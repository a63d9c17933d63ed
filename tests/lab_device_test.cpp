#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lab/kernels/contest.h"
#include "lab/kernels/mirror.h"
#include "lab/kernels/shared_memory.h"
#include "seam/device.h"
#include "seam/registry.h"
#include "weft/backends.h"

// The kernel lab on devices whose memory is not the host's.
namespace weft::lab::lab_device_test {
namespace {

// A mirror on `far`, whose queues are late on purpose.
struct Far {
  seam::Device& device = opened();
  std::unique_ptr<seam::Queue> queue = value_or_raise(device.open_queue());
  SharedMemory memory = value_or_raise(SharedMemory::create(4096));
  std::unique_ptr<Mirror> mirror = value_or_raise(Mirror::create(memory.bytes(), *queue));
  seam::BufferRef filled = value_or_raise(device.allocate_unpooled(4096));

  static seam::Device& opened() {
    if (!is_backend_available("far")) load_backend(WEFT_BINARY_DIR "/plugins/far.so");
    return *value_or_raise(seam::registry().open("far"));
  }

  // A launch that writes `value` to byte 100 of the lab's memory, by this queue.
  Status write(seam::Queue& by, char value) {
    const weft_tensor t = mirror->tensor({}, 100);
    seam::Buffer to;
    to.device = &device, to.handle = t.dl.data, to.bytes = 4096;
    return by.copy_in(to, t.dl.byte_offset, &value, 1);
  }
};

Edit spoils(uint64_t at) { return {.output_at = at, .output_bytes = 1}; }

TEST(LabMirror, ALaunchSeesItsEditAndTheLabWhatItWrote) {
  Far far;
  far.memory.bytes()[5] = std::byte{42};
  std::vector<Edit> edits(40, spoils(100));
  edits[20].line_at = edits[20].result_at = 100, edits[20].line_count = edits[20].result_count = 1;
  edits[20].sample_bytes = 1;
  edits[39] = {.input_at = 7, .input_bytes = 2, .value = {std::byte{1}, std::byte{2}}};
  size_t launches = 0;
  const auto launch = [&] { return far.write(*far.queue, static_cast<char>(++launches)); };
  EXPECT_GT(value_or_raise(far.mirror->run(edits, 1, launch, false)), 0u);
  const auto bytes = far.memory.bytes();
  EXPECT_EQ(static_cast<size_t>(bytes[100]), launches % 256) << "what the last launch wrote";
  EXPECT_EQ(bytes[5], std::byte{42});
  EXPECT_EQ(bytes[7], std::byte{1});
  EXPECT_EQ(bytes[8], std::byte{2});
  EXPECT_GE(launches, 40u);
  // Before the first of a burst, one is not counted; a burst that is run again has 33 more of them.
  EXPECT_EQ((static_cast<size_t>(edits[20].sample[0]) + 256 - 22) % 256 % 33, 0u);
}

TEST(LabMirror, AnotherQueueIsTooLate) {
  Far far;
  const auto beside = value_or_raise(far.device.open_queue());
  // Its work begins when that of the kernel's own queue is over.
  const auto launch = [&]() -> Status {
    const std::vector<char> bytes(4096);
    WEFT_CHECK(far.queue->copy_in(*far.filled.get(), 0, bytes.data(), bytes.size()));
    WEFT_TRY(const uint64_t point, far.queue->mark());
    WEFT_CHECK(beside->wait(*far.queue, point));
    for (int i = 0; i < 200; ++i)  // late by 20 us each
      WEFT_CHECK(beside->copy(*far.filled.get(), 0, *far.filled.get(), 64, 64));
    return far.write(*beside, 9);
  };
  std::vector edits{spoils(100)};
  raise_if(far.mirror->run(edits, 1, launch, false).take_status());
  EXPECT_EQ(far.memory.bytes()[100], kSpoilt);
  raise_if(beside->synchronize());
}

Operation small_softmax() {
  return {"softmax", "a small one", {.inputs = {conformance::normal({96, 64})}}, DType::f32, {{{0}, 0}}};
}

Row contest(const std::string& kernel) {
  ContestOptions options;
  options.process.command = {WEFT_BINARY_DIR "/weft", "lab", "--worker", "--threads", "1"};
  options.quick = true, options.seconds = 0, options.sample = 2e-4;
  return value_or_raise(compare(small_softmax(), {"opencl", kernel}, options, [](const std::string&) {}))
      .rows.at(1);
}

// A kernel in OpenCL C, in a file of its own.
std::string text_file(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(::testing::TempDir()) / name;
  std::ofstream(path) << text;
  return path.string();
}
constexpr const char* kHead =
    "__kernel void weft_lab_kernel(__global const float* x, __global float* y, long a, "
    "long b, int n, int columns)";

class LabText : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_backend_available("opencl")) GTEST_SKIP() << "opencl is not available here";
  }
};

TEST_F(LabText, TheExampleIsRightAndTimed) {
  const auto row = contest(WEFT_SOURCE_DIR "/examples/lab/softmax.cl");
  EXPECT_FALSE(row.out()) << row.why;
  EXPECT_GT(row.cases, 1u);
  EXPECT_GT(row.refused, 0u) << "it takes the last axis alone, in f32";
  EXPECT_FALSE(row.nanoseconds.empty());
  EXPECT_LT(row.peak_bytes, 200u << 20) << "without the lab's copies, of 256 MB and more";
}

TEST_F(LabText, AKernelThatComputesSomethingElseIsWrong) {
  const auto row = contest(text_file("copies.cl", fmt::format("// weft lab: an item for each element\n{} {{\n"
                                                              "  const int i = get_global_id(0);\n"
                                                              "  if (i < n) y[b + i] = x[a + i];\n}}\n",
                                                              kHead)));
  EXPECT_EQ(name(row.verdict), "WRONG") << row.why;
}

TEST_F(LabText, ATextThatDoesNotCompileShowsTheLog) {
  const auto row = contest(text_file(
      "broken.cl", fmt::format("// weft lab: an item for each element\n{} {{ no_such_word; }}\n", kHead)));
  EXPECT_EQ(name(row.verdict), "INVALID");
  EXPECT_NE(row.why.find("no_such_word"), std::string::npos) << row.why;
}

TEST_F(LabText, ATextSaysHowItIsLaunched) {
  const auto silent = contest(text_file("silent.cl", fmt::format("{} {{}}\n", kHead)));
  EXPECT_NE(silent.why.find("does not say how it is launched"), std::string::npos) << silent.why;
  const auto unclear = contest(text_file("unclear.cl", "// weft lab: a group of 0 for each row\n"));
  EXPECT_NE(unclear.why.find("a group of 0 for each row"), std::string::npos) << unclear.why;
}

}  // namespace
}  // namespace weft::lab::lab_device_test

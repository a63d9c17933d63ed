#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "host_memory.h"
#include "program/program.h"
#include "weft/backends.h"
#include "weft/weft.h"

// weft/weft.h, as a program in C sees it. The program is y = softmax(tanh(table[ids] w / 2) + x), with a
// state that adds up.
namespace weft::c_api_test {
namespace {

constexpr const char* kFile = WEFT_SOURCE_DIR "/tests/golden/version_1_1.weft";

struct Program {
  weft_program* p = nullptr;
  explicit Program(weft_program* made) : p(made) {}
  explicit Program(const char* path = kFile) { EXPECT_EQ(weft_program_load(path, &p), WEFT_SUCCESS); }
  ~Program() { weft_program_free(p); }
};

struct Session {
  weft_session* s = nullptr;
  explicit Session(const weft_program* p, const char* backend = "reference") {
    const weft_options options = {sizeof(weft_options), backend, WEFT_FALLBACK_FORBID};
    EXPECT_EQ(weft_session_open(p, &options, &s), WEFT_SUCCESS) << weft_error_text();
  }
  ~Session() { weft_session_free(s); }
};

struct Inputs {
  std::vector<int32_t> ids;
  std::vector<float> x;
  explicit Inputs(int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) ids.push_back(static_cast<int32_t>(i * 5 % 6));
    for (int64_t i = 0; i < rows * 4; ++i) x.push_back(static_cast<float>(i * 7 % 11) / 8 - 0.5f);
  }
  weft_result bind(weft_session* s) const {
    const int64_t rows = static_cast<int64_t>(ids.size()), dims[] = {rows, 4};
    const auto first = weft_session_bind_input(s, 0, dims, 1, ids.data(), ids.size() * 4);
    return first ? first : weft_session_bind_input(s, 1, dims, 2, x.data(), x.size() * 4);
  }
};

std::vector<float> floats(const weft_array& a) {
  std::vector<float> out(a.bytes / 4);
  std::memcpy(out.data(), a.data, a.bytes);
  return out;
}

TEST(CApi, SaysWhatAProgramTakesAndGives) {
  const Program program;
  EXPECT_EQ(std::string_view(weft_version()).substr(0, 2), "0.");
  EXPECT_STREQ(weft_program_name(program.p), "small");
  EXPECT_NE(std::strstr(weft_program_text(program.p), "program small\n"), nullptr);
  ASSERT_EQ(weft_program_count(program.p, WEFT_INPUT), 2u);
  ASSERT_EQ(weft_program_count(program.p, WEFT_OUTPUT), 2u);
  ASSERT_EQ(weft_program_count(program.p, WEFT_STATE), 1u);
  weft_port port;
  ASSERT_EQ(weft_program_port(program.p, WEFT_INPUT, 1, &port), WEFT_SUCCESS);
  EXPECT_STREQ(port.name, "x");
  EXPECT_STREQ(port.dtype, "f32");
  EXPECT_STREQ(port.type, "f32[vector_rows, 4]");
  EXPECT_EQ(port.element_size, 4u);
  ASSERT_EQ(port.rank, 2u);
  EXPECT_EQ(port.dims[0], -1);
  EXPECT_EQ(port.dims[1], 4);
  weft_symbol symbol;
  ASSERT_EQ(weft_program_symbol_count(program.p), 1u);
  ASSERT_EQ(weft_program_symbol(program.p, 0, &symbol), WEFT_SUCCESS);
  EXPECT_STREQ(symbol.name, "vector_rows");
  EXPECT_EQ(symbol.max, 40);
}

TEST(CApi, RunsAtAnySizeAndKeepsStates) {
  const Program program;
  const Session session(program.p);
  EXPECT_STREQ(weft_session_backend(session.s), "reference");
  weft_port state;
  ASSERT_EQ(weft_program_port(program.p, WEFT_STATE, 0, &state), WEFT_SUCCESS);
  float before[4], after[4];
  ASSERT_EQ(weft_session_read_state(session.s, state.name, before, sizeof before), WEFT_SUCCESS)
      << weft_error_text();
  for (const int64_t rows : {3, 1, 17, 3}) {
    const Inputs in(rows);
    ASSERT_EQ(in.bind(session.s), WEFT_SUCCESS);
    ASSERT_EQ(weft_session_run(session.s), WEFT_SUCCESS) << weft_error_text();
    weft_array y;
    ASSERT_EQ(weft_session_output(session.s, 0, &y), WEFT_SUCCESS);
    ASSERT_EQ(y.rank, 2u);
    EXPECT_EQ(y.dims[0], rows);
    const auto numbers = floats(y);
    for (size_t r = 0; r < numbers.size(); r += 4)
      EXPECT_NEAR(numbers[r] + numbers[r + 1] + numbers[r + 2] + numbers[r + 3], 1, 1e-6);
  }
  ASSERT_EQ(weft_session_read_state(session.s, state.name, after, sizeof after), WEFT_SUCCESS);
  EXPECT_NE(std::memcmp(before, after, sizeof after), 0) << "it adds up";
  ASSERT_EQ(weft_session_write_state(session.s, state.name, before, sizeof before), WEFT_SUCCESS);
  ASSERT_EQ(weft_session_read_state(session.s, state.name, after, sizeof after), WEFT_SUCCESS);
  EXPECT_EQ(std::memcmp(before, after, sizeof after), 0);
}

TEST(CApi, WritesIntoMemoryOfTheCaller) {
  const Program program;
  const Session session(program.p);
  const Inputs in(2);
  std::vector<float> mine(8, -1);
  ASSERT_EQ(in.bind(session.s), WEFT_SUCCESS);
  ASSERT_EQ(weft_session_run(session.s), WEFT_SUCCESS);
  weft_array y;
  ASSERT_EQ(weft_session_output(session.s, 0, &y), WEFT_SUCCESS);
  const auto wanted = floats(y);
  ASSERT_EQ(weft_session_bind_output(session.s, 0, mine.data(), 32), WEFT_SUCCESS);
  ASSERT_EQ(weft_session_run(session.s), WEFT_SUCCESS);
  EXPECT_EQ(mine, wanted);
  ASSERT_EQ(weft_session_output(session.s, 0, &y), WEFT_SUCCESS);
  EXPECT_EQ(y.data, mine.data());
  ASSERT_EQ(weft_session_bind_output(session.s, 0, mine.data(), 28), WEFT_SUCCESS);
  EXPECT_EQ(weft_session_run(session.s), WEFT_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(weft_error_text(), "got memory for 28"), nullptr) << weft_error_text();
  EXPECT_EQ(weft_session_output(session.s, 0, &y), WEFT_ERROR_INVALID_ARGUMENT) << "that run failed";
}

TEST(CApi, ASessionOutlivesItsProgram) {
  weft_program* p = nullptr;
  ASSERT_EQ(weft_program_load(kFile, &p), WEFT_SUCCESS);
  const Session session(p);
  weft_program_free(p);
  const Inputs in(5);
  ASSERT_EQ(in.bind(session.s), WEFT_SUCCESS);
  EXPECT_EQ(weft_session_run(session.s), WEFT_SUCCESS);
}

/// A program that only shows a state of this name.
weft_program* shows(const std::string& state, Shape shape) {
  program::CompiledProgram p;
  p.name = "shows";
  p.values = {{{DType::f32, std::move(shape)}, 0}};
  p.states = {{state, 0, 0, -1}};
  p.outputs = {{"now", 0}};
  const std::string bytes = program::serialize(p);
  weft_program* made = nullptr;
  EXPECT_EQ(weft_program_load_bytes(bytes.data(), bytes.size(), &made), WEFT_SUCCESS) << weft_error_text();
  return made;
}

// As a prefill and a decode program do with their cache.
TEST(CApi, TwoProgramsWorkInOneState) {
  const Program adds;
  const Program other(shows("captured2", {4}));
  weft_session *first = nullptr, *second = nullptr;
  weft_options options = {sizeof(weft_options), "reference", WEFT_FALLBACK_FORBID, nullptr};
  ASSERT_EQ(weft_session_open(adds.p, &options, &first), WEFT_SUCCESS);
  options.states_of = first;
  ASSERT_EQ(weft_session_open(other.p, &options, &second), WEFT_SUCCESS) << weft_error_text();
  const Inputs in(3);
  ASSERT_EQ(in.bind(first), WEFT_SUCCESS);
  for (int run = 0; run < 3; ++run) {
    ASSERT_EQ(weft_session_run(first), WEFT_SUCCESS);
    ASSERT_EQ(weft_session_run(second), WEFT_SUCCESS) << weft_error_text();
    weft_array now;
    ASSERT_EQ(weft_session_output(second, 0, &now), WEFT_SUCCESS);
    float state[4];
    ASSERT_EQ(weft_session_read_state(first, "captured2", state, sizeof state), WEFT_SUCCESS);
    EXPECT_EQ(std::memcmp(now.data, state, sizeof state), 0) << run;
  }
  const float mine[] = {1, 2, 3, 4};
  float got[4] = {};
  ASSERT_EQ(weft_session_write_state(second, "captured2", mine, sizeof mine), WEFT_SUCCESS);
  ASSERT_EQ(weft_session_read_state(first, "captured2", got, sizeof got), WEFT_SUCCESS);
  EXPECT_EQ(got[3], 4);
  weft_session_free(first);
  ASSERT_EQ(weft_session_run(second), WEFT_SUCCESS) << "the memory is still there";
  ASSERT_EQ(weft_session_read_state(second, "captured2", got, sizeof got), WEFT_SUCCESS);
  EXPECT_EQ(got[0], 1);

  const Program renamed(shows("another", {4})), longer(shows("captured2", {5}));
  options.states_of = second;
  weft_session* none = nullptr;
  EXPECT_EQ(weft_session_open(renamed.p, &options, &none), WEFT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(weft_error_text(), "states_of: the two programs have no state in common");
  EXPECT_EQ(weft_session_open(longer.p, &options, &none), WEFT_ERROR_INVALID_ARGUMENT);
  EXPECT_STREQ(weft_error_text(), "states_of: state captured2 is f32[4] there, f32[5] here");
  if (is_backend_available("native")) {  // not where sanitizers build it
    options.backend = "native";
    EXPECT_EQ(weft_session_open(adds.p, &options, &none), WEFT_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(weft_error_text(), "states_of: that session runs on reference"), nullptr)
        << weft_error_text();
  }
  weft_session_free(second);
}

TEST(CApi, ErrorsAreCodesAndText) {
  weft_program* p = nullptr;
  weft_session* s = nullptr;
  weft_port port;
  const auto expect = [](weft_result got, weft_result want, const char* words) {
    EXPECT_EQ(got, want) << weft_error_text();
    EXPECT_NE(std::strstr(weft_error_text(), words), nullptr) << weft_error_text();
  };
  expect(weft_program_load("/no/such/file", &p), WEFT_ERROR_UNAVAILABLE,
         "can't read '/no/such/file': there is no");
  expect(weft_program_load(nullptr, &p), WEFT_ERROR_INVALID_ARGUMENT, "path is null");
  expect(weft_program_load_bytes("not a program", 13, &p), WEFT_ERROR_CORRUPT,
         "header: 13 bytes are too few");
  EXPECT_EQ(p, nullptr);

  std::ifstream in(kFile, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  bytes[bytes.size() / 2] ^= 4;
  expect(weft_program_load_bytes(bytes.data(), bytes.size(), &p), WEFT_ERROR_CORRUPT, "its hash differs");

  const Program program;
  expect(weft_program_port(program.p, WEFT_INPUT, 2, &port), WEFT_ERROR_INVALID_ARGUMENT, "port 2 of 2");
  weft_options options = {sizeof(weft_options), "nonsense", WEFT_FALLBACK_FORBID};
  EXPECT_NE(weft_session_open(program.p, &options, &s), WEFT_SUCCESS);
  EXPECT_NE(std::strstr(weft_error_text(), "nonsense"), nullptr) << weft_error_text();
  EXPECT_EQ(s, nullptr);

  const Session session(program.p);
  expect(weft_session_run(session.s), WEFT_ERROR_INVALID_ARGUMENT, "input ids of small is not bound");
  const int64_t dims[] = {41, 4};
  const std::vector<float> x(164);
  const std::vector<int32_t> ids(41);
  EXPECT_EQ(weft_session_bind_input(session.s, 0, dims, 1, ids.data(), 164), WEFT_SUCCESS);
  EXPECT_EQ(weft_session_bind_input(session.s, 1, dims, 2, x.data(), 656), WEFT_SUCCESS);
  expect(weft_session_run(session.s), WEFT_ERROR_INVALID_ARGUMENT, "vector_rows");
  expect(weft_session_bind_input(session.s, 9, dims, 2, x.data(), 656), WEFT_ERROR_INVALID_ARGUMENT,
         "input 9 of 2");
  expect(weft_session_read_state(session.s, "none", nullptr, 0), WEFT_ERROR_INVALID_ARGUMENT,
         "no state named 'none'");
  weft_program_free(nullptr);
  weft_session_free(nullptr);
}

#if WEFT_WATCHES_HOST_MEMORY
// Whichever allocation fails, it is a code.
TEST(CApi, NoExceptionLeavesIt) {
  int refused = 0;
  for (int64_t n = 0; n < 3000; n += n < 200 ? 1 : 37) {
    weft_program* p = nullptr;
    weft_session* s = nullptr;
    const weft_options options = {sizeof(weft_options), "reference", WEFT_FALLBACK_FORBID};
    const Inputs in(4);
    weft::testing::refuse_host_allocation_after(n);
    weft_result code = weft_program_load(kFile, &p);
    if (!code) code = weft_session_open(p, &options, &s);
    if (!code) code = in.bind(s);
    if (!code) code = weft_session_run(s);
    weft::testing::refuse_host_allocation_after(-1);
    refused += code == WEFT_ERROR_OUT_OF_MEMORY;
    EXPECT_TRUE(code == WEFT_SUCCESS || code == WEFT_ERROR_OUT_OF_MEMORY) << n << ": " << weft_error_text();
    weft_session_free(s);
    weft_program_free(p);
  }
  EXPECT_GT(refused, 100);
}
#endif

// ---- threads

TEST(CApiThreads, SessionsOfOneProgramRunSideBySide) {
  const Program program;
  std::vector<float> wanted;
  std::vector<std::vector<float>> got(4);
  const auto work = [&](std::vector<float>& to) {
    const Session session(program.p);
    const Inputs in(9);
    for (int i = 0; i < 20; ++i) {
      weft_array y;
      ASSERT_EQ(in.bind(session.s), WEFT_SUCCESS);
      ASSERT_EQ(weft_session_run(session.s), WEFT_SUCCESS) << weft_error_text();
      ASSERT_EQ(weft_session_output(session.s, 0, &y), WEFT_SUCCESS);
      EXPECT_STREQ(weft_program_name(program.p), "small");
      EXPECT_NE(weft_program_text(program.p)[0], 0);
      to = floats(y);
    }
  };
  std::vector<std::thread> threads;
  for (auto& to : got) threads.emplace_back([&] { work(to); });
  for (auto& t : threads) t.join();
  work(wanted);
  for (const auto& numbers : got) EXPECT_EQ(numbers, wanted);
}

TEST(CApiThreads, ASecondThreadOfASessionGetsAnError) {
  const Program program;
  const Session session(program.p);
  const Inputs in(40);
  ASSERT_EQ(in.bind(session.s), WEFT_SUCCESS);
  std::atomic<int> ran{0}, refused{0};
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      const auto code = weft_session_run(session.s);
      (code == WEFT_SUCCESS ? ran : refused) += 1;
      if (code != WEFT_SUCCESS) {
        EXPECT_NE(std::strstr(weft_error_text(), "another thread"), nullptr);
      }
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_GT(ran, 0);
  EXPECT_EQ(ran + refused, 400);
}

}  // namespace
}  // namespace weft::c_api_test

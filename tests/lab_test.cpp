#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "conformance/inputs.h"
#include "lab/kernels/confinement.h"
#include "lab/kernels/contest.h"
#include "lab/kernels/process_facts.h"
#include "lab/kernels/provider.h"
#include "lab/kernels/shared_memory.h"
#include "lab/kernels/slices.h"
#include "tests/lab/drawn.h"
#include "weft/random.h"

// The kernel lab: whether right kernels are right, and whether it sees through those that cheat (tests/lab).
namespace weft::lab::lab_test {
namespace {

Operation small_softmax() {
  return {"softmax", "a small one", {.inputs = {conformance::normal({96, 64})}}, DType::f32, {{{0}, 0}}};
}

std::string kernel(const std::string& name) {
  return fmt::format("{}/tests/lab/{}.cpp", WEFT_SOURCE_DIR, name);
}

Operation chosen(const std::string& op, const std::string& shapes, const std::string& dtype = "f32") {
  return value_or_raise(operations_of({.ops = {op}, .dtypes = {dtype}, .shapes = {shapes}})).at(0);
}

Row row_of(const Operation& operation, const std::string& kernel, ContestOptions options = {}) {
  options.process.command = {WEFT_BINARY_DIR "/weft", "lab", "--worker", "--threads", "1"};
  options.process.seconds = std::min(options.process.seconds, 10.0);
  options.quick = true, options.seconds = 0;
  return value_or_raise(compare(operation, {"native", kernel}, options, [](const std::string&) {})).rows[1];
}

Comparison contest(const std::string& baseline, const std::string& other, ContestOptions options = {}) {
  options.process.command = {WEFT_BINARY_DIR "/weft", "lab", "--worker", "--threads", "1"};
  options.process.seconds = std::min(options.process.seconds, 10.0);
  options.quick = true, options.seconds = 0;
  return value_or_raise(compare(small_softmax(), {baseline, other}, options, [](const std::string&) {}));
}

TEST(LabMemory, AGuardZoneBesideATensorIsSeenToBeTouched) {
  const std::vector<uint64_t> sizes = {100, 0, 64};
  auto memory = value_or_raise(SharedMemory::create(room_for(sizes)));
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto places = draw_places(sizes, seed);
    fill_guards(memory.bytes(), places, seed);
    EXPECT_EQ(touched_guard(memory.bytes(), places, seed), -1);
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(places.at[i] % 64, 0u);
      auto& behind = memory.bytes()[places.at[i] + sizes[i]];
      behind ^= std::byte{1};
      EXPECT_EQ(touched_guard(memory.bytes(), places, seed), static_cast<int64_t>(i));
      behind ^= std::byte{1};
    }
  }
}

TEST(LabSlices, TakeTheRowsOfAnAxis) {
  const conformance::HostTensor t = conformance::counting({2, 3, 2});
  const auto a = take(t.type, t.bytes, {{}, {0, 2}, {1}});
  EXPECT_EQ(a.shape, (conformance::Dims{2, 2, 1}));
  EXPECT_EQ(a.v, (std::vector<conformance::Real>{2, 6, 8, 1}));  // counting goes 1 to 11, and again
}

TEST(LabWork, CountsBytesAndProducts) {
  const Operation product{
      "matmul", "", {.inputs = {conformance::normal({4, 8}), conformance::normal({8, 2})}}, DType::f32, {}};
  const auto work = value_or_raise(work_of(product));
  EXPECT_EQ(work.bytes, 4 * (32 + 16 + 8));
  EXPECT_EQ(work.flops, 2 * 4 * 8 * 2);
}

TEST(Lab, ARightKernelIsRightAndTimed) {
  const auto c = contest("native", kernel("honest"));
  for (const auto& row : c.rows) {
    EXPECT_FALSE(row.out()) << row.contender << ": " << row.why;
    EXPECT_FALSE(row.nanoseconds.empty());
    EXPECT_GT(row.accuracy.elements, 0u);
    EXPECT_LE(row.accuracy.share_of_bound, 1);
    EXPECT_GT(row.cases, 3u);
  }
  EXPECT_GT(c.rows[1].refused, 0u) << "it takes the last axis alone";
  EXPECT_LE(c.rows[1].ratio.low, c.rows[1].ratio.middle);
  EXPECT_GT(c.rows[1].ratio.high, 0);
}

TEST(Lab, TheExamplesAreRight) {
  const std::pair<Operation, const char*> examples[] = {{small_softmax(), "softmax.cpp"},
                                                        {chosen("gelu", "32x96"), "gelu.c"},
                                                        {chosen("matmul", "24x40,40x300"), "matmul.cpp"}};
  for (const auto& [operation, file] : examples) {
    const auto row = row_of(operation, fmt::format("{}/examples/lab/{}", WEFT_SOURCE_DIR, file));
    EXPECT_FALSE(row.out()) << file << ": " << row.why;
    EXPECT_GT(row.cases, 0u) << file;
    EXPECT_GT(row.compile_seconds, 0) << file;
    EXPECT_GT(row.peak_bytes, 0u) << file;
  }
}

TEST(LabLimits, MemoryOfAKernelIsCountedBesideItsOperands) {
  const auto row = row_of(chosen("softmax", "512x2048"), kernel("hungry"));
  EXPECT_FALSE(row.out()) << row.why;
  EXPECT_GT(row.peak_bytes, 32u << 20) << "what it allocates and frees in each launch";
  EXPECT_LT(row.peak_bytes, 64u << 20);
}

TEST(Lab, KernelsRunOnAsManyProcessorsAsTheyHaveThreads) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one processor";
  const auto pinned = row_of(small_softmax(), kernel("one_processor"), {.threads = 1});
  EXPECT_FALSE(pinned.out()) << pinned.why;
  EXPECT_EQ(name(row_of(small_softmax(), kernel("one_processor")).verdict), "WRONG");
}

TEST(Lab, ARefusedCallIsSaid) {
  ContestOptions options;
  options.process.command = {WEFT_BINARY_DIR "/weft", "lab", "--worker"};
  options.quick = true, options.seconds = 0;
  Operation first_axis = small_softmax();
  first_axis.call.attrs = {{"axis", 0}};
  first_axis.rows = {{{1}, 1}};
  const auto row =
      value_or_raise(compare(first_axis, {"native", kernel("honest")}, options, [](const std::string&) {
      })).rows[1];
  EXPECT_EQ(name(row.verdict), "INVALID");
  EXPECT_NE(row.why.find("it refuses the call"), std::string::npos) << row.why;
}

TEST(Lab, ANameThatNobodyProvidesSaysWhatThereIs) {
  const auto row = contest("native", "no_such_backend").rows[1];
  EXPECT_EQ(name(row.verdict), "INVALID");
  EXPECT_NE(row.why.find("a backend of weft backends"), std::string::npos) << row.why;
}

// What the lab looks at in the first process of a kernel, it looks at in some later ones.
TEST(LabLater, WhatALaterProcessDoesIsSeen) {
  ContestOptions options;
  options.process.command = {WEFT_BINARY_DIR "/weft", "lab", "--worker", "--threads", "1"};
  options.quick = true, options.seconds = 0, options.seed = 2;
  const auto see = [](const std::string& what) {
    if (what.starts_with("process ")) ::setenv("WEFT_TEST_PROCESS", what.substr(8, 1).c_str(), 1);
  };
  ::setenv("WEFT_TEST_PROCESS", "0", 1);
  const auto found = value_or_raise(compare(
      small_softmax(), {"native", kernel("later_changed_rows"), kernel("later_thread")}, options, see));
  ::unsetenv("WEFT_TEST_PROCESS");
  EXPECT_NE(found.rows[1].why.find("it computes only what changed"), std::string::npos) << found.rows[1].why;
  EXPECT_NE(found.rows[2].why.find("it goes on computing"), std::string::npos) << found.rows[2].why;
}

struct Cheat {
  const char* kernel;
  Verdict verdict;
  const char* why;  // a part of what is said
  // What another check says, which calls the kernel INVALID. Either may detect it first, depending on load.
  const char* or_why = nullptr;
};

void PrintTo(const Cheat& cheat, std::ostream* out) { *out << cheat.kernel; }

// Where the machine keeps files in, a cheat that wants one elsewhere ends there.
const bool kKeepsFilesIn = landlock_version() > 0;

class LabCheat : public ::testing::TestWithParam<Cheat> {};

TEST_P(LabCheat, IsSeenThrough) {
  const auto kept = std::filesystem::path(::testing::TempDir()) / "weft_lab_persisting";
  std::filesystem::remove(kept);
  ::setenv("WEFT_TEST_PERSISTING", kept.c_str(), 1);
  ContestOptions options;
  options.process.seconds = 2;
  const auto row = contest("native", kernel(GetParam().kernel), options).rows[1];
  std::filesystem::remove(kept);
  if (GetParam().or_why && row.why.find(GetParam().or_why) != std::string::npos) {
    EXPECT_EQ(name(row.verdict), "INVALID") << row.why;
    return;
  }
  EXPECT_EQ(name(row.verdict), name(GetParam().verdict)) << row.why;
  EXPECT_NE(row.why.find(GetParam().why), std::string::npos) << row.why;
}

INSTANTIATE_TEST_SUITE_P(
    All, LabCheat,
    ::testing::Values(
        Cheat{"replayed", Verdict::wrong, "got nan"},
        Cheat{"zeroed_inputs", Verdict::invalid, "it changed operand 0"},
        Cheat{"side_thread", Verdict::wrong, ""}, Cheat{"lazy_output", Verdict::wrong, "got nan"},
        Cheat{"forged_time", Verdict::invalid, "what it was not asked"},
        Cheat{"reads_seed", Verdict::wrong, "got nan"},
        Cheat{"result_file", Verdict::invalid, "it left files: results.json"},
        Cheat{"persisting", kKeepsFilesIn ? Verdict::invalid : Verdict::wrong, ""},
        Cheat{"constant_output", Verdict::wrong, ""}, Cheat{"low_precision", Verdict::wrong, ""},
        Cheat{"unusual_shapes", Verdict::wrong, ""}, Cheat{"clock_dependent", Verdict::wrong, ""},
        Cheat{"leaks", Verdict::invalid, "it leaks"},
        Cheat{"writes_beside_operand", Verdict::invalid, "it wrote beside operand 0"},
        Cheat{"background_thread", Verdict::invalid, "it goes on computing"},
        Cheat{"child_process", Verdict::invalid, "it wanted to start a process"},
        Cheat{"network", Verdict::invalid, "to reach the network"}, Cheat{"watched", Verdict::wrong, ""},
        Cheat{"changed_rows", Verdict::invalid, "it computes only what changed"},
        Cheat{"rounds_up", Verdict::invalid, "it changed how the processor rounds"},
        Cheat{"reads_edits", Verdict::wrong, " of a turn", "it computes only what changed"},
        Cheat{"answers_itself", Verdict::invalid, "what it was not asked"},
        Cheat{"moves_away", Verdict::invalid, "to set its priority or its processors"}),
    [](const auto& cheat) { return std::string(cheat.param.kernel); });

INSTANTIATE_TEST_SUITE_P(Broken, LabCheat,
                         ::testing::Values(Cheat{"crashes", Verdict::invalid, "by signal 11"},
                                           Cheat{"hangs", Verdict::invalid, "it hangs"},
                                           Cheat{"writes_beside", Verdict::invalid,
                                                 "it wrote beside result 0"},
                                           Cheat{"prints", Verdict::invalid, "a kernel that talks"},
                                           Cheat{"no_program", Verdict::invalid, "does not compile"},
                                           Cheat{"no_function", Verdict::invalid, "weft_lab_kernel"},
                                           Cheat{"no_such_file", Verdict::invalid, "there is no file"}),
                         [](const auto& cheat) { return std::string(cheat.param.kernel); });

// A folder for what a test compiles.
struct Folder {
  Folder() { EXPECT_TRUE(::mkdtemp(path.data())); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path = ::testing::TempDir() + "weft-lab-test-XXXXXX";
};

std::string compiled(const std::string& name, const Folder& folder) {
  const auto source = kernel(name);
  return value_or_raise(value_or_raise(provider_of(source))->prepare(source, folder.path));
}

// A kernel that has been given the operands of an operation.
std::unique_ptr<Seat> seated(const std::string& object, const Operation& operation) {
  const auto data = value_or_raise(draw_data(operation, 1));
  const Process process{.command = {WEFT_BINARY_DIR "/weft", "lab", "--worker"},
                        .memory_bytes = room_for(data)};
  auto seat = std::make_unique<Seat>(value_or_raise(Contender::start(object, process)));
  value_or_raise(seat->contender().open(ask_of(operation)));
  raise_if(seat->put(data, 1));
  return seat;
}

TEST(LabLimits, MemoryOfTheLabsIsNotTheKernels) {
  const Folder folder;
  const auto o = small_softmax();
  const auto seat = seated(compiled("honest", folder), o);
  const int pid = seat->contender().pid();
  const auto own = value_or_raise(seat->contender().set_up(true));
  EXPECT_GT(own, 100u << 20) << "what flushes the caches";
  const auto before = memory_of(pid).peak;
  value_or_raise(seat->turn(o, {.launches = 2, .cold = true}, 1));
  EXPECT_LT(memory_of(pid).peak, before + (8 << 20));
}

// A process that leaves one in a session of its own, and ends.
TEST(LabProcesses, WhatAKernelsProcessLeavesIsEnded) {
  const Folder folder;
  adopt_orphans(true);
  const auto note = folder.path + "/left";
  const auto command = fmt::format(
      "setsid sh -c 'echo $$ > {0}; exec sleep 60' 1>&- 2>&- 3>&- & while ! [ -s {0} ]; do :; done", note);
  {
    const auto c = value_or_raise(
        Contender::start("none", {.command = {"/bin/sh", "-c", command}, .memory_bytes = 4096}));
    EXPECT_NE(c->open(ask_of(small_softmax())).status().message().find("its process ended"),
              std::string::npos);
  }
  int left = 0;
  ASSERT_TRUE(std::ifstream(note) >> left);
  EXPECT_NE(::kill(left, 0), 0) << "process " << left << " runs on";
  adopt_orphans(false);
}

TEST(LabLimits, PriorityAndProcessorsAreNotAKernelsToSet) {
  const Folder folder;
  const auto object = compiled("makes_call", folder);
  const auto made = [&](long call) {
    ::setenv("WEFT_TEST_CALL", std::to_string(call).c_str(), 1);
    return seated(object, small_softmax())->once();
  };
  for (const long call : {SYS_setpriority, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr,
                          SYS_sched_setaffinity, SYS_ioprio_set})
    EXPECT_NE(made(call).message().find("or to set its priority or its processors"), std::string::npos)
        << call << ": " << made(call).message();
  EXPECT_TRUE(made(SYS_getpriority).ok());
  ::unsetenv("WEFT_TEST_CALL");
}

// The last launches of these turns are all right.
TEST(LabSamples, ALaunchInTheMidstOfATurnIsJudged) {
  const Folder folder;
  const auto operation = small_softmax();
  const auto seated_there = seated(compiled("now_and_then", folder), operation);
  Seat& seat = *seated_there;
  Accuracy accuracy;
  for (uint64_t turn = 1; turn <= 50 && accuracy.wrong.empty(); ++turn) {
    value_or_raise(seat.turn(operation, {.launches = 39}, turn));
    raise_if(seat.keep_turn(operation, 0.1, turn));
    raise_if(seat.judge_kept(operation, accuracy));
  }
  EXPECT_NE(accuracy.wrong.find("of a turn"), std::string::npos) << accuracy.wrong;
}

// Cheats drawn by combination: WEFT_SEED=n draws from n on, WEFT_CHEATS=n says how many.
TEST(Lab, DrawnCheatsAreSeenThrough) {
  const auto number = [](const char* name, uint64_t otherwise) {
    const char* given = std::getenv(name);
    return given ? std::strtoull(given, nullptr, 10) : otherwise;
  };
  const uint64_t first = number("WEFT_SEED", 1), count = number("WEFT_CHEATS", 10);
  const Folder folder;
  const auto source = kernel("drawn");
  const auto object = value_or_raise(value_or_raise(provider_of(source))->prepare(source, folder.path));
  uint64_t missed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    ::setenv("WEFT_TEST_CHEAT", std::to_string(seed).c_str(), 1);
    ContestOptions options;
    options.seed = seed;
    const auto row = row_of(small_softmax(), object, options);
    fmt::print("  WEFT_SEED={}: {}: {}: {}\n", seed, DrawnCheat(seed).text(), name(row.verdict), row.why);
    missed += !row.out();
    EXPECT_TRUE(row.out()) << "seed " << seed << ": " << DrawnCheat(seed).text();
  }
  if (count > 10) fmt::print("  {} of {} drawn cheats were missed\n", missed, count);
}

TEST(LabInPlace, ARightUpdateIsRightAndTimed) {
  const auto row = row_of(chosen("adamw_step", "48x64"), "native");
  EXPECT_FALSE(row.out()) << row.why;
  EXPECT_FALSE(row.nanoseconds.empty());
}

TEST(LabInPlace, AnUpdateThatIsNotMadeIsWrong) {
  const auto row = row_of(chosen("adamw_step", "48x64"), kernel("no_update"));
  EXPECT_EQ(name(row.verdict), "WRONG") << row.why;
  EXPECT_GT(row.cases, 3u) << "small ones it updates";
}

TEST(LabWritten, AnIntegerThatIsLeftOutIsWrong) {
  const auto row = row_of(chosen("argmax", "4096x8"), kernel("argmax_of_some"));
  EXPECT_EQ(name(row.verdict), "WRONG") << row.why;
  EXPECT_NE(row.why.find("element 4095 of result 0 was not written"), std::string::npos) << row.why;
}

TEST(LabWritten, ARightNumberIsNotTakenForOneThatIsLeftOut) {
  for (const DType t : {DType::i32, DType::i64}) {
    const auto few = conformance::integers({64, 64}, -1, 0).as(t);
    const auto row = row_of({"add", "of -1 and 0", {.inputs = {few, few}}, t, {}}, "reference");
    EXPECT_FALSE(row.out()) << row.why;
    EXPECT_GT(row.accuracy.elements, 100u);
  }
}

TEST(LabWritten, WhatResultsAreSpoiltToIsDrawnAndNoNumber) {
  for (const DType t : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    std::set<conformance::Dims> patterns;
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      const auto bytes = spoilt_pattern(t, seed);
      EXPECT_TRUE(std::isnan(take({t, {}}, bytes, {}).v[0])) << name(t);
      conformance::Dims pattern;
      for (size_t i = 0; i < byte_size(t); ++i) pattern.push_back(static_cast<int64_t>(bytes[i]));
      patterns.insert(pattern);
    }
    EXPECT_GT(patterns.size(), 20u) << name(t);
  }
  EXPECT_NE(spoilt_pattern(DType::i32, 1), spoilt_pattern(DType::i32, 2));
}

TEST(LabAccuracy, TheWorstElementComesWithItsOperands) {
  const auto row = row_of(chosen("silu_gate", "16x64"), "native");
  EXPECT_FALSE(row.out()) << row.why;
  const auto& worst = row.accuracy.worst;
  ASSERT_TRUE(worst.known);
  EXPECT_EQ(worst.at.size(), 2u);
  EXPECT_LE(std::fabs(worst.got - worst.want), worst.bound);
  EXPECT_EQ(row.accuracy.nans, 0u);
}

TEST(LabAccuracy, CountsWhatIsNotFinite) {
  Accuracy a;
  const conformance::Bounded truth = conformance::exactly({DType::f32, {3}, {1, 2, 3}});
  EXPECT_EQ(a.add({DType::f32, {3}, {1, conformance::kNan, conformance::kInf}}, truth, "result 0"), 1u);
  EXPECT_EQ(a.nans, 1u);
  EXPECT_EQ(a.infinities, 1u);
  EXPECT_NE(a.wrong, "");
}

TEST(LabOperations, EveryOperationIsOneThatAKernelCanBeAskedFor) {
  for (const auto& file : operation_files())
    for (const DType t : file.file().dtypes) {
      const auto all = value_or_raise(operations_of({.ops = {file.op}, .dtypes = {name(t)}}));
      EXPECT_FALSE(all.empty());
      for (const auto& o : all) {
        const auto call = lab::describe(ask_of(o));
        ASSERT_TRUE(call.ok()) << o.label() << ": " << call.status().message();
        EXPECT_GT(value_or_raise(work_of(o)).bytes, 0) << o.label();
        EXPECT_TRUE(o.cases().ok()) << o.label();
        for (const auto& rows : o.rows) EXPECT_EQ(rows.operands.size(), o.call.inputs.size()) << o.label();
      }
    }
}

TEST(LabOperations, SizesAreReadStrictly) {
  const auto refusal = [](Choice choice) {
    const auto got = operations_of(choice);
    return got.ok() ? std::string() : got.status().message();
  };
  EXPECT_EQ(chosen("matmul", "8x16,16x4").label(), "matmul f32[8, 16] f32[16, 4], as asked");
  EXPECT_EQ(chosen("softmax", "8x16", "bf16").label(), "softmax bf16[8, 16], as asked");
  for (const char* bad :
       {"8x", "x8", "8x16x", "-8x16", "8x0", "8 x16", "8X16", "", "1e3x2", "99999999999x99999999999"})
    EXPECT_NE(refusal({.ops = {"softmax"}, .shapes = {bad}}), "") << bad;
  EXPECT_NE(refusal({.ops = {"softmax"}, .shapes = {"8"}}).find("x [rows, n]"), std::string::npos);
  EXPECT_NE(refusal({.ops = {"matmul"}, .shapes = {"8x8"}}).find("a [m, k], b [k, n]"), std::string::npos);
  EXPECT_NE(refusal({.ops = {"matmul"}, .shapes = {"8x8,9x8"}}).find("inner sizes differ"),
            std::string::npos);
  EXPECT_NE(refusal({.shapes = {"8x8"}}).find("one op"), std::string::npos);
  EXPECT_NE(refusal({.ops = {"softmax"}, .dtypes = {"f33"}}).find("'f33'"), std::string::npos);
  EXPECT_NE(refusal({.ops = {"softmax"}, .dtypes = {"f8e4m3"}}).find("none of the operations"),
            std::string::npos);
  EXPECT_NE(refusal({.ops = {"gelu"}, .sweep = true}).find("a sweep"), std::string::npos);
  EXPECT_EQ(
      value_or_raise(operations_of({.ops = {"matmul"}, .dtypes = {"f32", "f16"}, .sweep = true})).size(),
      12u);
}

TEST(LabOperations, IntegersAreDrawnFromAllThatALayerHas) {
  const Operation o = chosen("scaled_matmul", "8x16,4x16", "i8");
  EXPECT_EQ(o.label(), "scaled_matmul i8[8, 16] i8[4, 16] f32[8] f32[4] dtype=\"f32\", as asked");
  double least = 0, most = 0;
  for (const auto x : conformance::make_inputs(o.call, o.dtype, 1)[0].v)
    least = std::min(least, static_cast<double>(x)), most = std::max(most, static_cast<double>(x));
  EXPECT_LT(least, -100);
  EXPECT_GT(most, 100);
  EXPECT_EQ(chosen("scaled_matmul", "8x16,4x16", "f8e5m2").call.inputs[0].kind,
            conformance::Input::Kind::normal);
}

TEST(LabSlices, GroupedHeadsAreTakenTogether) {
  const auto o = value_or_raise(operations_of({.ops = {"attention"}})).at(2);
  const Slice slice{{{2}, {1, 3}}};
  EXPECT_EQ(slice.of_operand(o, 0, 4), (Positions{{2}, {4, 5, 6, 7, 12, 13, 14, 15}, {}, {}}));
  EXPECT_EQ(slice.of_operand(o, 1, 4), (Positions{{2}, {1, 3}, {}, {}}));
  EXPECT_EQ(slice.of_results(o, 4), slice.of_operand(o, 0, 4));
}

}  // namespace
}  // namespace weft::lab::lab_test

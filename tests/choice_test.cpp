#include <dlfcn.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "conformance/seam/rig.h"
#include "eager/apply.h"
#include "test_backends.h"
#include "weft/dlpack.h"
#include "weft/jit.h"
#include "weft/ledger.h"
#include "weft/ops.h"
#include "weft/policy_scope.h"

// The choice of kernels: ranks, providers, and lists of backends.
namespace weft::testing::choice_test {
namespace {

using conformance::Ask;
using conformance::counting;
using conformance::Rig;

std::string kernel_for(const std::string& backend, const Ask& ask) {
  Rig rig(backend);
  return value_or_raise(rig.plan(value_or_raise(describe(ask))))->kernel.id;
}
const Ask kExp{.op = "exp", .inputs = {counting({4})}};

const LedgerRow* row_of(const std::vector<LedgerRow>& rows, const std::string& op) {
  for (const auto& r : rows)
    if (r.op == op) return &r;
  return nullptr;
}

const void* address_of(const Tensor& t) {
  auto* managed = to_dlpack(t);
  const void* at = managed->dl_tensor.data;
  managed->deleter(managed);
  return at;
}

TEST(Rank, AHigherOneIsAskedFirstWhateverTheOrderOfTheFile) {
  WEFT_NEEDS_PLUGIN("good_provider");
  EXPECT_EQ(kernel_for("good_provider", kExp), "good_provider.exp.slow");
  const auto& source = value_or_raise(seam::registry().open("good_provider"))->sources[0];
  std::string order;
  for (const auto* k : source.kernels)
    order += std::string(k->id).substr(k->op == std::string_view("exp") ? 18 : 14) + " ";
  EXPECT_EQ(order, "slow plain wrong sqrt.any loose sqrt.timid never proud ");
}

// A table of version 1 has none: then it is the order of the list, as ever.
TEST(Rank, WithoutOnesTheListsOrderCounts) {
  WEFT_NEEDS_PLUGIN("good_version_1");
  const auto& kernels = value_or_raise(seam::registry().open("good_version_1"))->sources[0].kernels;
  for (const auto* k : kernels) EXPECT_LT(k->size, sizeof(weft_kernel));
}

TEST(Provider, IsABackendWithTheDevicesThatItServes) {
  WEFT_NEEDS_BACKEND("native");
  WEFT_NEEDS_PLUGIN("good_provider");
  const auto info = get_backend_info("good_provider"), home = get_backend_info("native");
  EXPECT_EQ(info.state, "available") << info.reason;
  EXPECT_EQ(info.serves, "cpu");
  ASSERT_EQ(info.devices.size(), home.devices.size());
  EXPECT_EQ(info.devices[0].name, "good_provider");
  EXPECT_EQ(info.devices[0].label, home.devices[0].label);
  seam::Device& view = *value_or_raise(seam::registry().open("good_provider"));
  seam::Device& native = *value_or_raise(seam::registry().open("native"));
  EXPECT_EQ(&view.home(), &native);
  EXPECT_EQ(view.c(), native.c());
  EXPECT_EQ(&view.eager_queue(), &native.eager_queue());
  ASSERT_EQ(view.sources.size(), native.sources.size() + 1);
  EXPECT_EQ(view.sources[1].provider, "native") << "its device's own kernels come after";
}

TEST(Provider, SharesItsDevicesBuffersWithoutACopy) {
  WEFT_NEEDS_BACKEND("native");
  WEFT_NEEDS_PLUGIN("good_provider");
  const OnBackend on("native");
  reset_ledger();
  const Tensor x = Tensor::of({0, 1, 2}, {3}), there = x.to("good_provider");
  EXPECT_EQ(there.backend(), "good_provider");
  EXPECT_EQ(x.backend(), "native");
  EXPECT_EQ(address_of(there), address_of(x));
  const Tensor y = exp(there), z = y + x;  // an operand of each
  EXPECT_EQ(y.backend(), "good_provider");
  EXPECT_EQ(z.backend(), "good_provider");
  EXPECT_EQ(address_of(y.to("native")), address_of(y));
  EXPECT_NEAR(z.to_vector<float>()[1], std::exp(1.f) + 1, 1e-6);
  const auto rows = ledger_rows();
  EXPECT_EQ(row_of(rows, "copy"), nullptr);
  ASSERT_NE(row_of(rows, "exp"), nullptr);
  EXPECT_EQ(row_of(rows, "exp")->kernel, "good_provider.exp.slow");
  EXPECT_EQ(row_of(rows, "exp")->device, "good_provider");
  ASSERT_NE(row_of(rows, "add"), nullptr);
  EXPECT_TRUE(row_of(rows, "add")->kernel.starts_with("native.add."));
}

// In-place updates are visible through every view, and noticed by a tape that saved the tensor.
TEST(Provider, AnUpdateInPlaceIsSeenByAllViews) {
  WEFT_NEEDS_BACKEND("native");
  WEFT_NEEDS_PLUGIN("good_provider");
  const OnBackend on("native");
  const Tensor x = Tensor::of({1, 2}, {2}), there = x.to("good_provider");
  assign(there, Tensor::of({5, 6}, {2}).to("good_provider"));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{5, 6}));
}

TEST(Provider, ACompiledProgramTakesTensorsOfItsHomeAsTheyAre) {
  WEFT_NEEDS_BACKEND("native");
  WEFT_NEEDS_PLUGIN("good_provider");
  const OnBackend on("native");
  auto twice = compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0]) + in[0]}; },
                       {{"x", {DType::f32, {2}}}}, {.backend = "good_provider", .fuse = false});
  reset_ledger();
  const auto y = twice({Tensor::of({0, 1}, {2})});
  EXPECT_EQ(y[0].backend(), "good_provider");
  EXPECT_NEAR(y[0].to_vector<float>()[1], std::exp(1.f) + 1, 1e-6);
  const auto rows = ledger_rows();
  EXPECT_EQ(row_of(rows, "copy"), nullptr);
  EXPECT_EQ(row_of(rows, "exp")->kernel, "good_provider.exp.slow");
}

// A program whose device refuses a call steps over to a provider of the same memory: no step copies.
TEST(Provider, AStepOverToOneMovesNothing) {
  WEFT_NEEDS_BACKEND("native");
  WEFT_NEEDS_PLUGIN("good_provider");
  const PolicyScope allow(Policy{.fallback = Fallback::allow});
  const seam::Without without([](const weft_kernel& k) {
    return std::string_view(k.op) == "exp" && std::string_view(k.id).starts_with("native.") ? "left out" : "";
  });
  reset_ledger();
  auto f = compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0]) * in[0]}; },
                   {{"x", {DType::f32, {3}}}},
                   {.backend = "native,good_provider", .policy = current_policy(), .fuse = false});
  const OnBackend on("native,good_provider");
  const auto y = f({Tensor::of({0, 1, 2}, {3})});
  EXPECT_NEAR(y[0].to_vector<float>()[2], 2 * std::exp(2.f), 1e-5);
  const Tensor eager = exp(Tensor::of({0, 1, 5}, {1, 3}));
  EXPECT_EQ(eager.backend(), "native");
  const auto rows = ledger_rows();
  EXPECT_EQ(row_of(rows, "copy"), nullptr);
  for (const auto& r : rows)
    if (r.op == "exp") {
      EXPECT_EQ(r.kernel, "good_provider.exp.slow");
    }
}

TEST(Provider, IsAttachedOnceToADeviceAndLetGoOfWhenThatCloses) {
  WEFT_NEEDS_BACKEND("native");
  WEFT_NEEDS_PLUGIN("good_provider");
  void* library = dlopen((WEFT_BINARY_DIR "/plugins/good_provider.so"), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto attached = reinterpret_cast<int (*)()>(dlsym(library, "good_provider_attached"));
  (void)value_or_raise(seam::registry().open("good_provider"));
  const int before = attached();
  EXPECT_GE(before, 1);
  (void)value_or_raise(seam::registry().open("good_provider:0"));
  (void)seam::registry().guests(*value_or_raise(seam::registry().open("native")));
  EXPECT_EQ(attached(), before);
  {
    const auto again = value_or_raise(seam::registry().open_again("good_provider"));
    EXPECT_EQ(attached(), before + 1);
    EXPECT_NE(&again->home(), &value_or_raise(seam::registry().open("native"))->home());
  }
  EXPECT_EQ(attached(), before);
  dlclose(library);
}

// ---- lists ----

std::vector<std::string> said;

/// Takes what is logged while it lives.
struct Listening {
  Listening() {
    said.clear();
    set_log_sink([](LogLevel, std::string_view text) { said.emplace_back(text); });
  }
  ~Listening() { set_log_sink(nullptr); }
};

TEST(BackendList, TheFirstThatIsThereIsTakenAndTheOthersAreNamedOnce) {
  const Listening listening;
  reset_ledger();
  for (int i = 0; i < 2; ++i) {
    const OnBackend on("no_such_chip,reference,native");
    EXPECT_EQ(default_backend(), "reference");
    EXPECT_EQ(default_backends(), (std::vector<std::string>{"no_such_chip", "reference", "native"}));
    EXPECT_EQ((Tensor::of({1}, {1}) + Tensor::of({2}, {1})).backend(), "reference");
  }
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(
      said[0].find("of the backends no_such_chip,reference,native, reference is taken: no_such_chip: no "
                   "backend named 'no_such_chip'"),
      std::string::npos)
      << said[0];
  const auto rows = ledger_rows();
  const auto* choice = row_of(rows, "choice");
  ASSERT_NE(choice, nullptr);
  EXPECT_EQ(choice->device, "reference");
  EXPECT_EQ(choice->calls, 2u);
  EXPECT_NE(choice->why.find("passed over: no_such_chip: "), std::string::npos) << choice->why;
}

TEST(BackendList, StandsWhereverABackendIsNamed) {
  const Listening listening;
  const Tensor x = Tensor::of({1, 2}, {2}).to("no_such_chip,reference");
  EXPECT_EQ(x.backend(), "reference");
  auto f = compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[0]}; },
                   {{"x", {DType::f32, {2}}}}, {.backend = "no_such_chip,reference"});
  EXPECT_EQ(f({x})[0].backend(), "reference");
  EXPECT_TRUE(is_backend_available("no_such_chip,reference"));
  EXPECT_FALSE(is_backend_available("no_such_chip,nor_this"));
}

TEST(BackendList, OneOfWhichNothingIsThereSaysWhyForEach) {
  const auto before = default_backend();
  EXPECT_NE(
      error_of([] {
        set_default_backends({"no_such_chip", "nor_this"});
      }).find("none of the backends no_such_chip,nor_this can be opened: no_such_chip: no backend named"),
      std::string::npos);
  for (const char* names : {"native,,reference", ",native", "native,", ","})
    EXPECT_NE(error_of([&] { set_default_backend(names); }).find("is no list of backends"), std::string::npos)
        << names;
  EXPECT_NE(error_of([] { set_default_backends({}); }), "no error");
  EXPECT_EQ(default_backend(), before);
}

// Broadcasting is what the plain plug-in refuses.
std::string where_it_runs(const std::string& names, Fallback fallback) {
  const OnBackend on(names);
  const PolicyScope scope(Policy{.fallback = fallback});
  reset_ledger();
  const std::string failed =
      error_of([] { (void)(Tensor::of({1, 2}, {2}) + Tensor::of({3}, {1})).to_vector<float>(); });
  if (failed != "no error") return "nowhere";
  const auto rows = ledger_rows();
  return row_of(rows, "add")->device;
}

TEST(BackendList, AnOpStepsOverInItsOrderOnlyAndOnlyAsFarAsThePolicyAllows) {
  WEFT_NEEDS_PLUGIN("good_plain_c");
  WEFT_NEEDS_PLUGIN("far");
  EXPECT_EQ(where_it_runs("good_plain_c,far,reference", Fallback::allow), "far");
  EXPECT_EQ(where_it_runs("good_plain_c,reference,far", Fallback::allow), "reference");
  EXPECT_EQ(where_it_runs("good_plain_c,reference,far", Fallback::forbid), "nowhere");
  // Never to one before it, nor to one that the list does not name.
  EXPECT_EQ(where_it_runs("no_such_chip,good_plain_c", Fallback::allow), "nowhere");
  EXPECT_NE(where_it_runs("good_plain_c", Fallback::allow), "nowhere") << "a name alone: all others";
}

TEST(BackendList, AProgramStepsOverInItsOrderToo) {
  WEFT_NEEDS_BACKEND("native");
  WEFT_NEEDS_PLUGIN("good_plain_c");
  const auto ran_on = [](const std::string& names) {
    auto f = compile([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] + in[1]}; },
                     {{"x", {DType::f32, {2}}}, {"y", {DType::f32, {1}}}},
                     {.backend = names, .policy = {.fallback = Fallback::allow}, .fuse = false});
    reset_ledger();
    (void)f({Tensor::of({1, 2}, {2}), Tensor::of({3}, {1})});
    const auto rows = ledger_rows();
    return row_of(rows, "add")->device;
  };
  EXPECT_EQ(ran_on("good_plain_c,reference,native"), "reference");
  EXPECT_EQ(ran_on("good_plain_c,native,reference"), "native");
}

TEST(BackendList, WithoutANameTheHighestRankIsTaken) {
  // Of this build's; a provider or a plug-in that was loaded since takes nobody's place.
  EXPECT_EQ(seam::registry().preferred(), is_backend_available("native") ? "native" : "reference");
}

}  // namespace
}  // namespace weft::testing::choice_test

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <array>

#include "base/thread_pool.h"
#include "python/src/module.h"
#include "weft/policy_scope.h"

// How kernels may be chosen, and how many threads they use.
namespace weft::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// In the order of WEFT_DETERMINISM_* and WEFT_PRECISION_*, as the program `weft` spells them.
constexpr std::array<std::string_view, 5> kDeterminism = {"any", "run", "batch", "threads", "devices"};
constexpr std::array<std::string_view, 3> kPrecision = {"strict", "tf32", "bf16"};
constexpr std::array<std::string_view, 3> kFallback = {"forbid", "warn", "allow"};

template <size_t N>
uint8_t place_in(const std::array<std::string_view, N>& words, const std::string& word, const char* what) {
  const auto at = std::ranges::find(words, word);
  if (at == words.end())
    throw Error(invalid("Policy: {} is '{}'; it is one of {}", what, word, fmt::join(words, ", ")));
  return static_cast<uint8_t>(at - words.begin());
}

/// `with policy:`. Those of before are kept in order, so one object may be entered again inside of itself.
struct PolicyObject {
  Policy policy;
  std::vector<Policy> before = {};
};

PolicyObject made(const std::string& fallback, bool decompose, const std::string& determinism,
                  const std::string& precision) {
  return {{static_cast<Fallback>(place_in(kFallback, fallback, "fallback")), decompose,
           place_in(kDeterminism, determinism, "determinism"), place_in(kPrecision, precision, "precision")}};
}

std::string policy_text(const PolicyObject& p) {
  return fmt::format("weft.Policy(fallback='{}', decompose={}, determinism='{}', precision='{}')",
                     name(p.policy.fallback), p.policy.decompose ? "True" : "False",
                     kDeterminism[p.policy.determinism], kPrecision[p.policy.precision]);
}

void bind_functions(nb::module_& m) {
  m.def("current_policy", [] { return PolicyObject{current_policy()}; }, "What this thread's ops follow.");
  m.def(
      "set_policy", [](const PolicyObject& p) { set_policy(p.policy); }, "policy"_a,
      "Has this thread's ops follow `policy` from now on.");
  m.def(
      "set_thread_count",
      [](int64_t n) {
        constexpr int64_t kMost = 1024;
        if (n < 0 || n > kMost)
          throw Error(
              invalid("set_thread_count: wants 0, for as many as there are cores, to {}, got {}", kMost, n));
        set_thread_count(static_cast<int>(n));
      },
      "n"_a,
      "How many threads kernels of the host use, at most 1024; 0: as many as there are cores.\n\n"
      "Errors   weft.InvalidArgument for other numbers.");
  m.def("thread_count", &thread_count, "How many threads kernels of the host use.");
}

}  // namespace

void bind_policies(nb::module_& m) {
  nb::class_<PolicyObject>(
      m, "Policy",
      "How kernels may be chosen; `with policy:` has this thread's ops follow it. Nothing here changes what "
      "an op means.\n\n"
      "fallback     what happens where the chosen device can't run an op: \"forbid\" (an error that lists "
      "every refusal),\n"
      "             \"warn\" (another device runs it, and the first time is logged), \"allow\" (the same "
      "without a line)\n"
      "decompose    may an op without a kernel run as its decomposition, on the same device?\n"
      "determinism  the least level: \"any\", \"run\", \"batch\", \"threads\", \"devices\"\n"
      "precision    the loosest mode in which kernels may compute: \"strict\", \"tf32\", \"bf16\"")
      .def(
          "__init__",
          [](PolicyObject* p, const std::string& fallback, bool decompose, const std::string& determinism,
             const std::string& precision) {
            new (p) PolicyObject(made(fallback, decompose, determinism, precision));
          },
          "fallback"_a = "forbid", "decompose"_a = true, "determinism"_a = "any", "precision"_a = "strict")
      .def_prop_ro(
          "fallback", [](const PolicyObject& p) { return name(p.policy.fallback); },
          "\"forbid\", \"warn\" or \"allow\".")
      .def_prop_ro(
          "decompose", [](const PolicyObject& p) { return p.policy.decompose; },
          "May an op run as its decomposition?")
      .def_prop_ro(
          "determinism",
          [](const PolicyObject& p) { return std::string(kDeterminism[p.policy.determinism]); },
          "The least level.")
      .def_prop_ro(
          "precision", [](const PolicyObject& p) { return std::string(kPrecision[p.policy.precision]); },
          "The loosest mode.")
      .def(
          "__eq__",
          [](const PolicyObject& a, nb::handle b) {
            return nb::isinstance<PolicyObject>(b) && a.policy == nb::cast<PolicyObject&>(b).policy;
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", policy_text)
      .def("__enter__",
           [](nb::handle self) {
             auto& p = nb::cast<PolicyObject&>(self);
             p.before.push_back(current_policy());
             set_policy(p.policy);
             return nb::borrow(self);
           })
      .def(
          "__exit__",
          [](PolicyObject& p, nb::handle, nb::handle, nb::handle) {
            if (p.before.empty()) throw Error(invalid("Policy: left more often than it was entered"));
            set_policy(p.before.back());
            p.before.pop_back();
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
  bind_functions(m);
}

}  // namespace weft::python

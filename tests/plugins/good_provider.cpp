#include <chrono>
#include <cmath>
#include <thread>

#include "weft/backend.hpp"

// A provider: kernels of its own for the processor's devices, and no device. One record is slow, one wrong,
// one less precise than calls allow, one less deterministic than it could be, two that promise another level
// than they may: each is asked in its turn.
namespace {

using namespace weft::backend;
using weft::DType;

int attached = 0;

Support accepts(const OpCall& c) {
  if (c.n_inputs() != 1 || c.input(0).dtype() != DType::f32) return Support::no("wants one f32");
  return Support::yes();
}

template <int milliseconds, int wrong = 0>
Outcome launch(const Launch& l) {
  const float* x = l.input(0).data<float>();
  float* y = l.output(0).data<float>();
  for (int64_t i = 0; i < l.output(0).size(); ++i) y[i] = std::exp(x[i]) + static_cast<float>(wrong);
  if (milliseconds > 0) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return Outcome::ok();
}

Outcome prepare_loose(const OpCall&, weft_plan& plan) {
  plan.precision = WEFT_PRECISION_BF16;
  return Outcome::ok();
}
Outcome prepare_proud(const OpCall&, weft_plan& plan) {
  plan.determinism = WEFT_DETERMINISM_DEVICES;
  return Outcome::ok();
}
Outcome prepare_timid(const OpCall&, weft_plan& plan) {
  plan.determinism = WEFT_DETERMINISM_ANY;
  return Outcome::ok();
}
Outcome prepare_never(const OpCall&, weft_plan&) { return Outcome::fail(WEFT_DEVICE, "it never can"); }

// The file's order is not that of the ranks.
const KernelRecord records[] = {
    {.op = "exp", .variant = "plain", .accepts = accepts, .launch = launch<0>, .contents = "library 3"},
    {.op = "exp", .variant = "slow", .accepts = accepts, .launch = launch<2>, .rank = 3},
    {.op = "exp", .variant = "wrong", .accepts = accepts, .launch = launch<0, 1>, .rank = -1},
    {.op = "exp",
     .variant = "loose",
     .accepts = accepts,
     .prepare = prepare_loose,
     .launch = launch<0, 1>,
     .rank = -2},
    {.op = "exp",
     .variant = "never",
     .accepts = accepts,
     .prepare = prepare_never,
     .launch = launch<0, 1>,
     .rank = -3},
    {.op = "exp",
     .variant = "proud",
     .accepts = accepts,
     .prepare = prepare_proud,
     .launch = launch<0, 1>,
     .rank = -4},
    {.op = "sqrt",
     .variant = "any",
     .accepts = accepts,
     .launch = launch<0, 1>,
     .determinism = WEFT_DETERMINISM_ANY,
     .rank = -1},
    {.op = "sqrt",
     .variant = "timid",
     .accepts = accepts,
     .prepare = prepare_timid,
     .launch = launch<0, 1>,
     .rank = -2},
};

KernelTable& kernels() {
  static KernelTable table("good_provider", {records});
  return table;
}

const weft_backend table = {
    .size = sizeof(weft_backend),
    .abi = WEFT_ABI,
    .name = "good_provider",
    .version = "1",
    .probe =
        [](weft_probe* probe, weft_error*) {
          write(probe, &weft_probe::n_devices, 1);
          return weft_code{WEFT_OK};
        },
    .kernels =
        [](weft_device, const weft_kernel* const** list, uint32_t* n, weft_error* error) {
          if (attached == 0) return fill(error, WEFT_INTERNAL, "asked for kernels before attach");
          *list = kernels().data();
          *n = kernels().size();
          return weft_code{WEFT_OK};
        },
    .serves = "cpu",
    .attach =
        [](const weft_backend* served, weft_device device, const weft_capability* c, weft_error* error) {
          if (!served->allocate || !device || std::string_view(c->kind) != "cpu")
            return fill(error, WEFT_INTERNAL, "was not given a device of the processor");
          ++attached;
          return weft_code{WEFT_OK};
        },
    .detach = [](weft_device) { --attached; },
};

}  // namespace

weft_code weft_negotiate(const weft_host* host, const weft_backend** backend, weft_error* error) {
  if (auto outcome = Host(host).speaks(); !outcome.good()) return fill(error, outcome.code, outcome.text);
  kernels().set_host(host);
  *backend = &table;
  return WEFT_OK;
}

/// How many devices it is attached to: for tests.
extern "C" WEFT_EXPORT int good_provider_attached() { return attached; }

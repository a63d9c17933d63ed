#include "conformance/check.h"
#include "conformance/seam/usual.h"

namespace weft::conformance::checks::says_why {
namespace {

// Each kernel refuses something; a refusal without a reason is of no use.
Found each_refusal(Rig& rig, const weft_kernel& k) {
  // Operands that no op takes: an odd number of them, of an unknown dtype.
  const auto strange = array({2, 3, 4}, {1}, DType::f8e5m2);
  seam::CallDesc desc;
  desc.op = k.op;
  for (int i = 0; i < 5; ++i) desc.inputs.push_back(strange.type);
  desc.outputs = {strange.type};
  desc.determinism = WEFT_DETERMINISM_DEVICES;
  const seam::OwnedCall call(std::move(desc));
  seam::CError e;
  const weft_code code = k.accepts(&k, rig.device.c(), call.c(), e.out());
  if (code == WEFT_OK) return Found::skipped("it takes any call");
  if (code != WEFT_UNSUPPORTED)
    return Found::wrong(fmt::format("{} answers {} to a call that it can't run; wanted {}: unsupported", k.id,
                                    code, static_cast<int>(WEFT_UNSUPPORTED)));
  return Found::wrong(e.text()[0] ? "" : fmt::format("{} says no and not why", k.id));
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const auto& source : rig.device.sources)
    for (const weft_kernel* k : source.kernels) run.run(k->id, [&] { return each_refusal(rig, *k); });
}

}  // namespace

extern const Check check = {"says_why", "who refuses a call says why", run};

}  // namespace weft::conformance::checks::says_why

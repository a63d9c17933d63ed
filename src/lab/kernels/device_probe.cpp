#include "lab/kernels/device_probe.h"

#include <algorithm>

#include "runtime/c_tensor.h"

namespace weft::lab {
namespace {

constexpr int32_t kChainSteps = 16384, kSteps = 4096;
constexpr int kChains = 8;               // of an item of all_units(): as many as hide the latency of each
constexpr uint64_t kItemsOfUnit = 2048;  // and so many items of a multiprocessor

constexpr const char* kCuda =
    "#define WEFT_KERNEL extern \"C\" __global__ void\n"
    "#define WEFT_GLOBAL\n"
    "#define WEFT_ITEM (blockIdx.x * blockDim.x + threadIdx.x)\n"
    "#define WEFT_FMA __fmaf_rn\n";
constexpr const char* kOpenCl =
    "#define WEFT_KERNEL __kernel void\n"
    "#define WEFT_GLOBAL __global\n"
    "#define WEFT_ITEM get_global_id(0)\n"
    "#define WEFT_FMA fma\n";

// Each result is stored, so no loop can be left out, and depends on the item, so none is computed once for
// all.
constexpr const char* kLoops = R"(
WEFT_KERNEL weft_lab_chain(WEFT_GLOBAL float* out, long begins, int items, int steps) {
  const int item = WEFT_ITEM;
  if (item >= items) return;
  const float m = 0.999f, c = 1e-3f * items;
  float x = item;
  for (int i = 0; i < steps; i += 8) {
    x = WEFT_FMA(x, m, c), x = WEFT_FMA(x, m, c), x = WEFT_FMA(x, m, c), x = WEFT_FMA(x, m, c);
    x = WEFT_FMA(x, m, c), x = WEFT_FMA(x, m, c), x = WEFT_FMA(x, m, c), x = WEFT_FMA(x, m, c);
  }
  out[begins + item] = x;
}
WEFT_KERNEL weft_lab_chains(WEFT_GLOBAL float* out, long begins, int items, int steps) {
  const int item = WEFT_ITEM;
  if (item >= items) return;
  const float m = 0.999f, c = 1e-3f;
  float s = item, t = item + 1, u = item + 2, v = item + 3, w = item + 4, x = item + 5, y = item + 6,
        z = item + 7;
  for (int i = 0; i < steps; ++i) {
    s = WEFT_FMA(s, m, c), t = WEFT_FMA(t, m, c), u = WEFT_FMA(u, m, c), v = WEFT_FMA(v, m, c);
    w = WEFT_FMA(w, m, c), x = WEFT_FMA(x, m, c), y = WEFT_FMA(y, m, c), z = WEFT_FMA(z, m, c);
  }
  out[begins + item] = s + t + u + v + w + x + y + z;
}
)";

const char* head_for(std::string_view dialect) {
  return dialect == "cuda_cpp" ? kCuda : dialect == "opencl_c" ? kOpenCl : nullptr;
}

}  // namespace

Result<std::unique_ptr<DeviceProbe>> DeviceProbe::create(seam::Queue& queue) {
  seam::Device& device = queue.device();
  const auto& can = device.capability();
  const char* head = head_for(can.dialect);
  if (!queue.has_stamps() || !head)
    return fail(Code::unsupported, "{} {}", device.name(),
                head ? "has no clock" : "compiles no language that the lab's loops are written in");
  std::unique_ptr<DeviceProbe> probe(new DeviceProbe(queue));
  const std::string text = std::string(head) + kLoops;
  WEFT_TRY(probe->one_, TextModule::compile(device, text, "weft_lab_chain", "the lab's loops"));
  WEFT_TRY(probe->many_, TextModule::compile(device, text, "weft_lab_chains", "the lab's loops"));
  probe->group_ = std::clamp<uint64_t>(can.group_items, 1, 256);
  probe->items_ = std::max(1u, can.units) * kItemsOfUnit;
  WEFT_TRY(probe->results_, device.allocate_unpooled(probe->items_ * sizeof(float)));
  return probe;
}

Result<uint64_t> DeviceProbe::nanoseconds(const TextModule& loop, uint64_t items, uint64_t group,
                                          int32_t steps) {
  const seam::ConcreteType type{DType::f32, {static_cast<int64_t>(items)}};
  const weft_tensor out = runtime::c_tensor(results_->handle, type, queue_.device());
  const weft_tensor* const buffers[] = {&out};
  const int32_t scalars[] = {static_cast<int32_t>(items), steps};
  const weft_dispatch dispatch{.size = sizeof(weft_dispatch),
                               .n_buffers = 1,
                               .module = loop.c(),
                               .buffers = buffers,
                               .scalars = scalars,
                               .n_scalars = 2,
                               .reserved = 0,
                               .global = {items, 1, 1},
                               .local = {group, 1, 1},
                               .name = "the lab's loops"};
  const auto launch = [&] {
    seam::CError error;
    queue_.launched();
    return error.status(queue_.device().backend().dispatch(queue_.c(), &dispatch, error.out()));
  };
  WEFT_CHECK(launch());  // so that the device does not wait for the host between the stamps
  WEFT_CHECK(queue_.stamp());
  WEFT_CHECK(launch());
  WEFT_CHECK(queue_.stamp());
  WEFT_TRY(const auto times, queue_.read_stamps());
  if (times.size() != 2) return fail(Code::device, "{} stamps were read where 2 were enqueued", times.size());
  return std::max<uint64_t>(1, times[1] - times[0]);
}

Result<double> DeviceProbe::chain() {
  WEFT_TRY(const uint64_t ns, nanoseconds(*one_, 1, 1, kChainSteps));
  return static_cast<double>(kChainSteps) / static_cast<double>(ns);
}

Result<double> DeviceProbe::all_units() {
  WEFT_TRY(const uint64_t ns, nanoseconds(*many_, items_, group_, kSteps));
  return 2.0 * kChains * kSteps * static_cast<double>(items_) / static_cast<double>(ns);
}

}  // namespace weft::lab

#include <cstdio>
#include <deque>

#include "../../backends/cudnn/attention.h"
#include "../../backends/cudnn/convolution.h"
#include "../../backends/cudnn/norm.h"
#include "../../backends/cudnn/plan.h"

// Has the real cuDNN plan every kind of graph of backends/cudnn for an H100 that is only described: that it
// knows the graphs, and has engines that keep to their rules, is seen without a GPU. What they compute is
// not. `scripts/gpu plans` runs it, beside a driver that does nothing.
namespace {

using namespace weft;
using namespace weft::cudnn;

constexpr std::string_view kDevice = R"({"maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
  "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800,
  "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "totalGlobalMem": 85000000000,
  "deviceName": "NVIDIA H100 80GB HBM3"})";

/// A call of an op, made by hand.
class Call {
 public:
  Call(const char* op, DType dtype, uint32_t precision) : dtype_(dtype) {
    call_.size = sizeof call_, call_.op = op, call_.precision = precision;
  }
  Call& input(Sizes sizes) { return inputs_.push_back(type(std::move(sizes))), *this; }
  Call& output(Sizes sizes) { return outputs_.push_back(type(std::move(sizes))), *this; }
  Call& ints(const char* name, Sizes values) {
    weft_attr& a = attrs_.emplace_back();
    const Sizes& kept = sizes_.emplace_back(std::move(values));
    a.size = sizeof a, a.kind = WEFT_ATTR_INTS, a.name = name, a.ints = kept.data(), a.n = kept.size();
    listed_.push_back(&a);
    return *this;
  }
  backend::OpCall view() {
    call_.n_inputs = static_cast<uint32_t>(inputs_.size()), call_.inputs = inputs_.data();
    call_.n_outputs = static_cast<uint32_t>(outputs_.size()), call_.outputs = outputs_.data();
    call_.n_attrs = static_cast<uint32_t>(listed_.size()), call_.attrs = listed_.data();
    return backend::OpCall(&call_);
  }

 private:
  const weft_type* type(Sizes sizes) {
    const Sizes& kept = sizes_.emplace_back(std::move(sizes));
    weft_type& t = types_.emplace_back();
    t.size = sizeof t, t.rank = static_cast<int32_t>(kept.size()), t.min = t.max = kept.data();
    t.dtype = {info(dtype_).dlpack_code, static_cast<uint8_t>(8 * byte_size(dtype_)), 1};
    return &t;
  }
  DType dtype_;
  std::deque<Sizes> sizes_;
  std::deque<weft_type> types_;
  std::deque<weft_attr> attrs_;
  std::vector<const weft_type*> inputs_, outputs_;
  std::vector<const weft_attr*> listed_;
  weft_call call_{};
};

int failed = 0;

template <class F>
void plan(const std::string& name, const Target& target, bool repeatable, const F& describe) {
  try {
    Graph graph;
    graph.rules.repeatable = repeatable;
    describe(graph);
    const Plan made(std::move(graph), target);
    std::printf("%-48s %10llu bytes of workspace%s\n", name.c_str(),
                static_cast<unsigned long long>(made.workspace()),
                made.uses_tensor_cores() ? ", tensor cores" : "");
  } catch (const Failure& failure) {
    ++failed;
    std::printf("%-48s FAILED: %s\n", name.c_str(), failure.outcome.text.c_str());
  }
  std::fflush(stdout);
}

// cuDNN compiles each of these kernels, which takes seconds.
void plan_attention(const Target& target) {
  for (const auto& [kv_heads, seq_q, seq_k, dim, causal] :
       {std::array<int64_t, 5>{16, 1024, 1024, 64, 0}, {4, 1024, 1536, 128, 1}, {16, 260, 260, 72, 1}}) {
    const AttentionSizes s{.batch = 2,
                           .heads = 16,
                           .kv_heads = kv_heads,
                           .seq_q = seq_q,
                           .seq_k = seq_k,
                           .dim = dim,
                           .width = dim,
                           .causal = causal != 0,
                           .seq_first = true,
                           .scale = 0.1F};
    const std::string sizes = backend::format(" {} x {} x {}, {} heads", seq_q, seq_k, dim, kv_heads);
    plan("attention" + sizes, target, true, [&](Graph& g) { describe_attention(s, g); });
    for (const bool repeatable : {false, true})
      plan("attention_grad" + sizes + (repeatable ? ", one order" : ""), target, repeatable,
           [&](Graph& g) { describe_attention_grad(s, repeatable, g); });
  }
}

void plan_convolutions(const Target& target) {
  struct Case {
    const char* name;
    Sizes x, w, y, stride, padding;
    int64_t groups;
  };
  const Case cases[] = {
      {"one axis", {2, 3, 6}, {4, 3, 3}, {2, 4, 4}, {1}, {0, 0}, 1},
      {"three axes", {1, 2, 3, 3, 4}, {2, 2, 2, 2, 2}, {1, 2, 2, 2, 3}, {1, 1, 1}, Sizes(6), 1},
      {"images", {32, 64, 56, 56}, {128, 64, 3, 3}, {32, 128, 28, 28}, {2, 2}, {1, 1, 1, 1}, 1},
      {"uneven padding", {1, 2, 4, 4}, {2, 2, 3, 3}, {1, 2, 5, 3}, {1, 1}, {1, 2, 0, 1}, 1},
      {"groups", {2, 4, 5, 5}, {6, 2, 3, 3}, {2, 6, 3, 3}, {1, 1}, {0, 0, 0, 0}, 2}};
  using enum ConvRole;
  for (const Case& c : cases)
    for (const DType t : {DType::f64, DType::f32, DType::f16, DType::bf16})
      for (const auto& [op, first, second, result] :
           {std::tuple{"conv", x, w, y}, {"conv_transpose", y, w, x}, {"conv_weight_grad", x, y, w}}) {
        const Sizes* of[] = {&c.x, &c.w, &c.y};
        const auto sizes = [&](ConvRole role) { return *of[static_cast<size_t>(role)]; };
        Call call(op, t, WEFT_PRECISION_STRICT);
        call.input(sizes(first)).input(sizes(second)).output(sizes(result));
        call.ints("groups", {c.groups}).ints("padding", c.padding).ints("stride", c.stride);
        plan(backend::format("{} {}, {}", op, t, c.name), target, true,
             [&, a = first, b = second, r = result](Graph& g) { describe_conv(call.view(), a, b, r, g); });
      }
}

void plan_norms(const Target& target) {
  for (const DType t : {DType::f32, DType::f16, DType::bf16})
    for (const bool centred : {false, true})
      for (const int64_t columns : {33, 8192}) {
        Call call(centred ? "layer_norm" : "rms_norm", t, WEFT_PRECISION_STRICT);
        call.input({64, columns}).input({columns}).output({64, columns});
        if (centred) call.input({columns});
        plan(backend::format("{} {}, rows of {}", call.view().op(), t, columns), target, true,
             [&](Graph& g) { describe_norm(call.view(), centred, g); });
      }
}

}  // namespace

int main() {
  if (!library().missing.empty()) return std::fprintf(stderr, "plans: %s\n", library().missing.c_str()), 2;
  try {
    Descriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
               static_cast<int64_t>(kDevice.size()), kDevice.data());
    device.finalize();
    const Target target{nullptr, &device};
    plan_norms(target), plan_convolutions(target), plan_attention(target);
  } catch (const Failure& failure) {
    return std::fprintf(stderr, "plans: %s\n", failure.outcome.text.c_str()), 2;
  }
  std::printf("cuDNN %s: %d failed\n", library().version.c_str(), failed);
  return failed != 0;
}

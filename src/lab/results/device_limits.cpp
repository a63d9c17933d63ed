#include "lab/results/device_limits.h"

#include <algorithm>
#include <chrono>

#include "lab/kernels/device_probe.h"
#include "lab/kernels/provider.h"
#include "lab/kernels/seat.h"
#include "runtime/c_tensor.h"
#include "weft/dtype.h"

namespace weft::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSeconds = 0.1;               // for each limit
constexpr uint64_t kMostCopied = 256 << 20;    // bytes: more than caches hold
constexpr int64_t kDrawn = 512, kRows = 4096;  // of products; numbers repeat beyond those drawn

// The most of what `rate` gives in kSeconds: devices need some work before their clock is up.
Result<double> most(const std::function<Result<double>()>& rate) {
  double best = 0;
  for (const auto began = Clock::now(); Clock::now() - began < std::chrono::duration<double>(kSeconds);) {
    WEFT_TRY(const double now, rate());
    best = std::max(best, now);
  }
  return best;
}

// Nanoseconds between two stamps around what is enqueued.
Result<double> timed(seam::Queue& queue, const std::function<Status()>& enqueue) {
  WEFT_CHECK(queue.stamp());
  WEFT_CHECK(enqueue());
  WEFT_CHECK(queue.stamp());
  WEFT_TRY(const auto times, queue.read_stamps());
  return static_cast<double>(std::max<uint64_t>(1, times.at(1) - times.at(0)));
}

Result<double> copy_rate(seam::Queue& queue) {
  auto& device = queue.device();
  const uint64_t limit = device.capability().max_buffer,
                 bytes = limit ? std::min(kMostCopied, limit) : kMostCopied;
  WEFT_TRY(const auto from, device.allocate_unpooled(bytes));
  WEFT_TRY(const auto to, device.allocate_unpooled(bytes));
  return most([&]() -> Result<double> {
    WEFT_TRY(const double ns, timed(queue, [&] { return queue.copy(*to.get(), 0, *from.get(), 0, bytes); }));
    return 2 * static_cast<double>(bytes) / ns;
  });
}

// The op that multiplies numbers of this dtype; null: that of f32 is as fast as any.
const char* product_of(DType dtype) {
  if (dtype == DType::f8e4m3 || dtype == DType::f8e5m2) return "scaled_matmul";
  return is_half(dtype) ? "matmul" : nullptr;
}

// A product of square matrices on memory of its own, by the kernel that the device takes.
class Product {
 public:
  static Result<std::unique_ptr<Product>> create(seam::Device& device, const Operation& operation) {
    std::unique_ptr<Product> p(new Product);
    WEFT_TRY(const auto call, lab::describe(ask_of(operation)));
    WEFT_TRY(const Provider* provider, provider_of(device.name()));
    WEFT_TRY(p->kernel_, provider->open(device.name(), call));
    if (!p->kernel_->queue()) return fail(Code::unsupported, "its memory is the host's");
    for (const auto& t : call->desc().inputs) WEFT_CHECK(p->add(*t));
    for (const auto& t : call->desc().outputs) WEFT_CHECK(p->add(t));
    return p;
  }

  // Operands hold these numbers again and again.
  Status fill(const Data& data) {
    for (size_t i = 0; i < data.inputs.size(); ++i) {
      const auto& bytes = data.inputs[i].bytes;
      for (uint64_t at = 0; at < types_[i]->bytes(); at += bytes.size())
        WEFT_CHECK(kernel_->queue()->copy_in(*memory_[i].get(), at, bytes.data(),
                                             std::min<uint64_t>(bytes.size(), types_[i]->bytes() - at)));
    }
    const std::span all(tensors_);
    return kernel_->place(all.first(data.inputs.size()), all.subspan(data.inputs.size()));
  }
  Result<double> nanoseconds() {
    return timed(*kernel_->queue(), [&] { return kernel_->run(); });
  }

 private:
  Product() = default;
  Status add(const seam::ConcreteType& type) {
    WEFT_TRY(auto memory, kernel_->queue()->device().allocate_unpooled(type.bytes()));
    types_.push_back(std::make_unique<seam::ConcreteType>(type));
    tensors_.push_back(runtime::c_tensor(memory->handle, *types_.back(), kernel_->queue()->device()));
    memory_.push_back(std::move(memory));
    return {};
  }

  std::vector<seam::BufferRef> memory_;
  std::vector<std::unique_ptr<seam::ConcreteType>> types_;  // tensors point to their shapes
  std::vector<weft_tensor> tensors_;
  std::unique_ptr<Kernel> kernel_;  // ends first: its queue may still use the memory
};

Result<Operation> square(const char* op, DType dtype, int64_t n) {
  WEFT_TRY(auto found, operations_of({.ops = {op},
                                      .dtypes = {std::string(name(dtype))},
                                      .shapes = {fmt::format("{0}x{0},{0}x{0}", n)}}));
  return std::move(found.at(0));
}

Result<double> product_rate(seam::Device& device, const char* op, DType dtype) {
  double best = 0;
  WEFT_TRY(const auto drawn, square(op, dtype, kDrawn));
  WEFT_TRY(const auto data, draw_data(drawn, 1));
  for (const int64_t n : {kDrawn, kRows}) {
    WEFT_TRY(const auto operation, square(op, dtype, n));
    WEFT_TRY(const auto work, work_of(operation));
    WEFT_TRY(auto product, Product::create(device, operation));
    WEFT_CHECK(product->fill(data));
    double least = INFINITY;
    WEFT_TRY(const double rate, most([&]() -> Result<double> {
               WEFT_TRY(const double ns, product->nanoseconds());
               least = std::min(least, ns);
               return work.flops / ns;
             }));
    best = std::max(best, rate);
    if (least > 2e6) break;  // large enough for this device
  }
  return best;
}

Result<DeviceLimits> measured(seam::Device& device, const std::vector<DType>& dtypes) {
  DeviceLimits limits;
  WEFT_TRY(const auto queue, device.open_queue());
  if (!queue->has_stamps()) return fail(Code::unsupported, "{} has no clock", device.name());
  WEFT_TRY(limits.copy, copy_rate(*queue));
  if (auto probe = DeviceProbe::create(*queue); probe.ok()) {
    WEFT_TRY(limits.gigaflops, most([&] { return (*probe)->all_units(); }));
  }
  for (const DType dtype : dtypes)
    if (const char* op = product_of(dtype))
      if (auto rate = product_rate(device, op, dtype); rate.ok())  // a device need not multiply all of them
        limits.products[std::string(name(dtype))] = *rate;
  return limits;
}

}  // namespace

double DeviceLimits::peak(DType dtype) const {
  const auto product = products.find(std::string(name(dtype)));
  return std::max(gigaflops, product == products.end() ? 0.0 : product->second);
}

std::optional<DeviceLimits> measure_limits(seam::Device& device, const std::vector<DType>& dtypes) {
  auto limits = measured(device, dtypes);
  return limits.ok() ? std::optional(*limits) : std::nullopt;
}

}  // namespace weft::lab

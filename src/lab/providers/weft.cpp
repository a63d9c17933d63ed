#include "lab/kernels/provider.h"
#include "seam/preference.h"
#include "seam/prepared_kernel.h"
#include "seam/queue.h"
#include "seam/registry.h"

// Kernels of Weft's backends and plug-ins: the one that selection takes on a backend, or one by its id.
namespace weft::lab {
namespace {

class SeamKernel : public Kernel {
 public:
  SeamKernel(seam::PreparedPtr plan, std::unique_ptr<seam::Queue> queue, std::string contents)
      : queue_(std::move(queue)), plan_(std::move(plan)), contents_(std::move(contents)) {}

  std::string id() const override { return plan_->kernel.id; }
  std::string identity() const override { return contents_; }
  seam::Queue* queue() override { return plan_->device.host_memory() ? nullptr : queue_.get(); }

  Status place(std::span<const weft_tensor> inputs, std::span<const weft_tensor> outputs) override {
    memory_.clear(), tensors_.clear(), in_.clear(), out_.clear(), is_packed_ = false;
    tensors_.reserve(inputs.size() + outputs.size());
    for (const auto& t : inputs) WEFT_CHECK(add(t, in_));
    for (const auto& t : outputs) WEFT_CHECK(add(t, out_));
    if (plan_->plan.workspace && !workspace_memory_) {
      WEFT_TRY(workspace_memory_, plan_->device.allocate_unpooled(plan_->plan.workspace));
      sizes_ = {static_cast<int64_t>(plan_->plan.workspace)};
      workspace_ = {.dl = {.data = workspace_memory_->handle,
                           .device = plan_->device.dl(),
                           .ndim = 1,
                           .dtype = {kDLUInt, 8, 1},
                           .shape = sizes_.data(),
                           .strides = nullptr,
                           .byte_offset = 0},
                    .size = sizeof(weft_tensor),
                    .layout = 0,
                    .logical_shape = nullptr,
                    .alignment = 64};
    }
    return {};
  }

  Status run() override {
    if (!is_packed_) WEFT_CHECK(pack());
    WEFT_CHECK(
        seam::launch(*plan_, *queue_, in_.data(), out_.data(), workspace_memory_ ? &workspace_ : nullptr));
    return queue() ? Status() : queue_->synchronize();
  }

 private:
  // Constants become what the plan reads, in the first launch on operands at these places, which is not
  // timed: a session does the same when it opens.
  Status pack() {
    const auto* wanted = plan_->plan.packings;
    packed_memory_.resize(in_.size()), packed_.resize(in_.size());
    for (uint32_t i = 0; wanted && i < in_.size(); ++i) {
      if (!wanted[i]) continue;
      if (!packed_memory_[i]) {
        WEFT_TRY(packed_memory_[i], plan_->device.allocate_unpooled(wanted[i]->bytes));
      }
      packed_[i] = *in_[i];
      packed_[i].dl.data = packed_memory_[i]->handle, packed_[i].dl.byte_offset = 0;
      packed_[i].layout = wanted[i]->layout;
      WEFT_CHECK(seam::pack(*plan_, i, *in_[i], packed_[i], *queue_));
      in_[i] = &packed_[i];
    }
    is_packed_ = true;
    return queue_->synchronize();
  }

  Status add(const weft_tensor& t, std::vector<const weft_tensor*>& to) {
    if (!t.dl.data) return to.push_back(nullptr), Status();
    auto& mine = tensors_.emplace_back(t);
    to.push_back(&mine);
    if (queue()) return {};  // it is a buffer of this device already
    uint64_t bytes = t.dl.dtype.bits / 8;
    for (int32_t d = 0; d < t.dl.ndim; ++d) bytes *= static_cast<uint64_t>(t.dl.shape[d]);
    WEFT_TRY(auto buffer, plan_->device.import_memory(t.dl, bytes, [] {}));
    mine.dl.data = buffer->handle, mine.dl.device = plan_->device.dl(), mine.dl.byte_offset = 0;
    memory_.push_back(std::move(buffer));
    return {};
  }

  std::unique_ptr<seam::Queue> queue_;
  seam::PreparedPtr plan_;
  std::string contents_;
  std::vector<seam::BufferRef> memory_;
  std::vector<weft_tensor> tensors_;
  std::vector<const weft_tensor*> in_, out_;
  bool is_packed_ = false;
  std::vector<seam::BufferRef> packed_memory_;  // by operand; null where it is read as it is
  std::vector<weft_tensor> packed_;
  seam::BufferRef workspace_memory_;
  IntList sizes_;
  weft_tensor workspace_{};
};

// "native" of "native" and of "native.softmax"; empty where no backend is named so.
std::string backend_of(const std::string& contender) {
  for (const auto& b : seam::registry().report())
    for (const auto& d : b.devices)
      if (contender == d.name || contender == b.name || contender.starts_with(b.name + "."))
        return contender == d.name ? d.name : b.name;
  return "";
}

bool takes(const std::string& contender) {
  return contender.find('/') == std::string::npos && !backend_of(contender).empty();
}

Result<seam::PreparedPtr> prepare(seam::Device& device, const std::string& backend,
                                  const std::string& contender, const seam::CallPtr& call) {
  if (contender != backend) {
    const weft_kernel* kernel = seam::registry().find_kernel(device, contender);
    if (!kernel)
      return invalid("{} has no kernel '{}'; weft lab list names those that it has", backend, contender);
    return seam::prepare_with(device, *kernel, call);
  }
  std::vector<seam::Refusal> refusals;
  WEFT_TRY(auto plan, seam::select(device, call, &refusals));
  if (!plan) return fail(Code::unsupported, "{}", seam::text(refusals));
  return plan;
}

Result<std::unique_ptr<Kernel>> open(const std::string& contender, const seam::CallPtr& call) {
  const auto backend = backend_of(contender);
  WEFT_TRY(seam::Device * device, seam::registry().open(backend));
  const seam::Unmeasured without_preferences;
  WEFT_TRY(auto plan, prepare(*device, backend, contender, call));
  std::string contents;
  seam::registry().find_kernel(*device, plan->kernel.id, &contents);
  WEFT_TRY(auto queue, device->open_queue());
  return std::unique_ptr<Kernel>(
      std::make_unique<SeamKernel>(std::move(plan), std::move(queue), std::move(contents)));
}

std::vector<Offer> offers() {
  std::vector<Offer> all;
  for (const auto& b : seam::registry().report())
    for (const auto& d : b.devices) {
      auto device = d.computes ? seam::registry().open(d.name) : Result<seam::Device*>(nullptr);
      if (!device.ok() || !*device) continue;
      all.push_back({d.name, ""});
    }
  return all;
}

}  // namespace

extern const Provider weft_provider = {
    "weft",  "a backend of weft backends, or a kernel's id, as \"native.softmax\"",
    takes,   nullptr,
    open,    offers,
    nullptr, backend_of};

}  // namespace weft::lab

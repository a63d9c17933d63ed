#include "lab/kernels/worker.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lab/kernels/call_json.h"
#include "lab/kernels/confinement.h"
#include "lab/kernels/device_probe.h"
#include "lab/kernels/mirror.h"
#include "lab/kernels/operation.h"
#include "lab/kernels/process_facts.h"
#include "lab/kernels/provider.h"
#include "lab/kernels/shared_memory.h"
#include "lab/kernels/turn.h"

namespace weft::lab {
namespace {

using nlohmann::json;

// Bytes that are read and written between cold launches: more than any cache that is likely.
constexpr size_t kFlush = 128 << 20;

class Service {
 public:
  explicit Service(SharedMemory memory) : memory_(std::move(memory)) {}

  json answer(const json& request) {
    const auto what = request.at("do").get<std::string>();
    if (what == "open") return open(request);
    if (what == "set up") return set_up(request);
    if (what == "place") return place(request);
    if (what == "run") return run(request);
    throw Error(invalid("the lab asks for '{}'", what));
  }

 private:
  json open(const json& request) {
    probe_.reset(), mirror_.reset(), kernel_.reset();
    const auto contender = request.at("contender").get<std::string>();
    const uint64_t before = memory_of(::getpid()).resident;
    call_ = value_or_raise(lab::describe(ask_from(request.at("call"))));
    kernel_ = value_or_raise(value_or_raise(provider_of(contender))->open(contender, call_));
    return {{"kernel", kernel_->id()},
            {"identity", kernel_->identity()},
            {"compile_seconds", kernel_->compile_seconds()},
            {"resident_before", before},
            {"device", kernel_->queue() ? kernel_->queue()->device().home().name() : ""}};
  }

  weft_tensor tensor(const seam::ConcreteType& type, uint64_t at) {
    const auto& i = info(type.dtype);
    if (at + type.bytes() > memory_.bytes().size())
      throw Error(invalid("a tensor would lie outside of the memory"));
    const weft_tensor host{.dl = {.data = memory_.bytes().data() + at,
                                  .device = {kDLCPU, 0},
                                  .ndim = static_cast<int32_t>(type.shape.size()),
                                  .dtype = {i.dlpack_code, static_cast<uint8_t>(8 * i.bytes), 1},
                                  .shape = const_cast<int64_t*>(type.shape.data()),
                                  .strides = nullptr,
                                  .byte_offset = 0},
                           .size = sizeof(weft_tensor),
                           .layout = 0,
                           .logical_shape = nullptr,
                           .alignment = 64};
    return mirror_ ? mirror_->tensor(host, at) : host;
  }

  // Memory of the lab's own is taken and touched now, so that it is not counted as the kernel's.
  json set_up(const json& request) {
    const bool cold = request.at("cold").get<bool>();
    if (!kernel_->queue()) {
      if (cold) flush_.resize(kFlush);
      return json::object();
    }
    mirror_ = value_or_raise(Mirror::create(memory_.bytes(), *kernel_->queue()));
    raise_if(mirror_->touch());
    if (auto probe = DeviceProbe::create(*kernel_->queue()); probe.ok()) probe_ = std::move(probe).value();
    device_free_ = device_memory_free();
    return json::object();
  }

  // Zero where the device does not say.
  uint64_t device_memory_free() {
    auto& device = kernel_->queue()->device().home();
    return device.backend().memory_free ? device.backend().memory_free(device.c()) : 0;
  }

  json place(const json& request) {
    const auto& desc = call_->desc();
    const auto in = request.at("inputs").get<std::vector<uint64_t>>();
    const auto out = request.at("outputs").get<std::vector<uint64_t>>();
    if (kernel_->queue() && !mirror_)
      mirror_ = value_or_raise(Mirror::create(memory_.bytes(), *kernel_->queue()));
    std::vector<weft_tensor> inputs, outputs;
    for (size_t i = 0; i < desc.inputs.size(); ++i)
      inputs.push_back(desc.inputs[i] ? tensor(*desc.inputs[i], in.at(i)) : weft_tensor{});
    for (size_t k = 0; k < desc.outputs.size(); ++k) outputs.push_back(tensor(desc.outputs[k], out.at(k)));
    raise_if(kernel_->place(inputs, outputs));
    return json::object();
  }

  void edit(const Edit& e) {
    std::byte* data = memory_.bytes().data();
    std::memcpy(data + e.input_at, e.value, e.input_bytes);
    std::memcpy(data + e.output_at, e.spoilt, e.output_bytes);
  }

  void keep_sample(Edit* edits, uint64_t each, uint64_t launch) {
    Edit& e = edits[launch * each];
    if (!e.sample_bytes) return;
    e.sample_at = draw_sample_place(edits, each, launch);
    std::memcpy(e.sample, memory_.bytes().data() + e.sample_at, e.sample_bytes);
  }

  void flush_caches() {
    flush_.resize(kFlush);
    for (size_t i = 0; i < kFlush; i += 64) ++flush_[i];
  }

  json run(const json& request) {
    const auto launches = request.at("launches").get<uint64_t>(),
               each = request.at("edits_each").get<uint64_t>();
    const bool cold = request.at("cold").get<bool>(), apart = request.at("apart").get<bool>();
    auto* edits = reinterpret_cast<Edit*>(memory_.bytes().data() + request.at("edits").get<uint64_t>());
    const uint64_t mode = float_mode();
    if (mirror_) {
      const auto launch = [&] { return kernel_->run(); };
      json answer{
          {"nanoseconds", value_or_raise(mirror_->run({edits, launches * each}, each, launch, cold))}};
      if (probe_) answer["chain_rate"] = value_or_raise(probe_->chain());
      const uint64_t left = device_memory_free();
      answer["device_bytes"] = device_free_ - std::min(device_free_, left);
      return answer;
    }
    uint64_t spent = 0, began = ticks();
    for (uint64_t i = 0; i < launches; ++i) {
      for (uint64_t k = 0; k < each; ++k) edit(edits[i * each + k]);
      if (cold) flush_caches();
      if (apart) began = ticks();
      raise_if(kernel_->run());
      if (apart) spent += ticks() - began;
      keep_sample(edits, each, i);
    }
    if (!apart) spent = ticks() - began;
    if (float_mode() != mode)
      throw Error(
          fail(Code::device, "it changed how the processor rounds, or whether it flushes denormal numbers"));
    return {{"ticks", spent}, {"chain_ticks", chain_ticks()}};
  }

  SharedMemory memory_;
  seam::CallPtr call_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<Mirror> mirror_;  // of a kernel whose device has other memory than the host's
  std::unique_ptr<DeviceProbe> probe_;
  uint64_t device_free_ = 0;  // bytes, with the lab's own memory taken
  std::vector<char> flush_;
};

// As root, a kernel could read the lab's memory, with its seed, through /proc.
void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0)
    throw Error(fail(Code::internal, "capabilities can't be dropped: {}", std::strerror(errno)));
}

}  // namespace

int serve_contender() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it may stand still when the lab ends
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what its processes leave stays below it, where the lab finds it
  ::prctl(PR_SET_DUMPABLE, 0);         // its memory is not another kernel's to read
  Service service(value_or_raise(SharedMemory::map(kMemory)));
  drop_capabilities();
  raise_if(limit_resources());
  std::string request(1 << 16, '\0');
  for (;;) {
    const ssize_t n = ::recv(kSocket, request.data(), request.size(), 0);
    if (n <= 0) return 0;
    json answer;
    const auto asked = json::parse(request.data(), request.data() + n);
    try {
      answer = service.answer(asked);
    } catch (const Error& e) {
      answer = {{e.status().code() == Code::unsupported ? "refused" : "failed", e.status().message()}};
    }
    answer["number"] = asked.at("number");  // of the request that this answers
    const auto text = answer.dump(-1, ' ', false, json::error_handler_t::replace);
    if (::send(kSocket, text.data(), text.size(), MSG_NOSIGNAL) < 0) return 1;
  }
}

}  // namespace weft::lab

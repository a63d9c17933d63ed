#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/thread_pool.h"
#include "conformance/check.h"
#include "conformance/seam/usual.h"

// On host memory, every operand ends where a page begins that may not be touched; elsewhere it lies among
// numbers that must be the same afterwards.
namespace weft::conformance {
namespace {

/// Bytes between two pages that may not be touched, at the end of theirs or at the beginning.
class Guarded {
 public:
  Guarded(size_t bytes, bool at_end) : page_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))) {
    const size_t inner = (bytes + page_ - 1) / page_ * page_ + (bytes ? 0 : page_);
    all_ = inner + 2 * page_;
    base_ = static_cast<std::byte*>(::mmap(nullptr, all_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || ::mprotect(base_ + page_, inner, PROT_READ | PROT_WRITE) != 0)
      throw Error(fail(Code::out_of_memory, "no {} bytes of guarded memory", all_));
    data_ = base_ + page_ + (at_end ? inner - bytes : 0);
  }
  ~Guarded() { ::munmap(base_, all_); }
  Guarded(const Guarded&) = delete;
  std::byte* data() const { return data_; }

 private:
  size_t page_, all_ = 0;
  std::byte *base_ = nullptr, *data_ = nullptr;
};

weft_tensor tensor_at(std::byte* data, const seam::ConcreteType& type, DLDevice device) {
  const auto& i = info(type.dtype);
  return {.dl = {.data = data,
                 .device = device,
                 .ndim = static_cast<int32_t>(type.shape.size()),
                 .dtype = {i.dlpack_code, static_cast<uint8_t>(8 * i.bytes), 1},
                 .shape = const_cast<int64_t*>(type.shape.data()),
                 .strides = nullptr,
                 .byte_offset = 0},
          .size = sizeof(weft_tensor),
          .layout = 0,
          .logical_shape = nullptr,
          .alignment = byte_size(type.dtype)};
}

void launch_guarded(Rig& rig, seam::Plan& plan, const Ask& ask, bool at_end) {
  std::vector<std::unique_ptr<Guarded>> memory;
  std::vector<weft_tensor> tensors;
  std::vector<const weft_tensor*> in, out;
  tensors.reserve(ask.inputs.size() + plan.call->desc().outputs.size());
  const auto place = [&](const seam::ConcreteType& type, auto& list) -> std::byte* {
    memory.push_back(std::make_unique<Guarded>(type.bytes(), at_end));
    tensors.push_back(tensor_at(memory.back()->data(), type, rig.device.dl()));
    list.push_back(&tensors.back());
    return memory.back()->data();
  };
  for (const auto& t : ask.inputs) std::memcpy(place(t.type, in), t.bytes.data(), t.bytes.size());
  for (const auto& type : plan.call->desc().outputs) place(type, out);
  raise_if(seam::launch(plan, *rig.queue, in.data(), out.data(), nullptr));
  raise_if(rig.queue->synchronize());
}

// In a child process, on one thread: whoever touches such a page ends it.
Found in_child(Rig& rig, const Ask& ask, bool at_end) {
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  const pid_t child = fork();
  if (child == 0) {
    for (const int s : {SIGSEGV, SIGBUS}) std::signal(s, SIG_DFL);
    set_thread_count(1);
    try {
      launch_guarded(rig, *plan, ask, at_end);
    } catch (const Error&) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status)) return Found::wrong(fmt::format("{} failed in memory of its own", plan->kernel.id));
  return Found::wrong(fmt::format("{} touched memory {} its operands (signal {})", plan->kernel.id,
                                  at_end ? "behind" : "before", WTERMSIG(status)));
}

// Where memory is no address: what lies around an output must be the same afterwards.
Found among_others(Rig& rig, const Ask& ask) {
  const uint64_t step = std::max<uint64_t>(64, rig.device.capability().offset_alignment);
  const auto plan = value_or_raise(rig.plan(value_or_raise(describe(ask))));
  std::vector<std::unique_ptr<Rig::Operand>> in;
  std::vector<const weft_tensor*> c_in;
  for (const auto& t : ask.inputs) c_in.push_back(&in.emplace_back(value_or_raise(rig.upload(t)))->c);
  const auto& type = plan->call->desc().outputs[0];
  const auto n = static_cast<int64_t>((2 * step + type.bytes()) / 8 + 1);
  auto around = value_or_raise(rig.upload(array({n}, {-77}, DType::f64)));
  weft_tensor c = tensor_at(static_cast<std::byte*>(around->c.dl.data), type, rig.device.dl());
  c.dl.byte_offset = step;
  const weft_tensor* out[] = {&c};
  raise_if(seam::launch(*plan, *rig.queue, c_in.data(), out, nullptr));
  raise_if(rig.queue->synchronize());
  const auto got = value_or_raise(rig.download(*around)), before = array({n}, {-77}, DType::f64);
  for (size_t i = 0; i < got.bytes.size(); ++i)
    if ((i < step || i >= step + type.bytes()) && got.bytes[i] != before.bytes[i])
      return Found::wrong(fmt::format("{} wrote byte {} of a buffer in which its output has {} to {}",
                                      plan->kernel.id, i, step, step + type.bytes()));
  return {};
}

void run(CheckRun& run) {
  Rig rig(run.backend());
  for (const Ask& ask : usual_calls()) {
    if (!rig.device.host_memory()) {
      run.run(title(ask) + " among others", [&] { return among_others(rig, ask); });
      continue;
    }
    for (const bool at_end : {true, false})
      run.run(title(ask) + (at_end ? " before a page" : " behind a page"),
              [&] { return in_child(rig, ask, at_end); });
  }
}

}  // namespace

extern const Check stays_within_bounds_check = {"stays_within_bounds",
                                                "a launch touches nothing beside its operands", run};

}  // namespace weft::conformance

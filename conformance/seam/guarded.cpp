#include "conformance/seam/guarded.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "base/thread_pool.h"

namespace weft::conformance {

Guarded::Guarded(size_t bytes, bool at_end) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  inner_ = std::max<size_t>(1, (bytes + page - 1) / page) * page;
  all_ = inner_ + 2 * page, offset_ = at_end ? inner_ - bytes : 0;
  base_ = static_cast<std::byte*>(::mmap(nullptr, all_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (base_ == MAP_FAILED || ::mprotect(base_ + page, inner_, PROT_READ | PROT_WRITE) != 0)
    throw Error(fail(Code::out_of_memory, "no {} bytes of guarded memory", all_));
  begin_ = base_ + page;
}
void Guarded::protect() { ::mprotect(begin_, inner_, PROT_READ); }
Guarded::~Guarded() { ::munmap(base_, all_); }

weft_tensor tensor_at(std::byte* data, const seam::ConcreteType& type, DLDevice device, uint64_t offset) {
  const auto& i = info(type.dtype);
  return {.dl = {.data = data,
                 .device = device,
                 .ndim = static_cast<int32_t>(type.shape.size()),
                 .dtype = {i.dlpack_code, static_cast<uint8_t>(8 * i.bytes), 1},
                 .shape = const_cast<int64_t*>(type.shape.data()),
                 .strides = nullptr,
                 .byte_offset = offset},
          .size = sizeof(weft_tensor),
          .layout = 0,
          .logical_shape = nullptr,
          .alignment = byte_size(type.dtype)};
}

namespace {

/// The operand that each output updates, if any: they share memory.
std::vector<std::optional<size_t>> updated(const seam::CallDesc& call) {
  std::vector<std::optional<size_t>> by_output(call.outputs.size());
  for (const auto& [output, input] : call.updates) by_output[output] = input;
  return by_output;
}

/// A child's report to its parent, in shared memory.
struct Report {
  std::atomic<size_t> at;
  std::atomic<bool> through;  ///< all jobs were done
  char words[480];
};

// A job that takes longer counts as hanging.
constexpr unsigned kMostSeconds = 20;

// Any other exception ends the child here: it must not unwind into the parent's frames.
void work_through(size_t first, size_t n, const std::function<void(size_t)>& job, Report& report) noexcept {
  for (const int s : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(s, SIG_DFL);
  set_thread_count(1);
  try {
    for (size_t i = first; i < n; ++i) report.at = i, ::alarm(kMostSeconds), job(i);
    report.through = true;
  } catch (const std::exception& e) {
    std::snprintf(report.words, sizeof report.words, "%s", e.what());
  }
  _exit(report.through ? 0 : 1);
}

// The meaning of a child's exit for its current job.
std::string last_words(const Report& report, int status) {
  if (report.words[0]) return report.words;
  if (WIFEXITED(status)) return fmt::format("ended the process: exit({})", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGALRM) return fmt::format("was not done after {} s", kMostSeconds);
  return fmt::format("ended the process: {}", ::strsignal(WTERMSIG(status)));
}

}  // namespace

void launch_between_pages(Rig& rig, seam::PreparedKernel& plan, const Ask& ask, bool at_end) {
  std::vector<std::unique_ptr<Guarded>> memory;
  std::deque<weft_tensor> tensors;
  std::vector<const weft_tensor*> in, out;
  const auto place = [&](const seam::ConcreteType& type) {
    memory.push_back(std::make_unique<Guarded>(type.bytes(), at_end));
    return &tensors.emplace_back(tensor_at(memory.back()->data(), type, rig.device.dl()));
  };
  const auto& call = plan.call->desc();
  for (const auto& t : ask.inputs) {
    in.push_back(place(t.type));
    if (!t.bytes.empty()) std::memcpy(memory.back()->data(), t.bytes.data(), t.bytes.size());
  }
  const auto updates = updated(call);
  // A kernel that writes there and restores the bytes has still written: another launch may be reading.
  for (size_t i = 0; i < in.size(); ++i)
    if (std::ranges::find(updates, std::optional(i)) == updates.end()) memory[i]->protect();
  in.resize(call.inputs.size());
  for (size_t k = 0; k < call.outputs.size(); ++k)
    out.push_back(updates[k] ? in[*updates[k]] : place(call.outputs[k]));
  const seam::ConcreteType scratch{DType::u8, {static_cast<int64_t>(plan.plan.workspace)}};
  const weft_tensor* workspace = plan.plan.workspace ? place(scratch) : nullptr;
  raise_if(seam::launch(plan, *rig.queue, in.data(), out.data(), workspace));
  raise_if(rig.queue->synchronize());
}

std::string launch_among_others(Rig& rig, seam::PreparedKernel& plan, const Ask& ask) {
  const uint64_t step = std::max<uint64_t>(64, rig.device.capability().offset_alignment);
  std::vector<std::unique_ptr<Rig::Operand>> kept, around;
  std::vector<const weft_tensor*> in, out;
  std::deque<weft_tensor> tensors;
  const auto& call = plan.call->desc();
  for (const auto& t : ask.inputs) in.push_back(&kept.emplace_back(value_or_raise(rig.upload(t)))->c);
  in.resize(call.inputs.size());
  const auto updates = updated(call);
  const auto sentinel = [&](const seam::ConcreteType& type) {
    return array({static_cast<int64_t>((2 * step + type.bytes()) / 8 + 1)}, {-77}, DType::f64);
  };
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    auto& o = around.emplace_back();
    if (updates[k]) {
      out.push_back(in[*updates[k]]);
      continue;
    }
    o = value_or_raise(rig.upload(sentinel(call.outputs[k])));
    out.push_back(&tensors.emplace_back(
        tensor_at(static_cast<std::byte*>(o->c.dl.data), call.outputs[k], rig.device.dl(), step)));
  }
  const auto workspace = value_or_raise(rig.workspace(plan.plan));
  raise_if(seam::launch(plan, *rig.queue, in.data(), out.data(), workspace ? &workspace->c : nullptr));
  raise_if(rig.queue->synchronize());
  for (size_t k = 0; k < around.size(); ++k) {
    if (!around[k]) continue;
    const auto& type = call.outputs[k];
    const auto got = value_or_raise(rig.download(*around[k])), before = sentinel(type);
    for (size_t i = 0; i < got.bytes.size(); ++i)
      if ((i < step || i >= step + type.bytes()) && got.bytes[i] != before.bytes[i])
        return fmt::format("{} wrote byte {} of a buffer in which output {} has {} to {}", plan.kernel.id, i,
                           k, step, step + type.bytes());
  }
  return "";
}

std::vector<std::string> in_children(size_t n, const std::function<void(size_t)>& job, bool first_only) {
  std::vector<std::string> said(n);
  void* shared = ::mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw Error(fail(Code::out_of_memory, "no page to share with a child"));
  auto& report = *new (shared) Report{};
  for (size_t first = 0; first < n; first = report.at + 1) {
    report.at = first, report.words[0] = 0;
    std::fflush(nullptr);  // or a child that calls exit prints the buffer again
    const pid_t child = ::fork();
    if (child < 0) throw Error(fail(Code::unavailable, "no child process could be started"));
    if (child == 0) work_through(first, n, job, report);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (report.through) break;
    said[report.at] = last_words(report, status);
    if (first_only) break;
  }
  ::munmap(shared, sizeof(Report));
  return said;
}

}  // namespace weft::conformance

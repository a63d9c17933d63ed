// Which kernels a process runs on NVIDIA GPUs, and how long. Loaded into any process by the driver:
//
//   CUDA_INJECTION64_PATH=profile.so WEFT_PROFILE=FILE [WEFT_PROFILE_AFTER=SECONDS] [WEFT_PROFILE_LAST=N]
//   weft train ...
//
// writes FILE when the process ends: a line for each kernel, the longest first, of what began after SECONDS,
// and below them the last N kernels one by one.
#include <cupti.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Times {
  uint64_t calls = 0, nanoseconds = 0;
};

struct Run {
  uint64_t start, end;
  std::string name;
};

std::mutex mutex;
std::deque<Run> last_runs;
std::map<std::string, Times> by_kernel;  // and copies, by kind
uint64_t first = 0, last = 0, busy_until = 0, idle = 0, skipped = 0;

void add(const std::string& name, uint64_t start, uint64_t end) {
  const char* after = std::getenv("WEFT_PROFILE_AFTER");
  const auto wait = static_cast<uint64_t>(1e9 * (after ? std::atof(after) : 0));
  if (!skipped) skipped = start;
  if (start < skipped + wait) return;
  if (!first) first = busy_until = start;
  if (start > busy_until) idle += start - busy_until;
  busy_until = std::max(busy_until, end);
  last = std::max(last, end);
  const char* kept = std::getenv("WEFT_PROFILE_LAST");
  last_runs.push_back({start, end, name});
  while (last_runs.size() > static_cast<size_t>(kept ? std::atoll(kept) : 0)) last_runs.pop_front();
  Times& t = by_kernel[name];
  ++t.calls, t.nanoseconds += end - start;
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *size = size_t{8} << 20, *most_records = 0;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::lock_guard lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const auto* k = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
      add(k->name, k->start, k->end);
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      const auto* c = reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      add("copy of kind " + std::to_string(c->copyKind), c->start, c->end);
    }
  }
  std::free(buffer);
}

void write() {
  cuptiActivityFlushAll(1);
  const std::lock_guard lock(mutex);
  const char* path = std::getenv("WEFT_PROFILE");
  FILE* file = path ? std::fopen(path, "w") : stderr;
  if (!file) return;
  std::vector<std::pair<std::string, Times>> all(by_kernel.begin(), by_kernel.end());
  std::ranges::sort(all,
                    [](const auto& a, const auto& b) { return a.second.nanoseconds > b.second.nanoseconds; });
  std::fprintf(file, "%.3f ms in all, %.3f ms without a kernel\n", static_cast<double>(last - first) / 1e6,
               static_cast<double>(idle) / 1e6);
  for (const auto& [name, t] : all)
    std::fprintf(file, "%10.3f ms %7llu calls %9.2f us each  %s\n", static_cast<double>(t.nanoseconds) / 1e6,
                 static_cast<unsigned long long>(t.calls),
                 static_cast<double>(t.nanoseconds) / 1e3 / static_cast<double>(t.calls),
                 name.substr(0, 150).c_str());
  std::ranges::sort(last_runs, {}, &Run::start);
  for (const Run& r : last_runs)
    std::fprintf(file, "%12.2f us + %8.2f us  %s\n",
                 static_cast<double>(r.start - last_runs.front().start) / 1e3,
                 static_cast<double>(r.end - r.start) / 1e3, r.name.substr(0, 100).c_str());
  if (path) std::fclose(file);
}

}  // namespace

extern "C" int InitializeInjection() {
  cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
  std::atexit(write);
  return 1;
}

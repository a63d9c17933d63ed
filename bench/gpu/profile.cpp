// Which kernels a process runs on NVIDIA GPUs, and how long. Loaded into any process by the driver:
//
//   CUDA_INJECTION64_PATH=profile.so WEFT_PROFILE=FILE [WEFT_PROFILE_AFTER=SECONDS] [WEFT_PROFILE_LAST=N]
//   weft train ...
//
// writes FILE when the process ends: a line for each kernel, what adds most first, of what began after
// SECONDS, and below them the last N kernels one by one. A kernel that is launched early waits for the one
// before: what it adds to the time at which that ended is what it costs.
#include <cupti.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Run {
  uint64_t start, end;
  std::string name;  // of a kernel, or of copies of a kind
};

std::mutex mutex;
std::vector<Run> runs;  // in the order in which they are told, which is not that of time
uint64_t first = 0;

void add(std::string name, uint64_t start, uint64_t end) {
  const char* after = std::getenv("WEFT_PROFILE_AFTER");
  first = first ? std::min(first, start) : start;
  if (start >= first + static_cast<uint64_t>(1e9 * (after ? std::atof(after) : 0)))
    runs.push_back({start, end, std::move(name)});
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

struct Times {
  uint64_t calls = 0, nanoseconds = 0, added = 0;
};

// By name; and the time in which nothing ran. The runs are in the order of time.
std::map<std::string, Times> by_name(uint64_t& idle) {
  std::map<std::string, Times> all;
  uint64_t busy_until = runs.empty() ? 0 : runs.front().start;
  for (const Run& r : runs) {
    if (r.start > busy_until) idle += r.start - busy_until;
    Times& t = all[r.name];
    ++t.calls, t.nanoseconds += r.end - r.start;
    t.added += r.end - std::min(r.end, std::max(r.start, busy_until));
    busy_until = std::max(busy_until, r.end);
  }
  return all;
}

void print_last(FILE* file) {
  const char* kept = std::getenv("WEFT_PROFILE_LAST");
  const size_t most = kept ? static_cast<size_t>(std::atoll(kept)) : 0;
  const size_t begin = runs.size() - std::min(runs.size(), most);
  for (size_t i = begin; i < runs.size(); ++i)
    std::fprintf(file, "%12.2f us + %8.2f us  %s\n",
                 static_cast<double>(runs[i].start - runs[begin].start) / 1e3,
                 static_cast<double>(runs[i].end - runs[i].start) / 1e3, runs[i].name.substr(0, 100).c_str());
}

void write() {
  cuptiActivityFlushAll(1);
  const std::lock_guard lock(mutex);
  const char* path = std::getenv("WEFT_PROFILE");
  FILE* file = path ? std::fopen(path, "w") : stderr;
  if (!file) return;
  std::ranges::sort(runs, {}, &Run::start);
  uint64_t idle = 0;
  const auto named = by_name(idle);
  std::vector<std::pair<std::string, Times>> all(named.begin(), named.end());
  std::ranges::sort(all, [](const auto& a, const auto& b) { return a.second.added > b.second.added; });
  uint64_t busy = 0;
  for (const auto& [name, t] : all) busy += t.added;
  std::fprintf(file, "%.3f ms with a kernel, %.3f ms without\n", static_cast<double>(busy) / 1e6,
               static_cast<double>(idle) / 1e6);
  for (const auto& [name, t] : all)
    std::fprintf(file, "%10.3f ms added %7llu calls %9.2f us each %9.2f us added  %s\n",
                 static_cast<double>(t.added) / 1e6, static_cast<unsigned long long>(t.calls),
                 static_cast<double>(t.nanoseconds) / 1e3 / static_cast<double>(t.calls),
                 static_cast<double>(t.added) / 1e3 / static_cast<double>(t.calls),
                 name.substr(0, 150).c_str());
  print_last(file);
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

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "weft/backend.h"

// What the backend of a GPU answers when something goes wrong, asked of its table: a device that is not
// there, more memory than there is, a kernel that reads where nothing is, one that does not end; and what its
// memory costs.
//
//   gpu_faults PLUGIN index|memory|fault|hang|pool      the last line is "ok", or what was wrong
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

[[noreturn]] void wrong(const std::string& what) {
  std::printf("wrong: %s\n", what.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}
void want(bool holds, const char* what) {
  if (!holds) wrong(what);
}

struct Backend {
  const weft_backend* table = nullptr;
  weft_device device = nullptr;
  weft_queue queue = nullptr;
  std::string kind;
  weft_error error{.size = sizeof error, .text = {}};

  void check(weft_code code, const char* what) {
    if (code != WEFT_OK) wrong(std::string(what) + ": " + error.text);
  }
  void load(const char* path) {
    static const weft_host host = [] {
      weft_host h{};
      h.size = sizeof h, h.abi_min = WEFT_ABI_MIN, h.abi_max = WEFT_ABI;
      h.log = [](uint32_t, const char* text) { std::printf("log: %s\n", text); };
      return h;
    }();
    void* const file = dlopen(path, RTLD_NOW);
    if (!file) wrong(dlerror());
    const auto negotiate = reinterpret_cast<weft_negotiate_fn>(dlsym(file, "weft_negotiate"));
    want(negotiate, "it has no weft_negotiate");
    check(negotiate(&host, &table, &error), "negotiating");
  }
  void open() {
    weft_capability c{};
    c.size = sizeof c;
    check(table->open_device(0, &device, &c, &error), "opening");
    kind = c.kind;
    check(table->open_queue(device, &queue, &error), "opening a queue");
  }
  weft_module compile(const char* text, const char* entry) {
    const weft_source source{.size = sizeof source, .reserved = 0, .text = text, .entry = entry};
    weft_module module = nullptr;
    check(table->compile(device, &source, &module, &error), "compiling");
    return module;
  }
  weft_code dispatch(weft_module module, const char* name, int32_t scalar) {
    weft_dispatch d{};
    d.size = sizeof d, d.module = module, d.scalars = &scalar, d.n_scalars = 1;
    d.global[0] = 32, d.local[0] = 32, d.name = name;
    return table->dispatch(queue, &d, &error);
  }
  void close() {
    table->close_queue(queue);
    table->close_device(device);
  }
};

constexpr const char* kText = R"(
extern "C" __global__ void does_nothing(int) {}
extern "C" __global__ void reads_nowhere(int at) { *(volatile int*)(long long)at = 1; }
extern "C" __global__ void does_not_end(int forever) { for (volatile int i = 0; forever; ++i) {} }
)";

void index(Backend& b) {
  weft_capability c{};
  c.size = sizeof c;
  weft_device none = nullptr;
  want(b.table->open_device(7, &none, &c, &b.error) != WEFT_OK, "device 7 was opened");
  std::printf("open: %s\n", b.error.text);
  want(b.table->describe(7, &c, &b.error) != WEFT_OK, "device 7 was described");
}

void memory(Backend& b) {
  b.open();
  void* all = nullptr;
  want(b.table->allocate(b.device, uint64_t{1} << 50, &all, &b.error) == WEFT_OUT_OF_MEMORY,
       "2^50 bytes were given");
  std::printf("allocate: %s\n", b.error.text);
  // Nearly all of the memory in halves, of which one is let go: the next takes its place.
  const uint64_t half = b.table->memory_free(b.device) / 2 - (uint64_t{64} << 20);
  void *first = nullptr, *second = nullptr, *third = nullptr;
  b.check(b.table->allocate(b.device, half, &first, &b.error), "a half");
  b.check(b.table->allocate(b.device, half, &second, &b.error), "the other half");
  want(b.table->allocate(b.device, half, &third, &b.error) == WEFT_OUT_OF_MEMORY, "a third half was given");
  std::printf("allocate: %s\n", b.error.text);
  b.table->free(b.device, second);
  b.check(b.table->allocate(b.device, half - (uint64_t{1} << 30), &third, &b.error), "after one was let go");
  b.table->free(b.device, third);
  b.table->free(b.device, first);
  b.check(b.table->synchronize(b.queue, &b.error), "going on");
  b.close();
}

void failing(Backend& b, const char* entry, int32_t scalar) {
  b.open();
  weft_module nothing = b.compile(kText, "does_nothing"), module = b.compile(kText, entry);
  b.check(b.dispatch(nothing, "gpu.nothing", 0), "a kernel that does nothing");
  b.check(b.table->synchronize(b.queue, &b.error), "before");
  b.check(b.dispatch(nothing, "gpu.before", 0), "a kernel that does nothing");
  b.check(b.dispatch(module, "gpu.bad", scalar), "launching it");
  const auto begin = Clock::now();
  want(b.table->synchronize(b.queue, &b.error) == WEFT_DEVICE, "synchronize says nothing");
  std::printf("synchronize, %.3f s: %s\n", seconds_since(begin), b.error.text);
  want(std::strstr(b.error.text, "gpu.bad"), "the text does not name the kernel");
  want(!std::strstr(b.error.text, "gpu.nothing"), "the text names a kernel that has ended");
  const auto after = Clock::now();
  void* handle = nullptr;
  const std::string first = b.error.text;
  want(b.table->allocate(b.device, 4096, &handle, &b.error) == WEFT_DEVICE, "allocate goes on");
  want(b.dispatch(nothing, "gpu.after", 0) == WEFT_DEVICE, "dispatch goes on");
  want(b.table->synchronize(b.queue, &b.error) == WEFT_DEVICE, "synchronize goes on");
  want(first == b.error.text, "the first error is not the answer");
  b.close();
  want(seconds_since(after) < 0.1, "the calls after it take long");
}

/// Blocks of drawn sizes come and go; after the first round nothing is asked of the driver.
void pool(Backend& b) {
  b.open();
  std::vector<void*> live(64);
  for (int round = 0; round < 3; ++round) {
    uint64_t random = 1;
    const auto begin = Clock::now();
    constexpr int kTimes = 20000;
    for (int i = 0; i < kTimes; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      void*& at = live[(random >> 33) % live.size()];
      if (at) b.table->free(b.device, at);
      const uint64_t bytes = uint64_t{1} << ((random >> 40) % 22 + 6);
      b.check(b.table->allocate(b.device, bytes + (random >> 48) % bytes, &at, &b.error), "allocating");
    }
    std::printf("round %d: %.0f ns to let a block go and take another\n", round,
                seconds_since(begin) / kTimes * 1e9);
    for (void*& at : live) {
      if (at) b.table->free(b.device, at);
      at = nullptr;
    }
  }
  b.close();
}

}  // namespace

int main(int n, char** words) {
  if (n != 3) return std::fprintf(stderr, "gpu_faults PLUGIN index|memory|fault|hang|pool\n"), 2;
  Backend b;
  b.load(words[1]);
  const std::string what = words[2];
  if (what == "index")
    index(b);
  else if (what == "memory")
    memory(b);
  else if (what == "fault")
    failing(b, "reads_nowhere", 16);
  else if (what == "hang")
    failing(b, "does_not_end", 1);
  else if (what == "pool")
    pool(b);
  else
    wrong("there is no " + what);
  std::puts("ok");
}

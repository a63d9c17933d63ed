#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "base/thread_pool.h"
#include "eager/apply.h"
#include "seam/registry.h"
#include "test_backends.h"
#include "weft/ops.h"
#include "weft/tokenizer.h"

// Objects shared by threads: the pool, devices, the ledger, a tokenizer; and the caches of calls, which are
// per thread. scripts/test runs these under ThreadSanitizer.
namespace weft::threads_test {
namespace {

/// Starts `n` threads on body(i) and waits for them.
void on_threads(int n, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back(body, i);
  for (auto& t : threads) t.join();
}

int64_t sum_of_range(int64_t n, int64_t grain) {
  std::vector<int64_t> seen(static_cast<size_t>(n));
  const ParallelBody body = [](void* context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) static_cast<int64_t*>(context)[i] += i;
  };
  parallel_for(n, grain, body, seen.data());
  return std::accumulate(seen.begin(), seen.end(), int64_t{0});
}

TEST(Threads, PoolRunsEachPieceOnceForEveryCaller) {
  set_thread_count(3);
  std::atomic<int> wrong = 0;
  on_threads(4, [&](int) {
    for (int64_t n = 0; n < 200; ++n)
      if (sum_of_range(n, 1) != n * (n - 1) / 2) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  set_thread_count(0);
}

TEST(Threads, PoolMayChangeItsSizeWhileItRuns) {
  std::atomic<int> wrong = 0;
  on_threads(3, [&](int i) {
    for (int64_t n = 0; n < 60; ++n) {
      if (i == 0) set_thread_count(static_cast<int>(1 + n % 4));
      if (sum_of_range(100, 1) != 4950) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  set_thread_count(0);
}

// Memory that a thread freed is returned by any thread that trims, also while the first one sleeps.
TEST(Threads, TrimEmptiesThePoolOfEveryThread) {
  const OnBackend on("reference");
  auto& device = *value_or_raise(seam::registry().open("reference"));
  device.trim();
  const uint64_t before = device.live_bytes();
  std::atomic<int> waiting = 0;
  std::atomic<bool> go = false;
  std::thread main([&] {
    on_threads(3, [&](int) {
      const OnBackend here("reference");
      (void)full(1, {5000});
      ++waiting;
      while (!go) std::this_thread::yield();
    });
  });
  while (waiting < 3) std::this_thread::yield();
  EXPECT_GE(device.live_bytes(), before + 3 * 5000 * sizeof(float));
  device.trim();
  EXPECT_EQ(device.live_bytes(), before);
  go = true;
  main.join();
}

// Trimming takes nothing that is in use, however often it comes between.
TEST(Threads, TrimAmongThreadsThatAllocate) {
  auto& device = *value_or_raise(seam::registry().open("reference"));
  std::atomic<int> wrong = 0, done = 0;
  std::thread trimmer([&] {
    while (done < 3) device.trim();
  });
  on_threads(3, [&](int i) {
    const OnBackend here("reference");
    for (int round = 0; round < 300; ++round) {
      const double n = i * 1000 + round;
      const Tensor x = full(n, {17 + round % 5}), y = x + x;
      if (y.to_vector<double>()[3] != 2 * n) ++wrong;
    }
    ++done;
  });
  trimmer.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, EachHasItsOwnPlanCache) {
  WEFT_NEEDS_PLUGIN("far");
  for (const char* backend : {"reference", "far"}) {
    std::atomic<int> wrong = 0;
    on_threads(4, [&](int i) {
      const OnBackend on(backend);
      const Tensor x = Tensor::of({1, 2, 3, 4, 5, 6}, {2, 3});
      for (int k = 0; k < 25; ++k) {
        const double factor = i * 25 + k;
        if ((softmax(x, k % 2 ? 1 : 0) * 0.0 + factor).to_vector<double>() != std::vector<double>(6, factor))
          ++wrong;
      }
      // Two softmaxes and what they are made of; a second round of the same calls adds nothing.
      const auto before = eager::cache_stats();
      if (before.misses == 0) ++wrong;
      (void)softmax(x, 1).to_vector<float>();
      if (eager::cache_stats().misses != before.misses) ++wrong;
    });
    EXPECT_EQ(wrong, 0) << backend;
  }
}

TEST(Threads, GradientsAndDefaultsBelongToTheirThread) {
  std::atomic<int> wrong = 0;
  on_threads(4, [&](int i) {
    const OnBackend on(i % 2 ? "null" : "reference");
    if (default_backend() != (i % 2 ? "null" : "reference")) ++wrong;
    if (i % 2) return;
    for (int k = 0; k < 10; ++k) {
      Tensor w = Tensor::of({1, 2, 3}, {3});
      w.requires_grad(true);
      mean_square(w * double(i + 1)).backward();
      for (const float g : w.grad().to_vector<float>()) wrong += g <= 0;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, MayShareALeaf) {
  const OnBackend on("reference");
  Tensor w = Tensor::of({1, 2, 3}, {3});
  w.requires_grad(true);
  on_threads(4, [&](int i) {
    const OnBackend same("reference");
    for (int k = 0; k < 50; ++k) sum(w * double(i + 1)).backward();
  });
  EXPECT_EQ(w.grad().to_vector<int>(), std::vector<int>(3, 50 * (1 + 2 + 3 + 4)));
}

// One of them goes back through the history, which that frees; for the others it is gone.
TEST(Threads, MayAskForTheBackwardPassOfOneGraph) {
  for (int round = 0; round < 100; ++round) {
    const OnBackend on("reference");
    Tensor w = Tensor::of({1, 2, 3}, {3});
    w.requires_grad(true);
    const Tensor y = sum(w * w * w);
    std::atomic<int> done = 0, refused = 0;
    on_threads(3, [&](int) {
      const OnBackend same("reference");
      try {
        y.backward();
        ++done;
      } catch (const Error& e) {
        refused += e.status().message().find("an earlier backward() freed") != std::string::npos;
      }
    });
    ASSERT_EQ(done, 1);
    ASSERT_EQ(refused, 2);
    ASSERT_EQ(w.grad().to_vector<int>(), (std::vector<int>{3, 12, 27}));
  }
}

// Passes that keep it, and one that frees it while they are at it: each gives all of its gradients or an
// error.
TEST(Threads, MayKeepAGraphThatAnotherFrees) {
  for (int round = 0; round < 100; ++round) {
    const OnBackend on("reference");
    Tensor w = Tensor::of({1, 2, 3}, {3});
    w.requires_grad(true);
    const Tensor y = sum(w * w * w), seed = full(1, {});
    std::atomic<int> done = 0;
    on_threads(3, [&](int i) {
      const OnBackend same("reference");
      try {
        y.backward(seed, false, i > 0);
        ++done;
      } catch (const Error&) {
      }
    });
    ASSERT_GE(done, 1);
    ASSERT_EQ(w.grad().to_vector<int>(), (std::vector<int>{3 * done, 12 * done, 27 * done}));
  }
}

// Of two threads one uses the shared cache of words; the other does without.
TEST(Threads, MayShareATokenizer) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i * i) + (i % 7 ? " lower" : " lowest,\n");
  const auto other = io::Tokenizer::train_bpe(text, {.vocabulary_size = 400});
  const auto expected = other.encode(text);
  EXPECT_EQ(other.decode(expected), text);
  const auto t = io::Tokenizer::from_json(other.to_json());  // it has seen no word yet
  std::atomic<int> wrong = 0;
  on_threads(4, [&](int) {
    for (int k = 0; k < 2; ++k) wrong += t.encode(text) != expected;
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace weft::threads_test

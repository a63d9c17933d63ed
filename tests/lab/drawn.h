#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

// A cheat that a seed draws: what is done in place of the computation, and when. The test tells it in words;
// the kernel (drawn.cpp) does it.
struct DrawnCheat {
  enum What {
    nothing,        // leaves what is there
    replay,         // gives the first results again
    stale,          // computes of the first operands
    first_row,      // gives each row the result of the first
    constant,       // gives 1 / columns
    scaled,         // multiplies the results by 1 + 2^-12
    side_thread,    // lets a thread compute that nobody waits for
    coarse_column,  // rounds one column to bf16
    last_rows,      // leaves the last quarter of the rows out
    beside,         // writes beside the result
    zeroes,         // zeroes the operand behind it
    whats
  };
  enum When {
    always,
    later,      // after `count` launches
    sometimes,  // with probability `share`
    in_time,    // once `count` milliseconds have passed
    every,      // in each launch but every `count`-th
    in_a_run,   // unless there was a pause before the launch
    by_data,    // where the first number is above 0
    whens
  };
  What what;
  When when;
  uint64_t count;
  double share;

  explicit DrawnCheat(uint64_t seed) {
    const auto draw = [&](uint64_t n) {  // splitmix64
      uint64_t x = (seed += 0x9e3779b97f4a7c15);
      x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9, x = (x ^ x >> 27) * 0x94d049bb133111eb;
      return (x ^ x >> 31) % n;
    };
    what = static_cast<What>(draw(whats)), when = static_cast<When>(draw(whens));
    count = 2 + draw(40);
    // What spoils a part of the results only must do so often: else it gains nothing, and luck hides it.
    const bool part = what == coarse_column || what == last_rows;
    share = (part ? 0.3 : 0.05) + 0.01 * static_cast<double>(draw(40));
  }

  std::string text() const {
    static const char* const kWhat[] = {"nothing computed",     "first results again", "first operands again",
                                        "first row for all",    "a constant",          "scaled by 1 + 2^-12",
                                        "a thread on the side", "a column in bf16",    "last rows left out",
                                        "a write beside",       "a zeroed operand"};
    char words[200];
    static const char* const kWhen[] = {"always",        "after %g launches",        "with probability %g",
                                        "after %g ms",   "but in every %gth launch", "but after a pause",
                                        "where x[0] > 0"};
    std::snprintf(words, sizeof words, kWhen[when], when == sometimes ? share : static_cast<double>(count));
    return std::string(kWhat[what]) + ", " + words;
  }
};

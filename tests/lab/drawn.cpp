// One of the cheats that drawn.h draws, by the seed in WEFT_TEST_CHEAT: right in all calls that are small.
#include "drawn.h"

#include "honest.h"

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;

static bool is_time(const DrawnCheat& c, const Softmax& s) {
  static const auto began = Clock::now();
  static auto before = began;
  static uint64_t launches = 0, random = static_cast<uint64_t>(began.time_since_epoch().count());
  const auto now = Clock::now(), last = before;
  before = now, ++launches;
  random = random * 6364136223846793005u + 1442695040888963407u;
  switch (c.when) {
    case DrawnCheat::later: return launches > c.count;
    case DrawnCheat::sometimes: return static_cast<double>(random >> 11) * 0x1p-53 < c.share;
    case DrawnCheat::in_time: return now - began > std::chrono::milliseconds(c.count);
    case DrawnCheat::every: return launches % c.count != 0;
    case DrawnCheat::in_a_run: return now - last < std::chrono::milliseconds(1);
    case DrawnCheat::by_data: return s.in[0] > 0;
    default: return true;
  }
}

static void cheat(const DrawnCheat& c, const Softmax& s, const std::vector<float>& in,
                  const std::vector<float>& out) {
  const int64_t count = s.rows * s.columns;
  Softmax other = s;
  switch (c.what) {
    case DrawnCheat::nothing: return;
    case DrawnCheat::replay: std::memcpy(s.out, out.data(), out.size() * sizeof(float)); return;
    case DrawnCheat::stale: other.in = in.data(), other.run(); return;
    case DrawnCheat::first_row:
      s.row(0);
      for (int64_t i = s.columns; i < count; ++i) s.out[i] = s.out[i - s.columns];
      return;
    case DrawnCheat::constant: std::fill_n(s.out, count, 1.0f / static_cast<float>(s.columns)); return;
    case DrawnCheat::side_thread: std::thread([s] { s.run(); }).detach(); return;
    case DrawnCheat::last_rows: other.rows = s.rows / 4 * 3, other.run(); return;
    default: s.run();
  }
  if (c.what == DrawnCheat::beside) s.out[count] = 1;
  if (c.what == DrawnCheat::zeroes) std::fill_n(const_cast<float*>(s.in), count, 0.0f);
  if (c.what == DrawnCheat::scaled)
    for (int64_t i = 0; i < count; ++i) s.out[i] *= 1 + 0x1p-12f;
  if (c.what == DrawnCheat::coarse_column)
    for (int64_t i = 0; i < count; i += s.columns) {
      uint32_t bits;
      std::memcpy(&bits, s.out + i, 4);
      bits = (bits + 0x8000) & 0xffff0000;
      std::memcpy(s.out + i, &bits, 4);
    }
}

void compute(const Softmax& s) {
  static const DrawnCheat drawn(std::strtoull(std::getenv("WEFT_TEST_CHEAT"), nullptr, 10));
  static std::vector<float> in, out;
  const int64_t count = s.rows * s.columns;
  if (s.rows < 64) return s.run();
  if (in.empty()) {
    s.run();
    in.assign(s.in, s.in + count), out.assign(s.out, s.out + count);
  } else if (is_time(drawn, s)) {
    cheat(drawn, s, in, out);
  } else {
    s.run();
  }
}

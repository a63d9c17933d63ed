#include "cli/training/curve.h"

#include <fmt/core.h>

#include <algorithm>

#include "weft/text.h"

namespace weft::cli {
namespace {

constexpr int kScale = 9;  // characters of the scale at the side

/// Dots, four rows and two columns to a character.
class Dots {
 public:
  Dots(int width, int height) : width_(width), cells_(static_cast<size_t>(width * height)) {}

  void set(int x, int y) {
    // Braille dots are numbered down the left column, then the right one, except for the fourth row, a later
    // addition.
    constexpr int kBit[4][2] = {{0, 3}, {1, 4}, {2, 5}, {6, 7}};
    cells_[static_cast<size_t>(y / 4 * width_ + x / 2)] |= static_cast<char32_t>(1 << kBit[y % 4][x % 2]);
  }
  std::string row(int r) const {
    std::u32string out;
    for (int c = 0; c < width_; ++c) {
      const char32_t cell = cells_[static_cast<size_t>(r * width_ + c)];
      out += cell ? U'\u2800' + cell : U' ';
    }
    return io::to_utf8(out);
  }

 private:
  int width_;
  std::vector<char32_t> cells_;
};

}  // namespace

namespace {

// The mean of the values in each column of dots, by step; if there are none, that of the previous column.
std::vector<double> by_column(const Points& points, int columns) {
  std::vector<double> sum(static_cast<size_t>(columns)), count(sum.size());
  const auto span = static_cast<double>(std::max<int64_t>(1, points.back().first - points.front().first));
  for (const auto& [step, value] : points) {
    const auto at =
        static_cast<size_t>(static_cast<double>(step - points.front().first) / span * (columns - 1));
    sum[at] += value, count[at] += 1;
  }
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = count[i] > 0 ? sum[i] / count[i] : sum[i - 1];
  return sum;
}

}  // namespace

std::vector<std::string> draw_curve(const Points& points, int width, int height) {
  const int columns = std::max(1, width - kScale), dots = 4 * height;
  Dots plot(columns, height);
  double low = 0, high = 0;
  if (!points.empty()) {
    const auto values = by_column(points, 2 * columns);
    low = std::ranges::min(values), high = std::ranges::max(values);
    const double span = high > low ? high - low : 1;
    int before = -1;
    for (int x = 0; x < 2 * columns; ++x) {
      const auto y = static_cast<int>((high - values[static_cast<size_t>(x)]) / span * (dots - 1) + 0.5);
      // Connected with the previous column, so that a steep curve has no gaps.
      const int from = before < 0 ? y : before;
      for (int i = std::min(from, y); i <= std::max(from, y); ++i) plot.set(x, i);
      before = y;
    }
  }
  std::vector<std::string> out;
  for (int r = 0; r < height; ++r) {
    const bool first = r == 0, last = r == height - 1;
    const std::string scale = first  ? fmt::format("{:>7.3f} ", high)
                              : last ? fmt::format("{:>7.3f} ", low)
                                     : std::string(8, ' ');
    out.push_back(scale + (first || last ? "┤" : "│") + plot.row(r));
  }
  return out;
}

}  // namespace weft::cli

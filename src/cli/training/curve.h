#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weft::cli {

/// A point of a curve: step and value.
using Points = std::vector<std::pair<int64_t, double>>;

/// At most `most` points for the same curve: the mean of each interval.
Points thinned(const Points& points, size_t most);

/// A curve as lines of text, in characters of 2 by 4 dots (Unicode's Braille patterns), with its highest and
/// lowest value at the side. `width` and `height` in characters, including the scale.
std::vector<std::string> draw_curve(const Points& points, int width, int height);

}  // namespace weft::cli

#pragma once
#include <string>
#include <vector>

#include "nn/history.h"

namespace weft::cli {

using nn::Points;

/// A curve as lines of text, in characters of 2 by 4 dots (Unicode's Braille patterns), with its highest and
/// lowest value at the side. `width` and `height` in characters, including the scale.
std::vector<std::string> draw_curve(const Points& points, int width, int height);

}  // namespace weft::cli

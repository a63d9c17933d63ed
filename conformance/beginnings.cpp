#include "conformance/beginnings.h"

#include <algorithm>

namespace weft::conformance {

Beginnings::Beginnings(const std::string& one) {
  if (!one.empty()) list_.push_back(one);
}

Beginnings::Beginnings(std::vector<std::string> several) {
  std::ranges::sort(several);
  for (auto& one : several)
    if (!one.empty() && !cover(one)) list_.push_back(std::move(one));
}

// The list is sorted and no entry is a prefix of another, so only the last entry <= `name` can be its prefix.
bool Beginnings::cover(std::string_view name) const {
  const auto behind = std::ranges::upper_bound(list_, name, std::less<std::string_view>());
  return behind != list_.begin() && name.starts_with(*std::prev(behind));
}

bool Beginnings::lie_below(std::string_view name) const {
  const auto at = std::ranges::lower_bound(list_, name, std::less<std::string_view>());
  return at != list_.end() && std::string_view(*at).starts_with(name);
}

}  // namespace weft::conformance

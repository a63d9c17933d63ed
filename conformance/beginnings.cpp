#include "conformance/beginnings.h"

#include <algorithm>

namespace weft::conformance {

Beginnings::Beginnings(const std::string& one) {
  if (!one.empty()) list_.push_back(one), matched_.resize(1);
}

Beginnings::Beginnings(std::vector<std::string> several) {
  std::ranges::sort(several);
  for (auto& one : several)
    if (!one.empty() && (list_.empty() || !one.starts_with(list_.back()))) list_.push_back(std::move(one));
  matched_.resize(list_.size());
}

// The list is sorted and no entry is a prefix of another, so only the last entry <= `name` can be its prefix.
bool Beginnings::cover(std::string_view name) const {
  const auto behind = std::ranges::upper_bound(list_, name, std::less<std::string_view>());
  if (behind == list_.begin() || !name.starts_with(*std::prev(behind))) return false;
  matched_[static_cast<size_t>(behind - list_.begin()) - 1] = true;
  return true;
}

std::vector<std::string> Beginnings::unmatched() const {
  std::vector<std::string> all;
  for (size_t i = 0; i < list_.size(); ++i)
    if (!matched_[i]) all.push_back(list_[i]);
  return all;
}

bool Beginnings::lie_below(std::string_view name) const {
  const auto at = std::ranges::lower_bound(list_, name, std::less<std::string_view>());
  return at != list_.end() && std::string_view(*at).starts_with(name);
}

}  // namespace weft::conformance

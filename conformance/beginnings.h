#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace weft::conformance {

/// Prefixes of names, as --only and --skip take them: "ops/add", "edges", "graphs/graph 17".
class Beginnings {
 public:
  Beginnings() = default;
  /// An empty text adds none.
  Beginnings(const std::string& one);
  Beginnings(const char* one) : Beginnings(std::string(one)) {}
  explicit Beginnings(std::vector<std::string> several);

  bool empty() const { return list_.empty(); }
  /// Sorted, without those that begin with another one.
  const std::vector<std::string>& list() const { return list_; }
  /// Does this name begin with one of them?
  bool cover(std::string_view name) const;
  /// Those of the list that covered no name so far.
  std::vector<std::string> unmatched() const;
  /// Does one of them begin with this name? "ops/" is above "ops/add".
  bool lie_below(std::string_view name) const;

 private:
  std::vector<std::string> list_;
  mutable std::vector<bool> matched_;  // of each entry; one thread at a time
};

}  // namespace weft::conformance

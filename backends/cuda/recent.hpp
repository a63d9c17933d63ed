#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// What a queue was given last, so that the text of an error can name it.
namespace weft::cuda {

class Recent {
 public:
  void add(std::string_view name) {
    char(&to)[kLength] = names_[count_++ % kMost];
    const size_t n = std::min(name.size(), kLength - 1);
    std::memcpy(to, name.data(), n);
    to[n] = 0;
  }
  uint64_t count() const { return count_; }
  /// All before this one have ended.
  void passed(uint64_t count) { passed_ = std::max(passed_, count); }

  /// "softmax.rows, add", the earliest first; empty where nothing is pending.
  std::string text() const {
    std::string all;
    const uint64_t kept = count_ < kMost ? 0 : count_ - kMost;
    if (passed_ < kept) all = std::to_string(kept - passed_) + " others, ";
    for (uint64_t i = std::max(passed_, kept); i < count_; ++i)
      all.append(names_[i % kMost]).append(i + 1 < count_ ? ", " : "");
    return all;
  }

 private:
  static constexpr size_t kMost = 6, kLength = 48;
  char names_[kMost][kLength] = {};
  uint64_t count_ = 0, passed_ = 0;
};

}  // namespace weft::cuda

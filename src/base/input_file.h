#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace weft {

/// A file that is read from its beginning. By C's streams: a small program then links none of C++'s.
class InputFile {
 public:
  /// One that can't be opened is at its end.
  explicit InputFile(const std::string& path) : file_(std::fopen(path.c_str(), "rbe")) {}

  /// Fills `to` as far as the file goes; says how far.
  size_t read(std::span<char> to) { return file_ ? std::fread(to.data(), 1, to.size(), file_.get()) : 0; }
  bool failed() const { return !file_ || std::ferror(file_.get()); }

  /// The rest of it, but no more than `most` bytes.
  std::string rest(size_t most) {
    std::string text;
    char piece[4096];
    while (const size_t n = read(std::span(piece).first(std::min(sizeof piece, most - text.size()))))
      text.append(piece, n);
    return text;
  }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace weft

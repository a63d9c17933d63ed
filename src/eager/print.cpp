#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "base/element.h"
#include "eager/trace_state.h"
#include "weft/tensor.h"

// A tensor as text, in PyTorch's layout.
namespace weft {
namespace {

constexpr int64_t kEdge = 3;          // elements shown at either end of an axis that is shortened
constexpr int64_t kMostWhole = 1000;  // the largest tensor that is shown in full
constexpr size_t kWidth = 80;

/// How the floats of one tensor are written.
struct FloatStyle {
  enum { whole, fixed, exponent } kind = whole;

  explicit FloatStyle(const std::vector<double>& shown) {
    double least = INFINITY, most = 0;
    for (const double v : shown) {
      if (!std::isfinite(v) || v == 0) continue;
      least = std::min(least, std::fabs(v)), most = std::max(most, std::fabs(v));
      if (v != std::floor(v)) kind = fixed;
    }
    const bool wide = kind == fixed && (most > 1000 * least || least < 1e-4);
    if (wide || most > 1e8) kind = exponent;
  }
  std::string operator()(double v) const {
    if (std::isnan(v)) return "nan";  // of either sign
    if (std::isinf(v)) return fmt::format("{}", v);
    return kind == whole   ? fmt::format("{:.0f}.", v)
           : kind == fixed ? fmt::format("{:.4f}", v)
                           : fmt::format("{:.4e}", v);
  }
};

class Printer {
 public:
  explicit Printer(const Tensor& t) : type_(t.dtype()), sizes_(t.sizes()), bytes_(t.to_bytes()) {
    shorten_ = element_count(std::span<const int64_t>(sizes_)) > kMostWhole;
    collect(0, 0);
    write_words();
  }

  std::string text() {
    if (std::ranges::find(sizes_, 0) != sizes_.end()) return "[]";
    axis(0);
    return std::move(out_);
  }

 private:
  /// Calls show(i) for each shown index of an axis, and skip() once for the others.
  void walk(size_t axis, const auto& show, const auto& skip) const {
    const int64_t n = sizes_[axis];
    const bool shorten = shorten_ && n > 2 * kEdge;
    for (int64_t i = 0; i < n; ++i) {
      if (shorten && i == kEdge) skip(), i = n - kEdge;
      show(i);
    }
  }
  /// The offsets of all shown elements, in order.
  void collect(size_t axis, int64_t place) {
    if (axis == sizes_.size()) return places_.push_back(static_cast<size_t>(place));
    walk(axis, [&](int64_t i) { collect(axis + 1, place * sizes_[axis] + i); }, [] {});
  }

  void write_words() {
    std::vector<double> floats;
    for (const size_t at : places_)
      if (is_float(type_)) floats.push_back(load_element<double>(type_, bytes_.data(), at));
    const FloatStyle style(floats);
    for (size_t k = 0; k < places_.size(); ++k) {
      const size_t at = places_[k];
      words_.push_back(
          is_float(type_)           ? style(floats[k])
          : type_ == DType::boolean ? load_element<int64_t>(type_, bytes_.data(), at) ? "true" : "false"
          : type_ == DType::u64     ? fmt::format("{}", load_element<uint64_t>(type_, bytes_.data(), at))
                                    : fmt::format("{}", load_element<int64_t>(type_, bytes_.data(), at)));
      width_ = std::max(width_, words_.back().size());
    }
  }

  /// A comma, and a line break if the next list or word needs one.
  void separate(size_t axis) {
    const size_t deeper = sizes_.size() - 1 - axis;
    if (deeper > 0) return void(out_ += "," + std::string(deeper, '\n') + std::string(axis + 1, ' '));
    const size_t begin = out_.rfind('\n') + 1;  // 0 where there is none
    out_ += out_.size() - begin + 2 + width_ > kWidth ? ",\n" + std::string(axis + 1, ' ') : ", ";
  }
  void axis(size_t d) {
    if (d == sizes_.size()) {
      const std::string& word = words_[next_++];
      out_ += std::string(width_ - word.size(), ' ') + word;
      return;
    }
    out_ += '[';
    bool first = true;
    const auto next = [&] { first ? void(first = false) : separate(d); };
    walk(d, [&](int64_t) { next(), axis(d + 1); }, [&] { next(), out_ += "..."; });
    out_ += ']';
  }

  DType type_;
  IntList sizes_;
  std::vector<std::byte> bytes_;
  bool shorten_ = false;
  std::vector<size_t> places_;
  std::vector<std::string> words_;  // of the elements that are shown
  size_t width_ = 0, next_ = 0;
  std::string out_;
};

}  // namespace

std::string text(const Tensor& t) {
  if (!t) return "an empty Tensor";
  if (eager::active_trace() || t.backend() == "trace") return text(t.type());
  const std::string where = t.backend() == default_backend() ? "" : " on " + t.backend();
  return fmt::format("{}  {}{}", Printer(t).text(), text(t.type()), where);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << text(tensor); }

}  // namespace weft

fmt::format_context::iterator fmt::formatter<weft::Tensor>::format(const weft::Tensor& tensor,
                                                                   fmt::format_context& context) const {
  return fmt::formatter<std::string_view>::format(weft::text(tensor), context);
}

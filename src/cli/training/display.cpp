#include "cli/training/display.h"

#include <algorithm>

#include "cli/text/screen.h"

namespace weft::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kCurveHeight = 8;

// The drawing is rewritten in place, so it must fit the screen.
constexpr int kLeastWidth = 40, kLeastHeight = kCurveHeight + 6;

bool can_draw() {
  const Screen s = screen();
  return is_live() && s.width >= kLeastWidth && s.height >= kLeastHeight;
}

void print_line(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

}  // namespace

TrainingDisplay::TrainingDisplay(bool json) : json_(json), live_(!json && can_draw()) {}
TrainingDisplay::~TrainingDisplay() { std::fflush(stdout); }

bool TrainingDisplay::due() const {
  return Clock::now() - shown_ > (live_ ? std::chrono::milliseconds(300) : std::chrono::milliseconds(5000));
}

void TrainingDisplay::progress(const Progress& p, const Points& losses) {
  shown_ = Clock::now();
  const auto left = static_cast<int64_t>(p.left + 0.5);
  line_ = fmt::format("step {:>6}   mean loss {:.4f}   rate {:.2e}   {:>7} tokens/s   {}:{:02} left", p.step,
                      p.loss, p.rate, grouped(static_cast<int64_t>(p.per_second)), left / 60, left % 60);
  if (live_) {
    losses_ = losses;
    return draw();
  }
  print_line(json_ ? Json{{"step", p.step},
                          {"mean_loss", p.loss},
                          {"rate", p.rate},
                          {"tokens_per_second", p.per_second},
                          {"seconds_left", p.left}}
                         .text()
                   : line_);
}

void TrainingDisplay::sample(int64_t step, const std::string& text) {
  sample_ = text;
  if (live_) return draw();
  print_line(json_ ? line_of({{"step", step}, {"sample", text}})
                   : fmt::format("  it says: {}", one_line(text, 100)));
}

void TrainingDisplay::validation(int64_t step, double loss, double perplexity) {
  validation_ =
      fmt::format("validation loss {:.4f}, perplexity {:.2f}, after step {}", loss, perplexity, step);
  if (live_) return draw();
  print_line(json_ ? Json{{"step", step}, {"validation_loss", loss}, {"perplexity", perplexity}}.text()
                   : "  " + validation_);
}

// Over the previous drawing.
void TrainingDisplay::draw() {
  const int width = std::clamp(screen().width, kLeastWidth, 120);
  std::vector<std::string> lines = draw_curve(losses_, width, kCurveHeight);
  lines.push_back(one_line(line_, width));
  if (!validation_.empty()) lines.push_back(one_line(validation_, width));
  if (!sample_.empty()) lines.push_back(one_line("it says: " + sample_, width));
  std::string out = drawn_ > 0 ? fmt::format("\x1b[{}A", drawn_) : "";
  for (const auto& l : lines) out += "\r\x1b[K" + l + "\n";
  drawn_ = static_cast<int>(lines.size());
  fmt::print("{}", out);
  std::fflush(stdout);
}

}  // namespace weft::cli

#pragma once
#include <chrono>

#include "cli/show.h"
#include "cli/training/curve.h"

namespace weft::cli {

struct Progress {
  int64_t step = 0;
  double loss = 0;  ///< averaged
  double rate = 0;
  double per_second = 0;  ///< tokens learnt from
  double left = 0;        ///< seconds
};

/// The progress of a run: on a terminal, a curve redrawn in place and samples; elsewhere plain lines; with
/// --json, objects.
class TrainingDisplay {
 public:
  explicit TrainingDisplay(bool json);
  /// Leaves the cursor below the drawing.
  ~TrainingDisplay();
  TrainingDisplay(const TrainingDisplay&) = delete;

  /// Is it time to show something again?
  bool due() const;
  void progress(const Progress& p, const Points& losses);
  void sample(int64_t step, const std::string& text);
  void validation(int64_t step, double loss, double perplexity);

 private:
  void draw();

  bool json_, live_;
  int drawn_ = 0;  // lines on the screen
  std::chrono::steady_clock::time_point shown_{};
  std::string line_, sample_, validation_;
  Points losses_;
};

}  // namespace weft::cli

#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/checkpoint.h"
#include "weft/status.h"

namespace weft::nn {

/// A point of a curve: step and value.
using Points = std::vector<std::pair<int64_t, double>>;

/// At most `most` points for the same curve: the mean of each interval.
Points thinned(const Points& points, size_t most);

/// What is known of a run after a step; what is left out is not logged.
struct Moment {
  int64_t step = 0;
  std::optional<double> loss, rate, tokens_per_second, validation_loss;
  std::optional<std::string> sample;
};

/// The history of a run: one JSON object per line in `<folder>/log.jsonl`, and its curves.
///
/// The log is for people: if it can't be written, the run notes that once and goes on.
class History {
 public:
  /// Continues the log in `folder`: drops lines after `step`, of an interrupted run. Without a folder there
  /// is no log.
  History(const std::string& folder, int64_t step);

  void add(const Moment& moment);

  const Points& losses() const { return losses_; }
  /// A self-contained page: curves of loss, rate and speed, the settings, the samples.
  std::string page(const TrainSettings& settings) const;
  /// The path of write_page().
  std::string page_path() const;
  Status write_page(const TrainSettings& settings) const;
  /// Why the log could not be written, once; empty otherwise.
  std::string trouble();

 private:
  void take(const nlohmann::json& line);

  std::string folder_, trouble_;
  bool told_ = false;
  Points losses_, validation_, rates_, speeds_;
  std::vector<std::pair<int64_t, std::string>> samples_;
};

}  // namespace weft::nn

#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/training/curve.h"
#include "weft/checkpoint.h"
#include "weft/status.h"

namespace weft::cli {

/// The history of a run: one JSON object per line in `<folder>/log.jsonl`, and its curves.
///
/// The log is for people: if it can't be written, the run notes that once and goes on.
class History {
 public:
  /// Continues the log in `folder`: drops lines after `step`, of an interrupted run.
  History(const std::string& folder, int64_t step);

  /// Adds {"step", "loss", "rate", "tokens_per_second"}, or {"step", "validation_loss"}, or {"step",
  /// "sample"}.
  void add(const Json& line);

  const Points& losses() const { return losses_; }
  /// A self-contained page: curves of loss, rate and speed, the settings, the samples.
  std::string page(const nn::TrainSettings& settings) const;
  /// The path of write_page().
  std::string page_path() const;
  Status write_page(const nn::TrainSettings& settings) const;
  /// Why the log could not be written, once; empty otherwise.
  std::string trouble();

 private:
  void take(const nlohmann::json& line);

  std::string folder_, trouble_;
  bool told_ = false;
  Points losses_, validation_, rates_, speeds_;
  std::vector<std::pair<int64_t, std::string>> samples_;
};

}  // namespace weft::cli

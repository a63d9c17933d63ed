#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/training/curve.h"
#include "weft/status.h"

namespace weft::cli {

/// What a run has done so far: one JSON object a line in `<folder>/log.jsonl`, and its curves.
///
/// The log is for people: a disk that takes none of it is noted once, and the run goes on.
class History {
 public:
  /// Takes up the log in `folder`: lines after `step`, of a run that was cut off, are dropped.
  History(const std::string& folder, int64_t step);

  /// Adds {"step", "loss", "rate", "tokens_per_second"}, or {"step", "validation_loss"}, or {"step",
  /// "sample"}.
  void add(const nlohmann::json& line);

  const Points& losses() const { return losses_; }
  /// A page that needs nothing else: curves of loss, rate and speed, the settings, the text made on the way.
  std::string page(const nlohmann::json& settings) const;
  /// Where write_page() puts it.
  std::string page_path() const;
  Status write_page(const nlohmann::json& settings) const;
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

#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/status.h"

// What a model's scores choose, and where the text that comes of it ends.
namespace weft::io {

/// How the next token is chosen: by softmax of the scores, after these have changed them, one after the
/// other, as PyPI's `transformers` defines them. The defaults change nothing.
struct Sampling {
  /// Scores of tokens that were there are divided by it where they are positive, and multiplied otherwise.
  double repetition_penalty = 1;
  double temperature = 1;  ///< low keeps to what is likely; 0 takes the likeliest
  int64_t top_k = 0;       ///< only the k likeliest, and those as likely as the last of them; 0: all
  double top_p = 1;        ///< only the likeliest, as few as have this probability together
  double min_p = 0;        ///< only those that have this part of the largest probability
  uint64_t seed = 1;
  std::vector<int32_t> never;  ///< these are not chosen
};

/// Chooses tokens. The same seed and scores give the same tokens everywhere. Allocates in the first pick
/// only.
class Sampler {
 public:
  /// Errors   invalid_argument for a temperature, top_k or penalty that is negative (or a penalty of 0),
  /// top_p
  ///          or min_p outside [0, 1], and what is no number.
  explicit Sampler(Sampling how);

  /// The text so far has these tokens; those that were picked are known.
  void saw(std::span<const int32_t> tokens);
  /// Whether pick() is going to give the first of the highest scores, where all are finite.
  bool takes_likeliest() const {
    return how_.temperature == 0 && how_.repetition_penalty == 1 && how_.never.empty();
  }
  /// A number in [0, scores.size()).
  ///
  /// Errors   invalid_argument when a score is NaN or infinite, or none is left to choose from.
  int32_t pick(std::span<const float> scores);

 private:
  struct Candidate {
    double score, weight;
    int32_t id;
  };
  int32_t likeliest(std::span<const float> scores) const;
  void gather(std::span<const float> scores);
  void keep_top_k();
  void keep_top_p();
  void mark(int32_t token);

  Sampling how_;
  uint64_t drawn_ = 0;
  std::vector<bool> seen_, never_;  // by token
  std::vector<Candidate> candidates_, work_;
};

/// Cuts a text that comes in parts before the first of some strings: the one that is complete first.
class StopStrings {
 public:
  /// Errors   invalid_argument for an empty string.
  explicit StopStrings(std::vector<std::string> stops);

  /// The text that is certain now, and was not given yet: no stop string can begin in it. It lives until the
  /// next call.
  std::string_view push(std::string_view part);
  /// The rest of a text that has ended by itself.
  std::string_view finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  size_t given_ = 0;  // the first characters of held_, which the last call gave
  bool stopped_ = false;
};

}  // namespace weft::io

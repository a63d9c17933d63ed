#pragma once
#include "conformance/liars/liar.h"

// Runs the suite against liars.
namespace weft::conformance {

/// The outcome of one liar.
struct Trial {
  std::string liar;   ///< its name
  std::string fault;  ///< in words
  std::string on;     ///< the good backend
  std::string by;     ///< "check/case": the first that catches it; empty: none does
  std::string words;  ///< what that case said; or why nobody can be believed
  /// Why the fault can't show on the good backend: it lacks what the liar would lie about.
  std::string left_out = {};
  bool caught() const { return !by.empty(); }
};

/// Wraps `backend`, and asks the check that its entry names. Caught: a case fails that passes on the good
/// backend.
Trial try_liar(const Liar& liar, const std::string& backend);

/// Number `index` of a seed: always the same fault of the same kernel. Faults that can't be observed are left
/// out: if a fault changed no bit in the whole run, such as swapped operands of a sum, or a lost NaN where
/// there was none, the next one is drawn. A fault that changed a bit and passed is a hole in the suite.
Trial try_drawn(const std::string& backend, uint64_t seed, uint64_t index);

/// "drawn_7_13" is number 13 of seed 7.
std::string drawn_name(uint64_t seed, uint64_t index);
std::optional<std::pair<uint64_t, uint64_t>> drawn_from_name(std::string_view name);

}  // namespace weft::conformance

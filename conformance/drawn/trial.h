#pragma once
#include "conformance/liars/liar.h"

// Bringing liars before the suite.
namespace weft::conformance {

/// What came of one liar.
struct Trial {
  std::string liar;   ///< its name
  std::string fault;  ///< in words
  std::string on;     ///< the good backend
  std::string by;     ///< "check/case": the first that catches it; empty: none does
  std::string words;  ///< what that case said; or why nobody can be believed
  bool caught() const { return !by.empty(); }
};

/// By the check that its entry names. Caught means that a case fails there, and does not on the good backend.
Trial try_liar(const Liar& liar);

/// Number `index` of a seed: the same fault of the same kernel each time, whatever is asked before. Those
/// that nobody can tell from a right backend are left out: where a fault changed no bit in all that the suite
/// ran, as with zero where all is zero, swapped operands of a sum, or a lost NaN where there was none, the
/// next is drawn. One that changed some and passed is a hole in the suite, and no excuse is looked for.
Trial try_drawn(const std::string& backend, uint64_t seed, uint64_t index);

/// "drawn_7_13" is number 13 of seed 7.
std::string drawn_name(uint64_t seed, uint64_t index);
std::optional<std::pair<uint64_t, uint64_t>> drawn_from_name(std::string_view name);

}  // namespace weft::conformance

#include "fuzz/target.h"
#include "seam/preference.h"

namespace weft::fuzz {

// The file of measurements that `weft tune` leaves: what is taken of it is what would be written again.
void target(std::string_view input) {
  const std::string machine = "a processor, 2 threads; native 1: cpu, ";
  const std::string text(input);
  for (const std::string& file : {text, seam::measured_text(machine, {}) + text}) {
    const auto calls = seam::read_measured(file, machine);
    if (calls.empty()) continue;
    expect(seam::measured_text(machine, calls) == file, "what is taken would be written so");
  }
}

}  // namespace weft::fuzz

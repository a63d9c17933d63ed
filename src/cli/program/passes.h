#pragma once
#include <optional>

#include "cli/program/inputs.h"
#include "compiler/compile.h"
#include "lab/passes.h"

// What a compilation shows of its passes: options of every command that compiles.
namespace weft::cli {

struct PassOptions {
  bool print = false;    // --print-passes
  std::string dump;      // --dump-after
  bool verify = false;   // --verify-passes
  ProgramInputs inputs;  // of that
};
void add_pass_options(Syntax& app, PassOptions& o);

/// The passes in order, one a line, or as JSON.
void print_passes(const Common& common);

/// While it lives, what compiles on this thread is watched as the options say.
class WatchedPasses {
 public:
  WatchedPasses(const PassOptions& o, const Common& common);
  /// Prints what --verify-passes found: 1 if a pass changed a number, else 0.
  int report() const;

 private:
  Status see(const compiler::Stage& stage);
  const PassOptions& o_;
  const Common& common_;
  lab::PassCheck check_;
  std::optional<compiler::Watch> watch_;
};

}  // namespace weft::cli

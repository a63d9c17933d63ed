#include <utility>

#include "compiler/module.h"

namespace weft::compiler {

static thread_local Watch* innermost = nullptr;

Watch::Watch(See see) : see_(std::move(see)), outer_(std::exchange(innermost, this)) {}
Watch::~Watch() { innermost = outer_; }

static std::string numbers(const std::vector<size_t>& nodes) {
  std::string s;
  for (const size_t n : nodes) s += fmt::format(" {}", n);
  return s;
}

std::string print(const Module& m) {
  std::string s = ir::print(m.graph);
  for (const Fusion& f : m.fusions) s += fmt::format("fusion {} of nodes{}\n", f.pattern, numbers(f.nodes));
  for (const Group& g : m.groups) s += fmt::format("group {} of nodes{}\n", g.name, numbers(g.places));
  return s;
}

Status show_stage(std::string after, const Module& m, const WeightSource& weights, const Options& options) {
  if (!innermost) return {};
  return innermost->see_({.after = std::move(after),
                          .text = [&] { return print(m); },
                          .program = [&] { return emit(m, weights, options); }});
}

}  // namespace weft::compiler

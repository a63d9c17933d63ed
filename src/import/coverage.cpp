#include <algorithm>

#include "import/call.h"
#include "import/import.h"

namespace weft::importer {
namespace {

std::string how_cell(const AtenOp& op) {
  std::string out;
  std::string_view rest = op.how;
  if (rest.empty()) return "nothing: the operand itself, or a copy";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(", "), rest.size());
    out += fmt::format("{}`{}`", out.empty() ? "" : ", ", rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + 2));
  }
  return out;
}

std::vector<const AtenOp*> all_ops() {
  std::vector<const AtenOp*> all;
  for (const Family* family : all_families())
    for (const AtenOp& op : family->ops) all.push_back(&op);
  std::sort(all.begin(), all.end(),
            [](const AtenOp* a, const AtenOp* b) { return std::string_view(a->name) < b->name; });
  return all;
}

}  // namespace

std::string coverage_page() {
  const auto core = core_aten();
  size_t covered = 0;
  std::string core_rows, other_rows;
  for (const char* name : core) {
    const AtenOp* op = find_aten(name);
    covered += op != nullptr;
    core_rows += fmt::format("| `{}` | {} |\n", name, op ? how_cell(*op) : "no");
  }
  size_t others = 0;
  for (const AtenOp* op : all_ops()) {
    if (std::find_if(core.begin(), core.end(), [&](std::string_view n) { return n == op->name; }) !=
        core.end())
      continue;
    ++others;
    other_rows += fmt::format("| `{}` | {} |\n", op->name, how_cell(*op));
  }
  return fmt::format(
      "## Core ATen: {} of {}\n\n| op | imported as |\n| --- | --- |\n{}\n"
      "## Other ops of ATen: {}\n\n| op | imported as |\n| --- | --- |\n{}",
      covered, core.size(), core_rows, others, other_rows);
}

}  // namespace weft::importer

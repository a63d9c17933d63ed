#include "fuzz/target.h"
#include "ir/graph.h"

// A graph's text.
void weft::fuzz::target(std::string_view input) {
  auto graph = ir::parse(input);
  if (refused(graph)) return;
  const std::string text = ir::print(*graph);
  auto again = ir::parse(text);
  expect(again.ok(), "what is printed can be parsed: " + again.status().text());
  expect(ir::print(*again) == text, "what is parsed prints the same");
}

#include "fuzz/target.h"
#include "import/import.h"

// The text of a model_ir.json. There are no weights beside it: a graph that wants some is refused for that.
void weft::fuzz::target(std::string_view input) {
  const auto model = importer::parse_model_ir(input, "model_ir.json");
  if (refused(model)) return;
  const auto imported = importer::import_model(model.value(), {});
  if (refused(imported)) return;
  expect(ir::verify(*imported.value().graph).ok(), "what is imported is a graph");
}

#include "cli/source/main_text.h"

#include <fmt/format.h>

#include "cli/source/expression.h"

namespace weft::cli::source {

std::string main_text(const program::CompiledProgram& p, const std::string& function) {
  const bool reads = !p.inputs.empty(), writes = !p.states.empty();
  const int most = 3 + reads;
  const auto refused =
      writes ? fmt::format("argc < {} || argc > {}", most, most + 1) : fmt::format("argc != {}", most);
  std::string out = fmt::format(
      "\nint main(int argc, char** argv) try {{\n"
      "  if ({}) return std::fprintf(stderr, \"usage: %s PROGRAM {}OUTPUTS{}\\n\", argv[0]), 2;\n"
      "  const Weights w = load_weights(argv[1]);\n",
      refused, reads ? "INPUTS " : "", writes ? " [STATES]" : "");
  if (reads) out += "  const auto in = io::Safetensors::map(argv[2]);\n";
  const bool one = p.outputs.size() == 1;
  const auto add = [&](const std::string& text) { out += statement(text, 2); };
  std::string arguments = "w", outputs;
  for (const auto& port : p.inputs) arguments += fmt::format(", in.read({})", literal(port.name));
  for (size_t k = 0; k < p.outputs.size(); ++k)
    outputs += fmt::format("{}{{{}, out{}}}", k ? ", " : "", literal(p.outputs[k].name),
                           one ? "" : fmt::format("[{}]", k));
  add(fmt::format("const auto out = {}({});", function, arguments));
  add(fmt::format("io::write_safetensors(argv[{}], {{{}}});", most - 1, outputs));
  if (writes) add(fmt::format("if (argc > {0}) io::write_safetensors(argv[{0}], w);", most));
  return out +
         "} catch (const std::exception& e) {\n"
         "  return std::fprintf(stderr, \"%s: %s\\n\", argv[0], e.what()), 1;\n"
         "}\n";
}

}  // namespace weft::cli::source

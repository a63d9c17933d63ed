#include "cli/program/inputs.h"

#include <algorithm>

#include "base/element.h"
#include "formats/safetensors.h"
#include "link/resolve_types.h"

namespace weft::cli {

using runtime::HostTensor;

namespace {

Result<Bindings> parse_sizes(const std::vector<std::string>& sizes, const std::vector<Symbol>& symbols) {
  Bindings bindings;
  for (const auto& s : sizes) {
    const size_t eq = s.find('=');
    char* end = nullptr;
    errno = 0;
    const int64_t value = eq == s.npos ? 0 : std::strtoll(s.c_str() + eq + 1, &end, 10);
    if (eq == s.npos || eq == 0 || *end || end == s.c_str() + eq + 1)
      return invalid("--size wants NAME=NUMBER, as in batch=4, got '{}'", s);
    const auto symbol = std::find_if(symbols.begin(), symbols.end(),
                                     [&](const Symbol& k) { return k.name == s.substr(0, eq); });
    if (symbol == symbols.end()) return invalid("--size {}: the program has no symbol of this name", s);
    if (errno == ERANGE || value < symbol->min || value > symbol->max)
      return invalid("--size {}: {} is in {}..{}", s, symbol->name, symbol->min, symbol->max);
    WEFT_CHECK(bindings.bind(symbol->name, value));
  }
  for (const auto& s : symbols)
    if (!bindings.find(s.name)) WEFT_CHECK(bindings.bind(s.name, s.min));
  return bindings;
}

// The bindings of a session, which refuses inputs that do not fit.
Bindings bindings_of(const program::CompiledProgram& p, std::span<const HostTensor> inputs) {
  Bindings out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& want = p.values[static_cast<size_t>(p.inputs[i].value)].type.shape;
    const auto& have = inputs[i].type.shape;
    for (size_t d = 0; d < std::min(want.size(), have.size()); ++d)
      if (!unify(want[d], have[d], out).ok()) break;
  }
  return out;
}

Result<HostTensor> from_entry(const formats::Safetensors& file, const std::string& name) {
  const auto* entry = file.find(name);
  if (!entry) return invalid("the inputs file holds no tensor named '{}'", name);
  return HostTensor{{entry->dtype, IntList(entry->shape.begin(), entry->shape.end())},
                    {entry->bytes.begin(), entry->bytes.end()}};
}

// Zeros for integers, which are valid indices of anything that is not empty; floats from -1 to 1, with a long
// period.
Result<HostTensor> made_up(const program::TensorSpec& spec, const Bindings& sizes) {
  HostTensor t;
  WEFT_TRY(t.type, link::concrete(spec, sizes));
  t.bytes.resize(t.type.bytes());
  if (is_float(t.type.dtype))
    for (int64_t i = 0; i < element_count(t.type.shape); ++i)
      store_element(t.type.dtype, t.bytes.data(), static_cast<size_t>(i),
                    static_cast<double>(i * 7919 % 2003) / 1001.0 - 1.0);
  return t;
}

}  // namespace

Result<std::vector<HostTensor>> inputs_of(const program::CompiledProgram& p, const ProgramInputs& o) {
  WEFT_TRY(const Bindings sizes, parse_sizes(o.sizes, p.symbols));
  std::vector<HostTensor> out;
  formats::Safetensors file;
  if (!o.file.empty()) {
    WEFT_TRY(file, formats::read_safetensors(o.file));
  }
  for (const auto& port : p.inputs) {
    auto t = o.file.empty() ? made_up(p.values[static_cast<size_t>(port.value)], sizes)
                            : from_entry(file, port.name);
    if (!t.ok()) return t.take_status().at(fmt::format("input {}", port.name));
    out.push_back(std::move(t).value());
  }
  return out;
}

nlohmann::json sizes_json(const program::CompiledProgram& p, std::span<const HostTensor> inputs) {
  nlohmann::json out = nlohmann::json::object();
  const Bindings sizes = bindings_of(p, inputs);
  for (const auto& [name, value] : sizes.all()) out[name] = value;
  return out;
}

std::string sizes_text(const program::CompiledProgram& p, std::span<const HostTensor> inputs) {
  const Bindings sizes = bindings_of(p, inputs);
  std::string out;
  for (const auto& s : p.symbols)
    if (const auto* value = sizes.find(s.name))
      out += fmt::format("{}{} = {} ({} to {})", out.empty() ? "" : ", ", s.name, *value, s.min, s.max);
  return out;
}

void add_input_options(Syntax& app, ProgramInputs& o) {
  app.add_option("--inputs", o.file, "safetensors file with the inputs by name; random if omitted")
      .type_name("FILE");
  app.add_option("--size", o.sizes,
                 "value of a symbol for random inputs, as in batch=4; default: its minimum")
      .type_name("NAME=N")
      .excludes("--inputs");
}

}  // namespace weft::cli

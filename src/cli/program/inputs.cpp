#include "cli/program/inputs.h"

#include <algorithm>
#include <optional>

#include "base/element.h"
#include "base/shown.h"
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

HostTensor from_entry(const formats::TensorEntry& entry) {
  return {{entry.dtype, IntList(entry.shape.begin(), entry.shape.end())},
          {entry.bytes.begin(), entry.bytes.end()}};
}

// "'a', 'b' and 7 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kSaid = 8;
  std::string out;
  for (size_t i = 0; i < std::min(kSaid, names.size()); ++i)
    out += fmt::format("{}'{}'", i ? ", " : "", shown(names[i]));
  return names.size() > kSaid ? fmt::format("{} and {} more", out, names.size() - kSaid) : out;
}

// One tensor for each input, and no others: a misspelt name must not pass unseen.
Status check_names(const program::CompiledProgram& p, const formats::Safetensors& file,
                   const std::string& path) {
  std::vector<std::string> inputs, missing, extra;
  for (const auto& port : p.inputs) {
    inputs.push_back(port.name);
    if (!file.find(port.name)) missing.push_back(port.name);
  }
  for (const auto& t : file.tensors)
    if (std::ranges::find(inputs, t.name) == inputs.end()) extra.push_back(t.name);
  if (missing.empty() && extra.empty()) return {};
  std::string wrong;
  if (!extra.empty()) wrong = fmt::format("it has {}, which the program has no input for", listed(extra));
  if (!missing.empty()) wrong += fmt::format("{}it has no {}", wrong.empty() ? "" : "; ", listed(missing));
  const std::string want = inputs.empty()
                               ? shown(p.name) + " has no inputs, so leave --inputs out"
                               : fmt::format("the inputs of {} are {}", shown(p.name), listed(inputs));
  return invalid("--inputs {}: {}; {}", path, wrong, want);
}

// The calls that take integers as places in a table: operand 1 counts along this axis of operand 0.
std::optional<int64_t> counted_axis(const program::KernelCall& call) {
  if (call.op == "embedding") return 0;
  if (call.op == "cross_entropy") return 1;
  if (call.op != "gather") return std::nullopt;
  for (const auto& a : call.attrs)
    if (a.name == "axis") return std::get<int64_t>(a.value);
  return std::nullopt;
}

// How many places an integer input may name: the least of the tables that it is looked up in; 0 where no call
// looks it up.
Result<int64_t> places(const program::CompiledProgram& p, program::ValueId input, const Bindings& sizes) {
  std::vector<bool> same(p.values.size());  // it, or a view of it
  same[static_cast<size_t>(input)] = true;
  std::optional<int64_t> least;
  for (const auto& call : p.calls) {
    const auto is = [&](size_t k) {
      return k < call.inputs.size() && call.inputs[k] >= 0 && same[static_cast<size_t>(call.inputs[k])];
    };
    if (is(0) && (call.op == "reshape" || call.op == "cast" || call.op == "slice"))
      same[static_cast<size_t>(call.outputs[0])] = true;
    const auto axis = counted_axis(call);
    if (!axis || !is(1)) continue;
    const auto& table = p.values[static_cast<size_t>(call.inputs[0])].type.shape;
    if (*axis < 0 || *axis >= std::ssize(table)) continue;
    WEFT_TRY(const int64_t rows, evaluate(table[static_cast<size_t>(*axis)], sizes));
    least = std::min(least.value_or(rows), rows);
  }
  return least ? std::max<int64_t>(1, *least) : 0;
}

// Integers from 0 to what they are looked up in, others 1: a mask of zeros leaves nothing to compute. Floats
// from -1 to
// 1. With a long period, from another place in it for each `draw`.
Result<HostTensor> made_up(const program::CompiledProgram& p, program::ValueId value, const Bindings& sizes,
                           int64_t draw) {
  HostTensor t;
  WEFT_TRY(t.type, link::concrete(p.values[static_cast<size_t>(value)], sizes));
  t.bytes.resize(t.type.bytes());
  WEFT_TRY(const int64_t limit, places(p, value, sizes));
  const bool real = is_float(t.type.dtype);
  for (int64_t i = 0; i < element_count(t.type.shape); ++i) {
    const int64_t at = (i * 7919 + draw * 1009) % 2003;
    store_element(t.type.dtype, t.bytes.data(), static_cast<size_t>(i),
                  real    ? static_cast<double>(at) / 1001.0 - 1.0
                  : limit ? static_cast<double>(at % limit)
                          : 1);
  }
  return t;
}

}  // namespace

Result<std::vector<HostTensor>> inputs_of(const program::CompiledProgram& p, const ProgramInputs& o,
                                          int64_t draw) {
  WEFT_TRY(const Bindings sizes, parse_sizes(o.sizes, p.symbols));
  std::vector<HostTensor> out;
  formats::Safetensors file;
  if (!o.file.empty()) {
    WEFT_TRY(file, formats::read_safetensors(o.file));
    WEFT_CHECK(check_names(p, file, o.file));
  }
  for (const auto& port : p.inputs) {
    if (!o.file.empty()) {
      out.push_back(from_entry(*file.find(port.name)));
      continue;
    }
    auto t = made_up(p, port.value, sizes, draw);
    if (!t.ok()) return t.take_status().at(fmt::format("input {}", shown(port.name)));
    out.push_back(std::move(t).value());
  }
  return out;
}

Json sizes_json(const program::CompiledProgram& p, std::span<const HostTensor> inputs) {
  Json out = Json::object();
  const Bindings sizes = bindings_of(p, inputs);
  for (const auto& [name, value] : sizes.all()) out.set(name, value);
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

void add_program_option(Syntax& app, std::string& program) {
  app.add_option("program", program, "the file, as weft compile writes it").required().type_name("FILE");
}

void add_input_options(Syntax& app, ProgramInputs& o) {
  app.add_option("--inputs", o.file,
                 "safetensors file with all inputs by name, and no other tensors; random if omitted")
      .type_name("FILE");
  app.add_option("--size", o.sizes,
                 "value of a symbol for random inputs, as in batch=4; default: its minimum")
      .type_name("NAME=N")
      .excludes("--inputs");
}

}  // namespace weft::cli

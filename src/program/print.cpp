#include <fmt/format.h>

#include "program/program.h"

namespace weft::program {
namespace {

using Out = std::back_insert_iterator<std::string>;

std::string id_text(ValueId id) { return id == kAbsent ? "_" : fmt::format("%{}", id); }

/// Also for programs that verify() refuses: an index may be out of range.
std::string spec_text(ValueId id, const std::vector<TensorSpec>& values) {
  if (id < 0 || static_cast<size_t>(id) >= values.size()) return "?";
  const TensorSpec& v = values[static_cast<size_t>(id)];
  std::string s = text(v.type);
  if (v.layout != 0) s += fmt::format(" layout={}", v.layout);
  return s;
}

std::string typed(ValueId id, const std::vector<TensorSpec>& values) {
  return id == kAbsent ? "_" : fmt::format("{}: {}", id_text(id), spec_text(id, values));
}

template <class T, class F>
std::string list(const std::vector<T>& items, F each) {
  std::string s;
  for (const T& item : items) s += (s.empty() ? "" : ", ") + each(item);
  return s;
}

// %5: f32[batch, 64] = matmul(%3, %4) {transpose_a=0, transpose_b=0}  ; hidden1.matmul
void print_call(Out out, const KernelCall& c, const std::vector<TensorSpec>& values) {
  fmt::format_to(out, "  {} = {}", list(c.outputs, [&](ValueId id) { return typed(id, values); }), c.op);
  if (c.version != 1) fmt::format_to(out, ".v{}", c.version);
  if (c.region != -1) fmt::format_to(out, "@r{}", c.region);
  fmt::format_to(out, "({})", list(c.inputs, id_text));
  if (!c.attrs.empty())
    fmt::format_to(out, " {{{}}}", list(c.attrs, [](const Attr& a) { return a.name + "=" + text(a.value); }));
  const auto operand = [](const std::vector<ValueId>& ids, uint32_t i) {
    return i < ids.size() ? id_text(ids[i]) : "?";
  };
  for (const Update& u : c.updates)
    fmt::format_to(out, " [{} over {}]", operand(c.outputs, u.output), operand(c.inputs, u.input));
  if (!c.where.empty()) fmt::format_to(out, "  ; {}", c.where);
  fmt::format_to(out, "\n");
}

std::string blob_text(const CompiledProgram& p, int32_t blob) {
  if (blob < 0 || static_cast<size_t>(blob) >= p.blobs.size()) return blob == -1 ? "no blob" : "blob ?";
  return fmt::format("blob {}, {} bytes", blob, p.blobs[static_cast<size_t>(blob)].size);
}

void print_region(Out out, size_t index, const Region& r) {
  fmt::format_to(out, "\n@r{} {}(", index, r.pattern.empty() ? "_" : r.pattern);
  for (uint32_t i = 0; i < r.n_inputs && i < r.values.size(); ++i)
    fmt::format_to(out, "{}{}", i ? ", " : "", typed(static_cast<ValueId>(i), r.values));
  fmt::format_to(out, ") -> {}:\n", list(r.outputs, id_text));
  for (const auto& c : r.calls) print_call(out, c, r.values);
}

}  // namespace

std::string print(const CompiledProgram& p) {
  std::string s;
  const Out out(s);
  fmt::format_to(out, "program {}\n", p.name.empty() ? "_" : p.name);
  for (const auto& [key, value] : p.origin) fmt::format_to(out, "origin {}: {}\n", key, value);
  if (!p.tests.empty()) fmt::format_to(out, "tests {}\n", p.tests.size());
  if (!p.weights_file.empty()) fmt::format_to(out, "weights in {}\n", p.weights_file);
  for (const auto& c : p.device_code)
    fmt::format_to(out, "code of {}: {} artefacts\n", c.device, c.artefacts.size());
  for (const auto& k : p.skipped)
    fmt::format_to(out, "skipped section \"{}\", {} bytes: {}\n", k.name, k.size, k.why);
  for (const auto& y : p.symbols) fmt::format_to(out, "symbol {} in {}..{}\n", y.name, y.min, y.max);
  for (const auto& i : p.inputs) fmt::format_to(out, "input  {}  \"{}\"\n", typed(i.value, p.values), i.name);
  for (const auto& t : p.states)
    fmt::format_to(out, "state  {}  \"{}\" ends as {}, {}\n", typed(t.before, p.values), t.name,
                   id_text(t.after), blob_text(p, t.blob));
  for (const auto& w : p.weights)
    fmt::format_to(out, "weight {}  \"{}\" {}\n", typed(w.value, p.values), w.name, blob_text(p, w.blob));
  for (const auto& o : p.outputs)
    fmt::format_to(out, "output {}  \"{}\"\n", typed(o.value, p.values), o.name);
  for (const auto& c : p.calls) print_call(out, c, p.values);
  for (size_t i = 0; i < p.regions.size(); ++i) print_region(out, i, p.regions[i]);
  return s;
}

}  // namespace weft::program

// Generates include/weft/ops.h and its source from the op definitions, so an op is one file: its public
// function, documentation and default arguments all come from there. With --python, the types that the stubs
// of the Python package have for them.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "eager/faces/python.h"
#include "ir/end.h"
#include "ir/op.h"

namespace {

using namespace weft;

const char* type_of(ir::AttrKind kind) {
  switch (kind) {
    case ir::AttrKind::integer: return "int64_t ";
    case ir::AttrKind::real: return "double ";
    case ir::AttrKind::boolean: return "bool ";
    case ir::AttrKind::dtype: return "DType ";
    case ir::AttrKind::dims: return "const Shape& ";
    case ir::AttrKind::dim: return "Dim ";
    case ir::AttrKind::string: return "const std::string& ";
  }
  return "";
}

std::string default_text(const ir::AttrSpec& spec, const AttrValue& v) {
  switch (spec.kind) {
    case ir::AttrKind::boolean: return std::get<int64_t>(v) ? "true" : "false";
    case ir::AttrKind::dtype: {
      const auto& name = std::get<std::string>(v);
      return "DType::" + (name == "bool" ? std::string("boolean") : name);
    }
    case ir::AttrKind::dim: {
      const Dim d = std::get<Shape>(v)[0];
      return d == Dim(ir::kEnd) ? "Dim::kMax" : d.text();
    }
    case ir::AttrKind::real: {
      const double x = std::get<double>(v);
      return std::isinf(x) ? fmt::format("{}std::numeric_limits<double>::infinity()", x < 0 ? "-" : "")
                           : text(v);
    }
    case ir::AttrKind::dims: {
      std::string s = "{";
      for (const Dim d : std::get<Shape>(v)) s += (s.size() > 1 ? ", " : "") + d.text();
      return s + "}";
    }
    default: return text(v);
  }
}

// Every attribute has a default, except a required list of dimensions (reshape's).
std::string parameters(const ir::OpDef& op, bool defaults) {
  std::string s;
  for (int i = 0; i < static_cast<int>(op.listed(0)); ++i) {
    const bool optional = i >= op.n_inputs - op.n_optional;
    s += fmt::format("{}const Tensor& {}{}", s.empty() ? "" : ", ", op.inputs[static_cast<size_t>(i)],
                     optional && defaults ? " = Tensor()" : "");
  }
  const auto values = op.defaults();
  for (size_t i = 0; i < op.attrs.size(); ++i)
    s += fmt::format("{}{}{}{}", s.empty() ? "" : ", ", type_of(op.attrs[i].kind), op.attrs[i].name,
                     defaults ? " = " + default_text(op.attrs[i], values[i]) : "");
  return s;
}

std::string result_type(const ir::OpDef& op) {
  if (op.n_public == 0) return "void";
  if (op.n_public == 1) return "Tensor";
  return fmt::format("std::array<Tensor, {}>", op.n_public);
}

std::string declaration(const ir::OpDef& op) {
  std::string s;
  std::istringstream doc(op.doc);
  for (std::string line; std::getline(doc, line);) s += line.empty() ? "///\n" : "/// " + line + "\n";
  const char* keep = op.n_public ? "[[nodiscard]] " : "";
  return s + fmt::format("{}{} {}({});\n\n", keep, result_type(op), op.name, parameters(op, true));
}

std::string stored(const ir::AttrSpec& spec) {
  switch (spec.kind) {
    case ir::AttrKind::boolean: return fmt::format("AttrValue(int64_t{{{}}})", spec.name);
    case ir::AttrKind::dtype: return fmt::format("AttrValue(std::string(name({})))", spec.name);
    case ir::AttrKind::dim: return fmt::format("AttrValue(Shape{{{}}})", spec.name);
    default: return fmt::format("AttrValue({})", spec.name);
  }
}

std::string definition(const ir::OpDef& op) {
  std::string s = fmt::format("{} {}({}) {{\n", result_type(op), op.name, parameters(op, false));
  std::string inputs, attrs;
  for (size_t i = 0; i < op.listed(0); ++i) inputs += fmt::format("{}&{}", i ? ", " : "", op.inputs[i]);
  for (size_t i = 0; i < op.attrs.size(); ++i) attrs += (i ? ", " : "") + stored(op.attrs[i]);
  s += op.n_inputs ? fmt::format("  const Tensor* const in[] = {{{}}};\n", inputs)
                   : std::string("  const std::span<const Tensor* const> in;\n");
  s += attrs.empty() ? std::string("  const std::span<const AttrValue> attrs;\n")
                     : fmt::format("  const AttrValue attrs[] = {{{}}};\n", attrs);
  s += fmt::format("  Tensor out[{1}];\n  eager::apply(ops::of_{0}::{0}, in, attrs, out);\n", op.name,
                   op.n_outputs);
  if (op.n_public == 1) s += "  return std::move(out[0]);\n";
  if (op.n_public > 1) {
    s += "  return {";
    for (int k = 0; k < op.n_public; ++k) s += fmt::format("{}std::move(out[{}])", k ? ", " : "", k);
    s += "};\n";
  }
  return s + "}\n\n";
}

}  // namespace

// For nanobind's stubgen: what it can't see of a function that is made when the module is imported, and
// `others`.
static int write_python(const char* path, const char* others) {
  std::ofstream out(path);
  std::ifstream rest(others);
  out << "# Made from src/ops by weft_faces; do not edit.\n\n" << faces::python_patterns() << rest.rdbuf();
  out.close();
  return out && rest ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--python") return write_python(argv[2], argv[3]);
  if (argc != 3)
    return std::fprintf(stderr, "usage: weft_faces HEADER SOURCE, or weft_faces --python PATTERNS OTHERS\n"),
           2;
  std::ofstream header(argv[1]), source(argv[2]);
  header << "// Made from src/ops by weft_faces; do not edit.\n#pragma once\n#include <array>\n#include "
            "<limits>\n\n#include "
            "\"weft/tensor.h\"\n\n"
            "namespace weft {\n\n";
  source << "// Made from src/ops by weft_faces; do not edit.\n#include \"weft/ops.h\"\n\n#include "
            "\"eager/apply.h\"\n\n"
            "namespace weft::ops {\n";
  for (const auto* op : ir::all_ops())  // each in a namespace of its own: weft_batches
    source << "namespace of_" << op->name << " {\nextern const ir::OpDef " << op->name << ";\n}\n";
  source << "}  // namespace weft::ops\n\nnamespace weft {\n\n";
  for (const auto* op : ir::all_ops()) header << declaration(*op), source << definition(*op);
  header << "}  // namespace weft\n";
  source << "}  // namespace weft\n";
  header.close(), source.close();
  return header && source ? 0 : 1;
}

#include "eager/faces/python.h"

#include <cmath>

#include "ir/end.h"

namespace weft::faces {
namespace {

const char* type_of(ir::AttrKind kind) {
  switch (kind) {
    case ir::AttrKind::integer: return "int";
    case ir::AttrKind::real: return "float";
    case ir::AttrKind::boolean: return "bool";
    case ir::AttrKind::dtype: return "DTypeLike";
    case ir::AttrKind::dims: return "ShapeLike";
    case ir::AttrKind::dim: return "DimLike";
    case ir::AttrKind::string: return "str";
  }
  return "";
}

std::string real_text(double x) {
  const std::string s = text(AttrValue(x));
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

}  // namespace

std::string python_default(const ir::AttrSpec& spec, const AttrValue& value) {
  switch (spec.kind) {
    case ir::AttrKind::boolean: return std::get<int64_t>(value) ? "True" : "False";
    case ir::AttrKind::dim: {
      const Dim d = std::get<Shape>(value)[0];
      return d == Dim(ir::kEnd) ? "None" : d.text();
    }
    case ir::AttrKind::real: {
      const double x = std::get<double>(value);
      return std::isinf(x) ? "None" : real_text(x);
    }
    case ir::AttrKind::dims: {
      std::string s = "(";
      for (const Dim d : std::get<Shape>(value)) s += d.text() + ", ";
      if (s.size() > 4)
        s.resize(s.size() - 2);
      else if (s.size() > 1)
        s.pop_back();
      return s + ")";
    }
    default: return text(value);
  }
}

std::string python_name(const char* name) {
  for (const char* word : {"from", "in", "is", "lambda", "as", "if", "else", "and", "or", "not", "for",
                           "while", "with", "class", "def"})
    if (std::string_view(name) == word) return std::string(name) + "_";
  return name;
}

std::string python_parameters(const ir::OpDef& op, bool types) {
  std::string s;
  const auto add = [&](const char* name, const std::string& type, const std::string& standard) {
    s += (s.empty() ? "" : ", ") + python_name(name) + (types ? ": " + type : "");
    if (!standard.empty()) s += (types ? " = " : "=") + standard;
  };
  for (int i = 0; i < static_cast<int>(op.listed(0)); ++i) {
    const bool optional = i >= op.n_inputs - op.n_optional;
    add(op.inputs[static_cast<size_t>(i)], optional ? "TensorLike | None" : "TensorLike",
        optional ? "None" : "");
  }
  const auto values = op.defaults();
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const std::string standard = python_default(op.attrs[i], values[i]);
    add(op.attrs[i].name, type_of(op.attrs[i].kind) + std::string(standard == "None" ? " | None" : ""),
        standard);
  }
  return s;
}

std::string python_result(const ir::OpDef& op) {
  if (op.n_public == 0) return "None";
  if (op.n_public == 1) return "Tensor";
  std::string s = "tuple[";
  for (int k = 0; k < op.n_public; ++k) s += k ? ", Tensor" : "Tensor";
  return s + "]";
}

std::string python_patterns() {
  std::string s =
      "weft._weft.__prefix__:\n    from collections.abc import Iterator, Sequence\n    from typing import "
      "Any, TypeAlias\n    import numpy\n\n";
  s += "weft._weft.__suffix__:\n"
       "    DTypeLike: TypeAlias = dtype | str | type | Any\n"
       "    DimLike: TypeAlias = int | Dim\n"
       "    ShapeLike: TypeAlias = int | Dim | Sequence[int | Dim]\n"
       "    TensorLike: TypeAlias = Tensor | float | int | bool\n\n";
  s += "weft._weft._nn.__prefix__:\n    from collections.abc import Iterator, Mapping\n    from typing "
       "import Any\n   "
       " from weft._weft import DTypeLike, ShapeLike, Tensor\n\n";
  for (const auto* op : ir::all_ops()) {
    if (takes_list(*op)) continue;
    const std::string parameters = python_parameters(*op, true), result = python_result(*op);
    s += fmt::format("^weft\\._weft\\.{0}$:\n    def {0}({1}) -> {2}:\n        \\doc\n\n", op->name,
                     parameters, result);
    if (!is_method(*op)) continue;
    const size_t comma = parameters.find(", ");
    s += fmt::format("^weft\\._weft\\.Tensor\\.{0}$:\n    def {0}(self{1}) -> {2}:\n        \\doc\n\n",
                     op->name, comma == std::string::npos ? "" : parameters.substr(comma), result);
  }
  return s;
}

}  // namespace weft::faces

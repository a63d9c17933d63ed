#pragma once
#include <functional>
#include <string>

#include "cli/source/listing.h"

// Numbers, dimensions and calls as C++.
namespace weft::cli::source {

/// How tightly a text holds together: a sum needs brackets as a factor, a name never.
enum class Binding : uint8_t { sum, product, whole };
struct Text {
  std::string text;
  Binding binding = Binding::whole;
};

std::string literal(const std::string& text);
/// As an expression of `Dim`; symbols are variables of their names.
Text dim_text(Dim dim);
std::string dtype_text(DType dtype);

/// A number, as a tensor without axes.
std::string full_text(const Value& number);
/// A call of the public function, or an operator where there is one. `operand` gives the text of one that is
/// not a number.
Text call_text(const Listing& listing, const Line& line, const std::function<Text(size_t operand)>& operand);

/// One statement, indented, broken behind commas into lines of at most 100 columns.
std::string statement(const std::string& text, int indent);

}  // namespace weft::cli::source

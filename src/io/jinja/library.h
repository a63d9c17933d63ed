#pragma once
#include <map>

#include "io/jinja/value.h"

// Shared by methods, filters and tests.
namespace weft::io::jinja {

using Call = Value (*)(const Value& x, const Arguments& a);
using Table = std::map<std::string, Call, std::less<>>;

/// The function of a name; raises if there is none.
Call known(const Table& table, const char* what, const std::string& name);

/// A string, an argument, and a string argument; the error names `what`.
const std::string& text_of(const char* what, const Value& x);
const Value& wanted(const char* what, const Arguments& a, size_t place);
const std::string& wanted_text(const char* what, const Arguments& a, size_t place,
                               std::string_view name = {});

/// The elements as text, with `between` between them.
std::string joined(const List& parts, std::string_view between);
/// Lines and white space as Python's str.splitlines() and str.isspace() define them.
std::vector<std::string> lines_of(std::string_view text);
bool is_blank(char32_t c);
char32_t upper(char32_t c);
char32_t lower(char32_t c);

// Methods of strings that are also filters.
Value strip(const Value& x, const Arguments& a);
Value upper(const Value& x, const Arguments& a);
Value lower(const Value& x, const Arguments& a);
Value capitalize(const Value& x, const Arguments& a);
Value replace(const Value& x, const Arguments& a);
/// Methods of strings only.
const Table& string_methods();

/// A method of dicts, and a filter.
Value items(const Value& x, const Arguments& a);

}  // namespace weft::io::jinja

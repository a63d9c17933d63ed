#pragma once
#include <map>

#include "io/jinja/value.h"

// What methods, filters and tests share.
namespace weft::io::jinja {

using Call = Value (*)(const Value& x, const Arguments& a);
using Table = std::map<std::string, Call, std::less<>>;

/// The function of a name; raises where there is none.
Call known(const Table& table, const char* what, const std::string& name);

/// A string, an argument, and an argument that is a string; `what` is named where it is not.
const std::string& text_of(const char* what, const Value& x);
const Value& wanted(const char* what, const Arguments& a, size_t place);
const std::string& wanted_text(const char* what, const Arguments& a, size_t place,
                               std::string_view name = {});

/// The elements as text, with `between` between them.
std::string joined(const List& parts, std::string_view between);
/// Where Python's str.splitlines() and str.isspace() see lines and white space.
std::vector<std::string> lines_of(std::string_view text);
bool is_blank(char32_t c);
char32_t upper(char32_t c);
char32_t lower(char32_t c);

// What is a method of strings and a filter too.
Value strip(const Value& x, const Arguments& a);
Value upper(const Value& x, const Arguments& a);
Value lower(const Value& x, const Arguments& a);
Value capitalize(const Value& x, const Arguments& a);
Value replace(const Value& x, const Arguments& a);
/// Those of strings alone.
const Table& string_methods();

/// A method of dicts, and a filter.
Value items(const Value& x, const Arguments& a);

}  // namespace weft::io::jinja

#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace weft::io::jinja {

/// A piece of a template: text to copy, or a word of an expression or a statement.
struct Token {
  enum class Kind {
    data,
    begin_block,
    end_block,
    begin_print,
    end_print,
    name,
    string,
    integer,
    real,
    op,
    end
  };
  Kind kind = Kind::end;
  std::string text;
  int line = 0;
};

/// The tokens of a template, with white space stripped as chat templates expect: `trim_blocks` and
/// `lstrip_blocks` are on, and one line end at the end of the template is dropped.
///
/// Errors   corrupt, with the line, for anything unclosed or no token.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace weft::io::jinja

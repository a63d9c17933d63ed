#include "io/tokenizer/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace weft::io {
namespace {

size_t character_length(char first) {
  const auto c = static_cast<unsigned char>(first);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

}  // namespace

Result<Pattern> Pattern::make(const formats::TokenPattern& from) {
  Pattern p;
  if (!from.regex) {
    p.text_ = from.text;
    return p;
  }
  WEFT_TRY(const std::string expression, to_pcre2(from.text));
  int error = 0;
  size_t at = 0;
  // Without \K in a lookaround and \C, a match ends where a character ends.
  auto* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C | PCRE2_MULTILINE,
                    &error, &at, nullptr);
  if (!code) {
    PCRE2_UCHAR said[256] = {};
    pcre2_get_error_message(error, said, sizeof said);
    return fail(Code::unsupported, "the expression '{}' is not understood, as '{}': {}, at byte {}",
                from.text, expression, reinterpret_cast<const char*>(said), at);
  }
  p.code_ = {code, [](void* c) { pcre2_code_free(static_cast<pcre2_code*>(c)); }};
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // if it fails, matching is slower
  return p;
}

Pattern::Walk::Walk(const Pattern& pattern, std::string_view text) : pattern_(&pattern), text_(text) {
  if (pattern.code_) match_ = pcre2_match_data_create(1, nullptr);
}
Pattern::Walk::~Walk() { pcre2_match_data_free(static_cast<pcre2_match_data*>(match_)); }

// The next match at or after `from_`.
bool Pattern::Walk::find(size_t& begin, size_t& end) {
  if (!match_) {
    begin = text_.find(pattern_->text_, from_);
    end = begin + pattern_->text_.size();
    return begin != std::string_view::npos;
  }
  const int n =
      pcre2_match(static_cast<pcre2_code*>(pattern_->code_.get()), reinterpret_cast<PCRE2_SPTR>(text_.data()),
                  text_.size(), from_, PCRE2_NO_UTF_CHECK, static_cast<pcre2_match_data*>(match_), nullptr);
  if (n == PCRE2_ERROR_NOMATCH) return false;
  if (n < 0)
    throw Error(fail(Code::unsupported,
                     "an expression of the tokenizer gives up at byte {} of a text of {}: PCRE2 error {}",
                     from_, text_.size(), n));
  const size_t* found = pcre2_get_ovector_pointer(static_cast<pcre2_match_data*>(match_));
  begin = found[0];
  end = found[1];
  return true;
}

bool Pattern::Walk::next(Piece& piece) {
  if (waiting_) {
    piece = *waiting_;
    waiting_.reset();
    return true;
  }
  size_t begin = 0, end = 0;
  while (from_ <= text_.size() && find(begin, end)) {
    if (begin == end && last_end_ == end) {
      from_ += from_ < text_.size() ? character_length(text_[from_]) : 1;
      continue;
    }
    from_ = end;
    last_end_ = end;
    const Piece found{begin, end, true};
    const size_t before = std::exchange(done_, end);
    piece = before < begin ? Piece{before, begin, false} : found;
    if (before < begin) waiting_ = found;
    return true;
  }
  from_ = text_.size() + 1;
  piece = {std::exchange(done_, text_.size()), text_.size(), false};
  return piece.begin < piece.end;
}

void Pattern::replace(std::string_view text, std::string_view content, std::string& out) const {
  Walk walk(*this, text);
  for (Piece p; walk.next(p);) out += p.match ? content : text.substr(p.begin, p.end - p.begin);
}

}  // namespace weft::io

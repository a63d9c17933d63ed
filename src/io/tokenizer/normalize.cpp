#include "io/tokenizer/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "io/tokenizer/bert.h"

namespace weft::io {
namespace {

using Kind = formats::TokenNormalizer::Kind;

void append_form(std::string_view text, Kind form, std::string& out) {
  int options = UTF8PROC_STABLE;
  options |= form == Kind::nfc || form == Kind::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Kind::nfkc || form == Kind::nfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* mapped = nullptr;
  const auto n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                              static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                              static_cast<utf8proc_option_t>(options));
  if (n < 0)
    throw Error(fail(n == UTF8PROC_ERROR_NOMEM ? Code::out_of_memory : Code::internal,
                     "can't normalize a text of {} bytes: {}", text.size(), utf8proc_errmsg(n)));
  out.append(reinterpret_cast<char*>(mapped), static_cast<size_t>(n));
  std::free(mapped);
}

}  // namespace

std::string normal_form(std::string_view text, Kind form) {
  // NFC changes no character below U+0300; lead bytes from 0xCC on are others.
  const int first = form == Kind::nfc ? 0xCC : 0x80;
  if (std::all_of(text.begin(), text.end(), [&](char c) { return static_cast<unsigned char>(c) < first; }))
    return std::string(text);
  std::string out;
  // utf8proc 2.8 mistakes U+11A7 for a final consonant and loses it; nothing composes with it or across it.
  for (std::string_view mark = "\u11A7"; !text.empty();) {
    const size_t at = text.find(mark);
    append_form(text.substr(0, at), form, out);
    if (at == text.npos) break;
    out += mark;
    text.remove_prefix(at + mark.size());
  }
  return out;
}

Result<Normalizer> Normalizer::make(const std::vector<formats::TokenNormalizer>& steps) {
  Normalizer out;
  for (const auto& step : steps) {
    Pattern pattern;
    if (step.kind == Kind::replace) {
      WEFT_TRY(pattern, Pattern::make(step.pattern));
    }
    out.steps_.push_back({step.kind, std::move(pattern), step.content, step.bert});
  }
  return out;
}

std::string Normalizer::operator()(std::string_view text) const {
  std::string now(text);
  for (const auto& step : steps_) {
    if (step.kind == Kind::prepend) {
      if (!now.empty()) now.insert(0, step.content);
    } else if (step.kind == Kind::replace) {
      std::string out;
      out.reserve(now.size() + now.size() / 4);
      step.pattern.replace(now, step.content, out);
      now = std::move(out);
    } else if (step.kind == Kind::bert) {
      now = bert_normalized(now, step.bert);
    } else {
      now = normal_form(now, step.kind);
    }
  }
  return now;
}

char32_t first_character(std::string_view text, size_t& length) {
  utf8proc_int32_t c = 0;
  length = static_cast<size_t>(utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                                static_cast<utf8proc_ssize_t>(text.size()), &c));
  return static_cast<char32_t>(c);
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return c == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool is_word_part(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: break;
  }
  if (within(0x24B6, 0x24E9) || within(0x1F130, 0x1F149) || within(0x1F150, 0x1F169) ||
      within(0x1F170, 0x1F189))
    return true;  // letters in circles and squares
  if (c == 0x200C || c == 0x200D) return true;
  return std::any_of(newer_characters().begin(), newer_characters().end(), [&](const NewerCharacters& n) {
    const std::string_view category = n.category;
    return within(n.first, n.last) && (category[0] == 'L' || category[0] == 'M' || category == "Nd" ||
                                       category == "Nl" || category == "Pc");
  });
}

}  // namespace weft::io

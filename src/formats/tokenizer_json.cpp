#include "formats/tokenizer_json.h"

#include "formats/json_field.h"
#include "formats/tokenizer_model.h"

namespace weft::formats {
namespace {

using nlohmann::json;

/// A part, or a Sequence of parts under `name`, nested to any depth: passes each to `take`, in order.
template <class Take>
Status flatten(const Field& part, const char* name, const Take& take) {
  WEFT_TRY(const std::string type, part.at("type").text());
  if (type != "Sequence") return take(part, type);
  WEFT_CHECK(part.only({"type", name}));
  const Field parts = part.at(name);
  WEFT_TRY(const size_t n, parts.list());
  for (size_t i = 0; i < n; ++i) WEFT_CHECK(flatten(parts.item(i), name, take));
  return {};
}

Result<TokenPattern> read_pattern(const Field& f) {
  WEFT_CHECK(f.only({"String", "Regex"}));
  if (f.value().size() != 1) return f.wrong("one of String and Regex");
  const bool regex = f.value().contains("Regex");
  WEFT_TRY(std::string text, f.at(regex ? "Regex" : "String").text());
  if (text.empty()) return f.wrong("a pattern that is not empty");
  return TokenPattern{std::move(text), regex};
}

Status read_normalizer(const Field& f, const std::string& type, std::vector<TokenNormalizer>& out) {
  using Kind = TokenNormalizer::Kind;
  TokenNormalizer n;
  if (type == "Prepend") {
    WEFT_CHECK(f.only({"type", "prepend"}));
    n.kind = Kind::prepend;
    WEFT_TRY(n.content, f.at("prepend").text());
  } else if (type == "Replace") {
    WEFT_CHECK(f.only({"type", "pattern", "content"}));
    n.kind = Kind::replace;
    WEFT_TRY(n.pattern, read_pattern(f.at("pattern")));
    WEFT_TRY(n.content, f.at("content").text());
    if (n.pattern.regex && n.content.find('$') != std::string::npos)
      return f.at("content").unsupported("a group ('$') in the content");
  } else if (type == "BertNormalizer") {
    WEFT_CHECK(f.only({"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}));
    n.kind = Kind::bert;
    WEFT_TRY(n.bert.clean_text, f.at("clean_text").flag());
    WEFT_TRY(n.bert.space_ideographs, f.at("handle_chinese_chars").flag());
    WEFT_TRY(n.bert.lowercase, f.at("lowercase").flag());
    if (!f.at("strip_accents").null()) {
      WEFT_TRY(n.bert.strip_accents, f.at("strip_accents").flag());
    }
  } else {
    WEFT_CHECK(f.only({"type"}));
    static const std::pair<const char*, Kind> forms[] = {
        {"NFC", Kind::nfc}, {"NFD", Kind::nfd}, {"NFKC", Kind::nfkc}, {"NFKD", Kind::nfkd}};
    const auto* form =
        std::find_if(std::begin(forms), std::end(forms), [&](auto& x) { return type == x.first; });
    if (form == std::end(forms)) return f.at("type").unsupported(fmt::format("normalizer '{}'", type));
    n.kind = form->second;
  }
  out.push_back(std::move(n));
  return {};
}

// Files from before 0.15 say add_prefix_space; newer ones may say both.
Result<PrependScheme> read_scheme(const Field& f) {
  if (f.at("prepend_scheme").null()) {
    WEFT_TRY(const bool add, f.at("add_prefix_space").flag(true));
    return add ? PrependScheme::always : PrependScheme::never;
  }
  WEFT_TRY(const std::string said, f.at("prepend_scheme").text());
  if (said == "always") return PrependScheme::always;
  if (said == "first") return PrependScheme::first;
  if (said == "never") return PrependScheme::never;
  return f.at("prepend_scheme").wrong("always, first or never");
}

Result<SplitBehavior> read_behavior(const Field& f) {
  static const std::pair<const char*, SplitBehavior> known[] = {
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous}};
  WEFT_TRY(const std::string said, f.text());
  for (const auto& [name, behavior] : known)
    if (said == name) return behavior;
  return f.wrong("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

Status read_pre_tokenizer(const Field& f, const std::string& type, std::vector<PreTokenizer>& out) {
  PreTokenizer p;
  if (type == "ByteLevel") {
    WEFT_CHECK(f.only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    p.kind = PreTokenizer::Kind::byte_level;
    WEFT_TRY(p.add_prefix_space, f.at("add_prefix_space").flag());
    WEFT_TRY(p.use_regex, f.at("use_regex").flag(true));
  } else if (type == "Split") {
    WEFT_CHECK(f.only({"type", "pattern", "behavior", "invert"}));
    p.kind = PreTokenizer::Kind::split;
    WEFT_TRY(p.pattern, read_pattern(f.at("pattern")));
    WEFT_TRY(p.behavior, read_behavior(f.at("behavior")));
    WEFT_TRY(p.invert, f.at("invert").flag());
  } else if (type == "Digits") {
    WEFT_CHECK(f.only({"type", "individual_digits"}));
    WEFT_TRY(const bool each, f.at("individual_digits").flag());
    // Digits uses Rust's Unicode (17), which has more than \p{N}.
    p.pattern = {"[\\p{N}\\x{11de0}-\\x{11de9}\\x{16ff4}-\\x{16ff6}]", true};
    p.behavior = each ? SplitBehavior::isolated : SplitBehavior::contiguous;
  } else if (type == "Metaspace") {
    WEFT_CHECK(f.only({"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"}));
    p.kind = PreTokenizer::Kind::metaspace;
    WEFT_TRY(p.replacement, f.at("replacement").character());
    WEFT_TRY(p.scheme, read_scheme(f));
    WEFT_TRY(p.split, f.at("split").flag(true));
  } else if (type == "BertPreTokenizer") {
    WEFT_CHECK(f.only({"type"}));
    p.kind = PreTokenizer::Kind::bert;
  } else {
    return f.at("type").unsupported(fmt::format("pre-tokenizer '{}'", type));
  }
  out.push_back(std::move(p));
  return {};
}

Status read_decoder(const Field& f, const std::string& type, std::vector<TokenDecoder>& out) {
  using Kind = TokenDecoder::Kind;
  TokenDecoder d;
  if (type == "ByteLevel") {
    WEFT_CHECK(f.only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    d.kind = Kind::byte_level;
  } else if (type == "Replace") {
    WEFT_CHECK(f.only({"type", "pattern", "content"}));
    WEFT_TRY(TokenPattern pattern, read_pattern(f.at("pattern")));
    if (pattern.regex) return f.at("pattern").unsupported("a Regex in a decoder");
    d.kind = Kind::replace;
    d.pattern = std::move(pattern.text);
    WEFT_TRY(d.content, f.at("content").text());
  } else if (type == "ByteFallback" || type == "Fuse") {
    WEFT_CHECK(f.only({"type"}));
    d.kind = type == "Fuse" ? Kind::fuse : Kind::byte_fallback;
  } else if (type == "Strip") {
    WEFT_CHECK(f.only({"type", "content", "start", "stop"}));
    d.kind = Kind::strip;
    WEFT_TRY(d.content, f.at("content").character());
    WEFT_TRY(d.start, f.at("start").count());
    WEFT_TRY(d.stop, f.at("stop").count());
  } else if (type == "Metaspace") {
    WEFT_CHECK(f.only({"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"}));
    d.kind = Kind::metaspace;
    WEFT_TRY(d.replacement, f.at("replacement").character());
    WEFT_TRY(d.scheme, read_scheme(f));
  } else if (type == "WordPiece") {
    WEFT_CHECK(f.only({"type", "prefix", "cleanup"}));
    d.kind = Kind::word_piece;
    WEFT_TRY(d.prefix, f.at("prefix").text());
    WEFT_TRY(d.cleanup, f.at("cleanup").flag());
  } else {
    return f.at("type").unsupported(fmt::format("decoder '{}'", type));
  }
  out.push_back(std::move(d));
  return {};
}

Status read_special(const Field& special, std::vector<int32_t>& to) {
  if (special.null()) return special.wrong("a special token of the template");
  WEFT_CHECK(special.only({"id", "ids", "tokens"}));
  const Field ids = special.at("ids");
  WEFT_TRY(const size_t n, ids.list());
  for (size_t i = 0; i < n; ++i) {
    WEFT_TRY(const int64_t id, ids.item(i).count());
    to.push_back(static_cast<int32_t>(id));
  }
  return {};
}

// Of a template, the part for a single text; pairs of texts are not encoded here.
Status read_template(const Field& f, TokenizerFile& file) {
  WEFT_CHECK(f.only({"type", "single", "pair", "special_tokens"}));
  const Field single = f.at("single");
  WEFT_TRY(const size_t n, single.list());
  std::vector<int32_t> around[2];
  int texts = 0;
  for (size_t i = 0; i < n; ++i) {
    const Field piece = single.item(i);
    WEFT_CHECK(piece.only({"Sequence", "SpecialToken"}));
    if (!piece.at("Sequence").null()) {
      WEFT_TRY(const std::string which, piece.at("Sequence").at("id").text());
      if (which != "A" || texts++ > 0) return piece.unsupported("other than sequence A, once");
    } else {
      WEFT_TRY(const std::string name, piece.at("SpecialToken").at("id").text());
      WEFT_CHECK(read_special(f.at("special_tokens").at(name.c_str()), around[texts]));
    }
  }
  if (texts != 1) return single.wrong("sequence A, once");
  file.before.insert(file.before.begin(), around[0].begin(), around[0].end());
  file.after.insert(file.after.end(), around[1].begin(), around[1].end());
  return {};
}

Status read_post_processor(const Field& f, const std::string& type, TokenizerFile& file) {
  if (type == "TemplateProcessing") return read_template(f, file);
  if (type != "ByteLevel") return f.at("type").unsupported(fmt::format("post-processor '{}'", type));
  return f.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});  // it moves offsets, no ids
}

Result<AddedToken> read_added(const Field& f) {
  WEFT_CHECK(f.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  AddedToken t;
  WEFT_TRY(t.id, f.at("id").count());
  WEFT_TRY(t.content, f.at("content").text());
  if (t.content.empty()) return f.at("content").wrong("a text that is not empty");
  WEFT_TRY(t.single_word, f.at("single_word").flag());
  WEFT_TRY(t.lstrip, f.at("lstrip").flag());
  WEFT_TRY(t.rstrip, f.at("rstrip").flag());
  WEFT_TRY(t.normalized, f.at("normalized").flag());
  WEFT_TRY(t.special, f.at("special").flag());
  return t;
}

Status read_added_tokens(const Field& f, std::vector<AddedToken>& added) {
  if (f.null()) return {};
  WEFT_TRY(const size_t n, f.list());
  for (size_t i = 0; i < n; ++i) {
    WEFT_TRY(AddedToken token, read_added(f.item(i)));
    added.push_back(std::move(token));
  }
  return {};
}

Status read_steps(const Field& root, TokenizerFile& file) {
  if (const Field f = root.at("normalizer"); !f.null())
    WEFT_CHECK(flatten(f, "normalizers", [&](const Field& part, const std::string& type) {
      return read_normalizer(part, type, file.normalizers);
    }));
  if (const Field f = root.at("pre_tokenizer"); !f.null())
    WEFT_CHECK(flatten(f, "pretokenizers", [&](const Field& part, const std::string& type) {
      return read_pre_tokenizer(part, type, file.pre_tokenizers);
    }));
  if (const Field f = root.at("post_processor"); !f.null())
    WEFT_CHECK(flatten(f, "processors", [&](const Field& part, const std::string& type) {
      return read_post_processor(part, type, file);
    }));
  if (const Field f = root.at("decoder"); !f.null()) {
    file.decoders.emplace();
    WEFT_CHECK(flatten(f, "decoders", [&](const Field& part, const std::string& type) {
      return read_decoder(part, type, *file.decoders);
    }));
  }
  return {};
}

Status read_truncation(const Field& f, std::optional<int64_t>& longest) {
  WEFT_CHECK(f.only({"direction", "max_length", "strategy", "stride"}));
  if (const Field d = f.at("direction"); !d.null() && d.value() != "Right")
    return d.unsupported("cutting at the front");
  if (const Field s = f.at("strategy"); s.value() != "LongestFirst" && s.value() != "OnlyFirst")
    return s.unsupported("cutting the second of two texts");
  WEFT_TRY(longest, f.at("max_length").count());
  return {};
}

// How long a batch becomes is the caller's business.
Status read_padding(const Field& f, std::optional<int32_t>& padding) {
  WEFT_CHECK(f.only({"strategy", "direction", "pad_to_multiple_of", "pad_id", "pad_type_id", "pad_token"}));
  WEFT_TRY(const int64_t id, f.at("pad_id").count());
  padding = static_cast<int32_t>(id);
  return {};
}

/// A token is a text, or an added token written out.
Result<std::string> read_token_text(const Field& f) {
  if (f.null()) return std::string();
  return f.value().is_object() ? f.at("content").text() : f.text();
}

}  // namespace

Result<TokenizerFile> parse_tokenizer(std::string_view text, const std::string& where) {
  WEFT_TRY(const json parsed, parse_json_object(text, where));
  const Field root(&parsed, where);
  WEFT_CHECK(root.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                        "post_processor", "decoder", "model"}));
  if (const Field v = root.at("version"); !v.null() && v.value() != "1.0") return v.wrong("\"1.0\"");
  if (root.at("model").null()) return fail(Code::corrupt, "{}: has no field 'model'", where);
  TokenizerFile file;
  if (const Field f = root.at("truncation"); !f.null()) WEFT_CHECK(read_truncation(f, file.longest));
  if (const Field f = root.at("padding"); !f.null()) WEFT_CHECK(read_padding(f, file.padding));
  WEFT_CHECK(read_added_tokens(root.at("added_tokens"), file.added));
  WEFT_CHECK(read_steps(root, file));
  WEFT_TRY(file.model, read_token_model(root.at("model")));
  return file;
}

Result<TokenizerConfig> parse_tokenizer_config(std::string_view text, const std::string& where) {
  WEFT_TRY(const json parsed, parse_json_object(text, where));
  const Field root(&parsed, where);
  TokenizerConfig config;
  WEFT_TRY(config.bos, read_token_text(root.at("bos_token")));
  WEFT_TRY(config.eos, read_token_text(root.at("eos_token")));
  const Field chat = root.at("chat_template");
  if (!chat.value().is_array()) {
    if (!chat.null()) {
      WEFT_TRY(config.chat_template, chat.text());
    }
    return config;
  }
  for (size_t i = 0; i < chat.value().size(); ++i) {
    WEFT_TRY(const std::string name, chat.item(i).at("name").text());
    if (name != "default") continue;
    WEFT_TRY(config.chat_template, chat.item(i).at("template").text());
  }
  return config;
}

}  // namespace weft::formats

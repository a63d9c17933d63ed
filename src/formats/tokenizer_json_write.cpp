#include <nlohmann/json.hpp>

#include "formats/tokenizer_json.h"

namespace weft::formats {
namespace {

using nlohmann::json;

// One step as itself, several as a Sequence.
json sequence(std::vector<json> steps, const char* name) {
  if (steps.size() == 1) return std::move(steps[0]);
  return {{"type", "Sequence"}, {name, std::move(steps)}};
}
json sequence_or_null(std::vector<json> steps, const char* name) {
  return steps.empty() ? json(nullptr) : sequence(std::move(steps), name);
}

json written(const TokenPattern& p) { return {{p.regex ? "Regex" : "String", p.text}}; }

const char* written(PrependScheme s) {
  constexpr const char* names[] = {"always", "first", "never"};
  return names[static_cast<int>(s)];
}

const char* written(SplitBehavior b) {
  constexpr const char* names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                   "Contiguous"};
  return names[static_cast<int>(b)];
}

json written(const TokenNormalizer& n) {
  using Kind = TokenNormalizer::Kind;
  constexpr const char* forms[] = {"NFC", "NFD", "NFKC", "NFKD"};
  if (n.kind == Kind::prepend) return {{"type", "Prepend"}, {"prepend", n.content}};
  if (n.kind == Kind::replace)
    return {{"type", "Replace"}, {"pattern", written(n.pattern)}, {"content", n.content}};
  if (n.kind == Kind::bert)
    return {{"type", "BertNormalizer"},
            {"clean_text", n.bert.clean_text},
            {"handle_chinese_chars", n.bert.space_ideographs},
            {"strip_accents", n.bert.strip_accents ? json(*n.bert.strip_accents) : json(nullptr)},
            {"lowercase", n.bert.lowercase}};
  return {{"type", forms[static_cast<int>(n.kind)]}};
}

json byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

json metaspace(const std::string& replacement, PrependScheme scheme, bool split) {
  return {{"type", "Metaspace"},
          {"replacement", replacement},
          {"prepend_scheme", written(scheme)},
          {"split", split}};
}

json written(const PreTokenizer& p) {
  using Kind = PreTokenizer::Kind;
  if (p.kind == Kind::byte_level) return byte_level(p.add_prefix_space, p.use_regex);
  if (p.kind == Kind::metaspace) return metaspace(p.replacement, p.scheme, p.split);
  if (p.kind == Kind::bert) return {{"type", "BertPreTokenizer"}};
  return {{"type", "Split"},
          {"pattern", written(p.pattern)},
          {"behavior", written(p.behavior)},
          {"invert", p.invert}};
}

json written(const TokenDecoder& d) {
  switch (d.kind) {
    case TokenDecoder::Kind::byte_level: return byte_level(true, true);
    case TokenDecoder::Kind::replace:
      return {{"type", "Replace"}, {"pattern", {{"String", d.pattern}}}, {"content", d.content}};
    case TokenDecoder::Kind::byte_fallback: return {{"type", "ByteFallback"}};
    case TokenDecoder::Kind::fuse: return {{"type", "Fuse"}};
    case TokenDecoder::Kind::strip:
      return {{"type", "Strip"}, {"content", d.content}, {"start", d.start}, {"stop", d.stop}};
    case TokenDecoder::Kind::metaspace: return metaspace(d.replacement, d.scheme, true);
    case TokenDecoder::Kind::word_piece:
      return {{"type", "WordPiece"}, {"prefix", d.prefix}, {"cleanup", d.cleanup}};
  }
  return nullptr;
}

json written(const AddedToken& t) {
  return {{"id", t.id},          {"content", t.content}, {"single_word", t.single_word},
          {"lstrip", t.lstrip},  {"rstrip", t.rstrip},   {"normalized", t.normalized},
          {"special", t.special}};
}

template <class T>
std::vector<json> all(const std::vector<T>& steps) {
  std::vector<json> out;
  for (const auto& s : steps) out.push_back(written(s));
  return out;
}

json written(const std::vector<std::pair<std::string, int32_t>>& vocabulary) {
  json out = json::object();
  for (const auto& [token, id] : vocabulary) out[token] = id;
  return out;
}

json written(const WordPieceModel& m) {
  return {{"type", "WordPiece"},
          {"unk_token", m.unknown},
          {"continuing_subword_prefix", m.prefix},
          {"max_input_chars_per_word", m.most_characters},
          {"vocab", written(m.vocabulary)}};
}

json written(const BpeModel& m) {
  json merges = json::array();
  for (const auto& [a, b] : m.merges) merges.push_back(json::array({a, b}));
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", m.unknown ? json(*m.unknown) : json(nullptr)},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", m.fuse_unknown},
          {"byte_fallback", m.byte_fallback},
          {"ignore_merges", m.ignore_merges},
          {"vocab", written(m.vocabulary)},
          {"merges", std::move(merges)}};
}

}  // namespace

std::string write_tokenizer(const TokenizerFile& file) {
  json root = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  if (file.longest)
    root["truncation"] = {
        {"direction", "Right"}, {"max_length", *file.longest}, {"strategy", "LongestFirst"}, {"stride", 0}};
  if (file.padding)
    root["padding"] = {{"strategy", "BatchLongest"}, {"direction", "Right"}, {"pad_to_multiple_of", nullptr},
                       {"pad_id", *file.padding},    {"pad_type_id", 0},     {"pad_token", ""}};
  root["added_tokens"] = all(file.added);
  root["normalizer"] = sequence_or_null(all(file.normalizers), "normalizers");
  root["pre_tokenizer"] = sequence_or_null(all(file.pre_tokenizers), "pretokenizers");
  root["post_processor"] = nullptr;
  root["decoder"] = file.decoders ? sequence(all(*file.decoders), "decoders") : json(nullptr);
  root["model"] = std::visit([](const auto& model) { return written(model); }, file.model);
  return root.dump(1, '\t') + "\n";
}

std::string write_tokenizer_config(const TokenizerConfig& config) {
  json root = json::object();
  for (const auto& [name, text] : {std::pair("bos_token", &config.bos),
                                   {"eos_token", &config.eos},
                                   {"chat_template", &config.chat_template}})
    if (!text->empty()) root[name] = *text;
  return root.dump();
}

}  // namespace weft::formats

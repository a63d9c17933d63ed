#include "weft/tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "formats/file.h"
#include "io/tokenizer/added.h"
#include "io/tokenizer/byte_alphabet.h"
#include "io/tokenizer/decoder.h"
#include "io/tokenizer/train.h"
#include "io/tokenizer/word_piece.h"
#include "io/tokenizer/words.h"
#include "io/utf8.h"

namespace weft::io {

namespace fs = std::filesystem;

struct Tokenizer::Parts {
  /// A cache of encoded words, and work memory. One thread at a time.
  struct Memory {
    // Most words of a text are short and repeat.
    static constexpr size_t kLongestWord = 48, kMostWords = 1 << 16;

    TextMap<std::pair<uint32_t, uint32_t>> words;  // where in `ids`
    std::vector<int32_t> ids;
    Bpe::Work work;
    std::string in_bytes;
  };

  struct Token {
    std::string text;
    bool special = false;
  };

  std::string json;
  Normalizer normalizer;
  WordSplitter words;
  AddedTokens added;
  std::variant<Bpe, WordPiece> model;
  std::vector<int32_t> before, after;
  std::optional<std::vector<formats::TokenDecoder>> decoders;
  std::unordered_map<int32_t, Token> tokens;
  TextMap<int32_t> added_ids;
  int64_t size = 0;
  std::optional<int32_t> bos, eos, unknown, padding;
  std::optional<int64_t> longest;
  std::string chat_template;

  mutable std::mutex lock;  // of `memory`; a second thread does without the cache
  mutable Memory memory;

  static Result<std::shared_ptr<Parts>> make(std::string json, const std::string& where);
  Status add_config(const formats::TokenizerConfig& config, const std::string& where);
  const TextMap<int32_t>& vocabulary() const {
    return std::visit([](const auto& m) -> const TextMap<int32_t>& { return m.vocabulary(); }, model);
  }
  std::optional<int32_t> id(std::string_view token) const;
  void encode_word(std::string_view word, Memory& memory, std::vector<int32_t>& ids) const;
  void encode_text(std::string_view text, bool first, bool specials, Memory& memory,
                   std::vector<int32_t>& ids) const;
};

Result<std::shared_ptr<Tokenizer::Parts>> Tokenizer::Parts::make(std::string json, const std::string& where) {
  WEFT_TRY(formats::TokenizerFile file, formats::parse_tokenizer(json, where));
  auto p = std::make_shared<Parts>();
  p->json = std::move(json);
  const auto put = [&](auto& to, auto result) -> Status {
    if (!result.ok()) return result.take_status().at(where);
    to = std::move(result).value();
    return {};
  };
  WEFT_CHECK(put(p->normalizer, Normalizer::make(file.normalizers)));
  WEFT_CHECK(put(p->words, WordSplitter::make(file.pre_tokenizers)));
  std::string unknown;
  if (auto* pieces = std::get_if<formats::WordPieceModel>(&file.model)) {
    unknown = pieces->unknown;
    WEFT_CHECK(put(p->model, WordPiece::make(std::move(*pieces))));
  } else {
    auto& pairs = std::get<formats::BpeModel>(file.model);
    unknown = pairs.unknown.value_or("");
    WEFT_CHECK(put(p->model, Bpe::make(std::move(pairs))));
  }
  WEFT_CHECK(put(p->added, AddedTokens::make(file.added, p->vocabulary(), p->normalizer)));
  p->longest = file.longest;
  p->padding = file.padding;
  p->before = std::move(file.before);
  p->after = std::move(file.after);
  p->decoders = std::move(file.decoders);
  for (const auto& [text, id] : p->vocabulary()) p->tokens[id].text = text;
  for (const auto& t : p->added.all()) {
    p->tokens[static_cast<int32_t>(t.id)] = {t.content, t.special};
    p->added_ids.emplace(t.content, static_cast<int32_t>(t.id));
  }
  if (!unknown.empty()) p->unknown = p->id(unknown);
  for (const auto& [id, token] : p->tokens) p->size = std::max(p->size, int64_t{id} + 1);
  for (const auto* around : {&p->before, &p->after})
    for (const int32_t id : *around)
      if (!p->tokens.contains(id))
        return fail(Code::corrupt, "{}.post_processor: id {} of special_tokens stands for no token", where,
                    id);
  return p;
}

Status Tokenizer::Parts::add_config(const formats::TokenizerConfig& config, const std::string& where) {
  for (const auto& [name, text, to] :
       {std::tuple("bos_token", &config.bos, &bos), {"eos_token", &config.eos, &eos}}) {
    if (text->empty()) continue;
    *to = id(*text);
    if (!*to) return fail(Code::corrupt, "{}: {} '{}' is no token of tokenizer.json", where, name, *text);
  }
  chat_template = config.chat_template;
  return {};
}

std::optional<int32_t> Tokenizer::Parts::id(std::string_view token) const {
  for (const auto* map : {&added_ids, &vocabulary()})
    if (const auto at = map->find(token); at != map->end()) return at->second;
  return {};
}

void Tokenizer::Parts::encode_word(std::string_view word, Memory& m, std::vector<int32_t>& ids) const {
  const bool keep = word.size() <= Memory::kLongestWord;
  if (keep) {
    if (const auto known = m.words.find(word); known != m.words.end()) {
      const auto begin = m.ids.begin() + known->second.first;
      ids.insert(ids.end(), begin, begin + known->second.second);
      return;
    }
  }
  std::string_view spelt = word;
  if (words.bytes_wanted()) {
    m.in_bytes.clear();
    ByteAlphabet::get().append(word, m.in_bytes);
    spelt = m.in_bytes;
  }
  const size_t had = ids.size();
  if (const auto* pieces = std::get_if<WordPiece>(&model))
    pieces->encode(spelt, ids);
  else
    std::get<Bpe>(model).encode(spelt, m.work, ids);
  if (!keep) return;
  if (m.words.size() >= Memory::kMostWords) {
    m.words.clear();
    m.ids.clear();
  }
  m.words.emplace(word,
                  std::pair(static_cast<uint32_t>(m.ids.size()), static_cast<uint32_t>(ids.size() - had)));
  m.ids.insert(m.ids.end(), ids.begin() + static_cast<ptrdiff_t>(had), ids.end());
}

void Tokenizer::Parts::encode_text(std::string_view text, bool first, bool specials, Memory& m,
                                   std::vector<int32_t>& ids) const {
  std::string changed;
  if (!normalizer.empty()) text = changed = normalizer(text);
  for (const auto& part : added.split(text, true, specials)) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    words.split(text.substr(part.begin, part.end - part.begin), first && part.begin == 0,
                [&](std::string_view word) { encode_word(word, m, ids); });
  }
}

Tokenizer::Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

Tokenizer Tokenizer::from_json(std::string json, const std::string& config) {
  auto parts = value_or_raise(Parts::make(std::move(json), "tokenizer.json"));
  const char* where = "tokenizer_config.json";
  if (!config.empty())
    raise_if(parts->add_config(value_or_raise(formats::parse_tokenizer_config(config, where)), where));
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::bytes() { return from_json(formats::write_tokenizer(byte_tokenizer())); }

Tokenizer Tokenizer::train_characters(std::string_view text, const CharacterTraining& training) {
  return from_json(formats::write_tokenizer(character_tokenizer(text, training)));
}

Tokenizer Tokenizer::train_bpe(std::string_view text, const BpeTraining& training) {
  const std::string eos = training.specials.empty() ? "" : training.specials[0];
  const auto file = value_or_raise(train(text, training));
  return from_json(formats::write_tokenizer(file),
                   formats::write_tokenizer_config({.bos = "", .eos = eos, .chat_template = ""}));
}

static std::string read_text(const std::string& path) {
  const auto bytes = value_or_raise(formats::read_file(path));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Tokenizer Tokenizer::load(const std::string& path) {
  std::error_code no_such_name;
  const fs::path file =
      fs::is_directory(path, no_such_name) ? fs::path(path) / "tokenizer.json" : fs::path(path);
  const auto beside = [&](const char* name) { return (file.parent_path() / name).string(); };
  auto parts = value_or_raise(Parts::make(read_text(file.string()), file.string()));
  if (const auto config = beside("tokenizer_config.json"); !formats::is_missing(config))
    raise_if(parts->add_config(value_or_raise(formats::parse_tokenizer_config(read_text(config), config)),
                               config));
  if (const auto chat = beside("chat_template.jinja"); !formats::is_missing(chat)) {
    parts->chat_template = read_text(chat);
    if (!is_utf8(parts->chat_template)) throw Error(fail(Code::corrupt, "{}: is not UTF-8", chat));
  }
  return Tokenizer(std::move(parts));
}

void Tokenizer::save(const std::string& path) const {
  raise_if(formats::write_file(path, std::string_view(parts_->json)));
}
const std::string& Tokenizer::to_json() const { return parts_->json; }
std::string Tokenizer::config_json() const {
  const auto spelling = [&](std::optional<int32_t> id) { return id ? token(*id) : std::string(); };
  return formats::write_tokenizer_config(
      {.bos = spelling(bos()), .eos = spelling(eos()), .chat_template = chat_template()});
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool add_specials, bool read_specials,
                                       int64_t most) const {
  const Parts& p = *parts_;
  std::string repaired;
  if (!is_utf8(text)) text = repaired = repair_utf8(text);
  std::unique_lock shared(p.lock, std::try_to_lock);
  Parts::Memory own;
  Parts::Memory& memory = shared ? p.memory : own;
  std::vector<int32_t> ids;
  if (add_specials) ids = p.before;
  for (const auto& part : p.added.split(text, false, read_specials)) {
    if (part.id >= 0)
      ids.push_back(part.id);
    else
      p.encode_text(text.substr(part.begin, part.end - part.begin), part.begin == 0, read_specials, memory,
                    ids);
  }
  const auto after = static_cast<int64_t>(add_specials ? p.after.size() : 0);
  const auto before = static_cast<int64_t>(add_specials ? p.before.size() : 0);
  if (static_cast<int64_t>(ids.size()) > most - after)
    ids.resize(static_cast<size_t>(std::max(before, most - after)));
  if (add_specials) ids.insert(ids.end(), p.after.begin(), p.after.end());
  return ids;
}

// Tokens that stand for normalized text are searched in the raw text: a model's own tokens have no other
// form.
std::vector<std::pair<size_t, size_t>> Tokenizer::specials_in(std::string_view text) const {
  std::vector<std::pair<size_t, size_t>> found;
  for (const bool normalized : {false, true})
    for (const auto& part : parts_->added.split(text, normalized))
      if (part.id >= 0 && is_special(part.id)) found.emplace_back(part.begin, part.end);
  std::ranges::sort(found);
  size_t end = 0;
  std::erase_if(found, [&](const auto& f) {
    const bool inside = f.first < end;
    end = std::max(end, f.second);
    return inside;
  });
  return found;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_specials) const {
  TokenStream stream(*this, skip_specials);
  std::string text;
  for (const int32_t id : ids) text += stream.push(id);
  text += stream.finish();
  return text;
}

std::optional<int32_t> Tokenizer::id(std::string_view token) const { return parts_->id(token); }

const std::string& Tokenizer::token(int32_t id) const {
  const auto at = parts_->tokens.find(id);
  if (at == parts_->tokens.end())
    throw Error(invalid("id {} stands for no token; the vocabulary has {} ids", id, size()));
  return at->second.text;
}

bool Tokenizer::is_special(int32_t id) const {
  const auto at = parts_->tokens.find(id);
  return at != parts_->tokens.end() && at->second.special;
}

int64_t Tokenizer::size() const { return parts_->size; }
std::optional<int32_t> Tokenizer::bos() const { return parts_->bos; }
std::optional<int32_t> Tokenizer::eos() const { return parts_->eos; }
std::optional<int32_t> Tokenizer::padding() const { return parts_->padding; }
std::optional<int64_t> Tokenizer::longest() const { return parts_->longest; }
std::optional<int32_t> Tokenizer::unknown() const { return parts_->unknown; }
const std::string& Tokenizer::chat_template() const { return parts_->chat_template; }

struct TokenStream::State {
  Tokenizer tokenizer;
  bool skip_specials;
  TokenDecoding decoding;
};

TokenStream::TokenStream(Tokenizer tokenizer, bool skip_specials) {
  TokenDecoding decoding(tokenizer.parts_->decoders);
  state_ = std::make_unique<State>(State{std::move(tokenizer), skip_specials, std::move(decoding)});
}
TokenStream::~TokenStream() = default;
TokenStream::TokenStream(TokenStream&&) noexcept = default;
TokenStream& TokenStream::operator=(TokenStream&&) noexcept = default;

std::string_view TokenStream::push(int32_t id) {
  state_->decoding.text().clear();
  const auto& tokens = state_->tokenizer.parts_->tokens;
  const auto at = tokens.find(id);
  if (at != tokens.end() && !(state_->skip_specials && at->second.special))
    state_->decoding.push(at->second.text);
  return state_->decoding.text();
}

std::string_view TokenStream::finish() {
  state_->decoding.text().clear();
  state_->decoding.finish();
  return state_->decoding.text();
}

}  // namespace weft::io

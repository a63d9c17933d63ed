#include "io/tokenizer/bpe.h"

#include <algorithm>

#include "io/tokenizer/normalize.h"

namespace weft::io {

void MergeTable::reserve(size_t merges) {
  size_t size = 2;
  while (size < 2 * merges) size *= 2;
  slots_.assign(size, {});
  mask_ = size - 1;
}

void MergeTable::insert(int32_t left, int32_t right, uint32_t rank, int32_t to) {
  const uint64_t pair = key(left, right);
  size_t at = slot(pair);
  while (slots_[at].rank != UINT32_MAX && slots_[at].pair != pair) at = (at + 1) & mask_;
  slots_[at] = {pair, rank, to};
}

Result<Bpe> Bpe::make(formats::BpeModel model) {
  Bpe b;
  b.fuse_unknown_ = model.fuse_unknown;
  b.byte_fallback_ = model.byte_fallback;
  b.ignore_merges_ = model.ignore_merges;
  b.ascii_.fill(-1);
  b.bytes_.fill(-1);
  b.vocabulary_.reserve(model.vocabulary.size());
  for (auto& [token, id] : model.vocabulary) {
    size_t length = 0;
    const char32_t c = token.empty() ? 0 : first_character(token, length);
    if (length > 0 && length == token.size()) {
      b.characters_[c] = id;
      if (c < 128) b.ascii_[c] = id;
    }
    b.vocabulary_.emplace(std::move(token), id);
  }
  const auto id_of = [&](const std::string& token) {
    const auto at = b.vocabulary_.find(token);
    return at == b.vocabulary_.end() ? -1 : at->second;
  };
  if (model.unknown && (b.unknown_ = id_of(*model.unknown)) < 0)
    return fail(Code::corrupt, "model.unk_token: '{}' is not in model.vocab", *model.unknown);
  for (size_t i = 0; i < 256; ++i) b.bytes_[i] = id_of(fmt::format("<0x{:02X}>", i));
  b.merge_count_ = model.merges.size();
  b.merges_.reserve(model.merges.size());
  for (size_t i = 0; i < model.merges.size(); ++i) {
    const auto& [left, right] = model.merges[i];
    const std::string both = left + right;
    for (const auto* token : {&left, &right, &both})
      if (id_of(*token) < 0)
        return fail(Code::corrupt, "model.merges[{}]: '{}' is not in model.vocab", i, *token);
    b.merges_.insert(id_of(left), id_of(right), static_cast<uint32_t>(i), id_of(both));
  }
  return b;
}

// A character without an id as its bytes; false if one of them has no id either.
bool Bpe::fall_back(std::string_view character, Work& work) const {
  for (const char c : character)
    if (bytes_[static_cast<unsigned char>(c)] < 0) return false;
  for (const char c : character) work.symbols.push_back({bytes_[static_cast<unsigned char>(c)], 0, 0, false});
  return true;
}

// The word's characters. An unknown one is added with the next known one, as `tokenizers` does.
void Bpe::split(std::string_view word, Work& work) const {
  work.symbols.clear();
  bool waiting = false;
  const auto add = [&](int32_t id) { work.symbols.push_back({id, 0, 0, false}); };
  while (!word.empty()) {
    size_t length = 1;
    int32_t id = -1;
    if (const auto byte = static_cast<unsigned char>(word[0]); byte < 128) {
      id = ascii_[byte];
    } else {
      const auto at = characters_.find(first_character(word, length));
      if (at != characters_.end()) id = at->second;
    }
    const auto character = word.substr(0, length);
    word.remove_prefix(length);
    if (id >= 0) {
      if (std::exchange(waiting, false)) add(unknown_);
      add(id);
    } else if (!(byte_fallback_ && fall_back(character, work)) && unknown_ >= 0) {
      if (waiting && !fuse_unknown_) add(unknown_);
      waiting = true;
    }
  }
  if (waiting) add(unknown_);
}

void Bpe::consider(Work& work, int32_t left, int32_t right) const {
  const auto* m =
      merges_.find(work.symbols[static_cast<size_t>(left)].id, work.symbols[static_cast<size_t>(right)].id);
  if (m) work.heap.push_back({m->rank, static_cast<uint32_t>(left), m->to});
}

// The lowest rank first, and of equal rank the leftmost. A candidate is stale if its pair has changed; as in
// `tokenizers`, the merged id decides that, not the rank.
void Bpe::merge(Work& work) const {
  auto& symbols = work.symbols;
  auto& heap = work.heap;
  const auto later = [](const Work::Candidate& a, const Work::Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  };
  const auto n = static_cast<int32_t>(symbols.size());
  heap.clear();
  for (int32_t i = 0; i < n; ++i) {
    symbols[static_cast<size_t>(i)].previous = i - 1;
    symbols[static_cast<size_t>(i)].next = i + 1;
    if (i + 1 < n) consider(work, i, i + 1);
  }
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto top = heap.back();
    heap.pop_back();
    auto& left = symbols[top.at];
    if (left.gone || left.next == n) continue;
    auto& right = symbols[static_cast<size_t>(left.next)];
    const auto* m = merges_.find(left.id, right.id);
    if (!m || m->to != top.to) continue;
    left.id = top.to;
    left.next = right.next;
    right.gone = true;
    const size_t had = heap.size();
    if (left.next < n) symbols[static_cast<size_t>(left.next)].previous = static_cast<int32_t>(top.at);
    if (left.previous >= 0) consider(work, left.previous, static_cast<int32_t>(top.at));
    if (left.next < n) consider(work, static_cast<int32_t>(top.at), left.next);
    for (size_t end = had + 1; end <= heap.size(); ++end)
      std::push_heap(heap.begin(), heap.begin() + static_cast<ptrdiff_t>(end), later);
  }
}

void Bpe::encode(std::string_view word, Work& work, std::vector<int32_t>& ids) const {
  if (word.size() >= INT32_MAX)
    throw Error(invalid("a word of {} bytes; wants less than 2 GiB", word.size()));
  if (ignore_merges_) {
    if (const auto whole = vocabulary_.find(word); whole != vocabulary_.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  split(word, work);
  if (merge_count_ > 0) merge(work);
  for (const auto& s : work.symbols)
    if (!s.gone) ids.push_back(s.id);
}

}  // namespace weft::io

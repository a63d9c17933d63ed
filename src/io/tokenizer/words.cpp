#include "io/tokenizer/words.h"

#include "io/tokenizer/bert.h"
#include "io/tokenizer/byte_alphabet.h"

namespace weft::io {

using formats::PrependScheme;
using formats::SplitBehavior;

Result<WordSplitter> WordSplitter::make(const std::vector<formats::PreTokenizer>& steps) {
  WordSplitter out;
  for (size_t i = 0; i < steps.size(); ++i)
    if (auto status = out.add(steps[i]); !status.ok())
      return std::move(status).at(fmt::format("pre_tokenizer {}", i));
  out.bytes_wanted_ = !out.steps_.empty() && out.steps_.back().kind == Kind::to_bytes;
  if (out.bytes_wanted_) out.steps_.pop_back();
  return out;
}

Status WordSplitter::add_split(const formats::TokenPattern& pattern, SplitBehavior behavior, bool invert) {
  WEFT_TRY(Pattern made, Pattern::make(pattern));
  steps_.push_back({Kind::split, std::move(made), behavior, invert});
  return {};
}

Status WordSplitter::add(const formats::PreTokenizer& from) {
  using From = formats::PreTokenizer::Kind;
  if (from.kind == From::split) return add_split(from.pattern, from.behavior, from.invert);
  if (from.kind == From::metaspace) {
    Step step{Kind::metaspace, {}};
    step.replacement = from.replacement;
    step.scheme = from.scheme;
    steps_.push_back(std::move(step));
    return from.split ? add_split({from.replacement, false}, SplitBehavior::merged_with_next, false)
                      : Status();
  }
  if (from.kind == From::bert) {
    WEFT_CHECK(add_split({"\\s+", true}, SplitBehavior::removed, false));
    return add_split({bert_punctuation(), true}, SplitBehavior::isolated, false);
  }
  if (from.add_prefix_space) steps_.push_back({Kind::prefix_space, {}});
  if (from.use_regex) WEFT_CHECK(add_split({kGpt2Pattern, true}, SplitBehavior::isolated, false));
  steps_.push_back({Kind::to_bytes, {}});
  return {};
}

void WordSplitter::run(size_t at, std::string_view text, bool first, const Take& take) const {
  if (text.empty()) return;
  if (at == steps_.size()) return take(text);
  const Step& step = steps_[at];
  std::string changed;
  switch (step.kind) {
    case Kind::split: return run_split(at, text, first, take);
    case Kind::prefix_space:
      if (!text.starts_with(' ')) changed = fmt::format(" {}", text);
      return run(at + 1, changed.empty() ? text : changed, first, take);
    case Kind::to_bytes: ByteAlphabet::get().append(text, changed); return run(at + 1, changed, first, take);
    case Kind::metaspace: break;
  }
  changed.reserve(text.size() + 8);
  if (step.scheme == PrependScheme::always || (step.scheme == PrependScheme::first && first))
    if (!text.starts_with(' ') && !text.starts_with(step.replacement)) changed += step.replacement;
  for (const char c : text) {
    if (c == ' ')
      changed += step.replacement;
    else
      changed += c;
  }
  run(at + 1, changed, first, take);
}

void WordSplitter::run_split(size_t at, std::string_view text, bool first, const Take& take) const {
  const Step& step = steps_[at];
  const auto hand_on = [&](size_t begin, size_t end) {
    run(at + 1, text.substr(begin, end - begin), first && begin == 0, take);
  };
  const bool alone = step.behavior == SplitBehavior::isolated || step.behavior == SplitBehavior::removed;
  std::optional<Piece> held;  // may be extended by the next part
  Pattern::Walk walk(step.pattern, text);
  for (Piece p; walk.next(p);) {
    p.match = p.match != step.invert;
    if (alone) {
      if (!p.match || step.behavior == SplitBehavior::isolated) hand_on(p.begin, p.end);
      continue;
    }
    const bool grows =
        held && (step.behavior == SplitBehavior::contiguous             ? held->match == p.match
                 : step.behavior == SplitBehavior::merged_with_previous ? !held->match && p.match
                                                                        : held->match && !p.match);
    if (held && !grows) hand_on(held->begin, held->end);
    held = Piece{grows ? held->begin : p.begin, p.end, p.match};
  }
  if (held) hand_on(held->begin, held->end);
}

}  // namespace weft::io

#include "weft/generate.h"

#include <algorithm>
#include <array>

#include "weft/ops.h"

namespace weft::nn {
namespace {

// Scores of the last token of each sequence, and which token they choose: -1 where the best score is no
// finite number. Inputs: tokens [tokens], one sequence after another, the number
// of tokens that each had read before, and the offset of each in `tokens`.
Compiled compiled(const LanguageModel& model, int64_t batch, int64_t capacity,
                  const CompileOptions& options) {
  if (model.training)
    throw Error(
        invalid("a model in training drops numbers at random: call set_training(model, false) first"));
  KVCache cache = model.make_cache(batch, capacity);
  const NoGrad off;
  const Dim tokens = Dim::symbol("tokens", 1, batch * capacity);
  return compile(
      [&](const std::vector<Tensor>& in) {
        cache.length = in[1], cache.offsets = in[2];
        const auto number = [](double n) { return full(n, {}, DType::i32); };
        // Any row, for an empty sequence at the front.
        const Tensor last = maximum(slice(in[2], 0, 1, batch + 1) - number(1), number(0));
        Tensor scores = model.scores(gather(model.features(in[0], &cache), last));
        if (scores.dtype() != DType::f32) scores = cast(scores, DType::f32);
        const Tensor best = argmax(scores), rows = reshape(best, {batch, 1});
        const Tensor score = reshape(gather(scores, rows, 1, 1), {batch});
        Tensor choice = where(isfinite(score), best, number(-1));
        return std::vector<Tensor>{scores.named("scores"), choice.named("choice")};
      },
      {{"tokens", {DType::i32, {tokens}}},
       {"length", {DType::i32, {batch}}},
       {"offsets", {DType::i32, {batch + 1}}}},
      options);
}

}  // namespace

Decoder::Decoder(const LanguageModel& model, const DecoderConfig& config)
    : capacity_(config.capacity ? config.capacity : model.context()),
      vocabulary_(model.vocabulary()),
      program_(compiled(model, config.batch, capacity_, config.compile)) {
  const auto batch = static_cast<size_t>(config.batch);
  read_.resize(batch);
  for (auto& r : read_) r.reserve(static_cast<size_t>(capacity_));
  length_.resize(batch), offsets_.resize(batch + 1);
  choices_.resize(batch, -1);
}

void Decoder::check(std::span<const std::span<const int32_t>> tokens) const {
  if (tokens.size() != read_.size())
    throw Error(invalid("a decoder of {} sequences got tokens for {}", read_.size(), tokens.size()));
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (static_cast<int64_t>(read_[i].size() + tokens[i].size()) > capacity_)
      throw Error(invalid("sequence {} has {} tokens and can't read {} more: there is room for {}", i,
                          read_[i].size(), tokens[i].size(), capacity_));
    for (const int32_t t : tokens[i])
      if (t < 0 || t >= vocabulary_)
        throw Error(
            invalid("sequence {}: token {} is outside [0, {}), the model's vocabulary", i, t, vocabulary_));
  }
}

void Decoder::read(std::span<const std::span<const int32_t>> tokens) {
  check(tokens);
  tokens_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens_.insert(tokens_.end(), tokens[i].begin(), tokens[i].end());
    length_[i] = static_cast<int32_t>(read_[i].size());
    offsets_[i + 1] = static_cast<int32_t>(tokens_.size());
  }
  if (tokens_.empty()) return;
  const auto array = [](const std::vector<int32_t>& of, const int64_t& n) {
    return HostArray{DType::i32, {&n, 1}, std::as_bytes(std::span(of))};
  };
  const auto n = static_cast<int64_t>(tokens_.size());
  const int64_t batch = this->batch(), ends = batch + 1;
  const std::array inputs = {array(tokens_, n), array(length_, batch), array(offsets_, ends)};
  const std::array outputs = {std::span<std::byte>(), std::as_writable_bytes(std::span(choices_))};
  program_.run(inputs, outputs);
  has_scores_ = false;
  for (size_t i = 0; i < tokens.size(); ++i)
    read_[i].insert(read_[i].end(), tokens[i].begin(), tokens[i].end());
}

// The index of sequence i among `count`.
static size_t place(int64_t i, size_t count) {
  if (i >= 0 && static_cast<size_t>(i) < count) return static_cast<size_t>(i);
  throw Error(invalid("there is no sequence {} of {}", i, count));
}

std::span<const float> Decoder::scores(int64_t sequence) const {
  const auto n = static_cast<size_t>(vocabulary_);
  if (!has_scores_) {
    scores_.resize(read_.size() * n);
    program_.fetch(0, std::as_writable_bytes(std::span(scores_)));
    has_scores_ = true;
  }
  return std::span(scores_).subspan(place(sequence, read_.size()) * n, n);
}
int32_t Decoder::choice(int64_t sequence) const { return choices_[place(sequence, read_.size())]; }
std::span<const int32_t> Decoder::tokens(int64_t sequence) const {
  return read_[place(sequence, read_.size())];
}

void Decoder::rewind(int64_t sequence, int64_t length) {
  auto& read = read_[place(sequence, read_.size())];
  if (length < 0 || length > static_cast<int64_t>(read.size()))
    throw Error(invalid("sequence {} has {} tokens, it can't go back to {}", sequence, read.size(), length));
  read.resize(static_cast<size_t>(length));
}

constexpr size_t kLongText = 1024;            // more bytes than a token has
constexpr int64_t kLongGeneration = 1 << 20;  // tokens for which memory is reserved at the beginning

const char* name(Finish finish) {
  constexpr const char* kNames[] = {"none", "end", "stop", "length", "full"};
  return kNames[static_cast<size_t>(finish)];
}

Generation::Generation(Decoder& decoder, const io::Tokenizer& tokenizer,
                       std::span<const std::vector<int32_t>> prompts, GenerateOptions options)
    : decoder_(decoder), options_(std::move(options)) {
  if (static_cast<int64_t>(prompts.size()) != decoder.batch())
    throw Error(invalid("a decoder of {} sequences got {} prompts", decoder.batch(), prompts.size()));
  if (options_.length < 0) throw Error(invalid("length must be 0 or more, got {}", options_.length));
  const auto most = static_cast<size_t>(
      std::min(options_.length, options_.forget ? kLongGeneration : decoder.capacity() + 1));
  for (size_t i = 0; i < prompts.size(); ++i) {
    io::Sampling sampling = options_.sampling;
    sampling.seed += i;
    sequences_.push_back({io::Sampler(std::move(sampling)),
                          io::TokenStream(tokenizer),
                          io::StopStrings(options_.stops),
                          {},
                          {},
                          {},
                          Finish::none,
                          0});
    sequences_.back().chosen.reserve(most), sequences_.back().text.reserve(kLongText);
    if (options_.forget) sequences_.back().kept.reserve(static_cast<size_t>(decoder.capacity()));
    if (options_.length == 0) sequences_.back().finish = Finish::length;
  }
  read_prompts(prompts);  // which checks them
  for (size_t i = 0; i < prompts.size(); ++i) sequences_[i].sampler.saw(prompts[i]);
}

const Generation::Sequence& Generation::at(int64_t i) const {
  return sequences_[place(i, sequences_.size())];
}

void Generation::read_prompts(std::span<const std::vector<int32_t>> prompts) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto& prompt = prompts[i];
    if (prompt.empty()) throw Error(invalid("prompt {} is empty: a text wants a token to begin with", i + 1));
    if (static_cast<int64_t>(prompt.size()) > decoder_.capacity())
      throw Error(invalid("prompt {} has {} tokens, there is room for {}", i + 1, prompt.size(),
                          decoder_.capacity()));
    const auto have = decoder_.tokens(static_cast<int64_t>(i));
    const auto same = std::ranges::mismatch(have, prompt).in1 - have.begin();
    // Always reads the last token, for the scores after it.
    const auto kept = std::min<int64_t>(same, static_cast<int64_t>(prompt.size()) - 1);
    decoder_.rewind(static_cast<int64_t>(i), kept);
    next_.push_back(std::span(prompt).subspan(static_cast<size_t>(kept)));
    prompt_tokens_ += static_cast<int64_t>(next_.back().size());
  }
  decoder_.read(next_);
}

// Takes the next token of text i and updates the text's state.
void Generation::take(size_t i) {
  Sequence& s = sequences_[i];
  const auto row = static_cast<int64_t>(i);
  const int32_t best = s.sampler.takes_likeliest() ? decoder_.choice(row) : -1;
  const int32_t token = best >= 0 ? best : s.sampler.pick(decoder_.scores(row));
  s.chosen.push_back(token);
  if (std::ranges::find(options_.ends, token) != options_.ends.end()) {
    s.finish = Finish::end;
  } else {
    s.text += s.stops.push(s.stream.push(token));
    if (static_cast<int64_t>(s.chosen.size()) >= options_.length) s.finish = Finish::length;
    if (is_full(i) && !options_.forget && s.finish == Finish::none) s.finish = Finish::full;
  }
  if (s.finish != Finish::none) {
    s.text += s.stops.push(s.stream.finish());
    s.text += s.stops.finish();
  }
  if (s.stops.stopped()) s.finish = Finish::stop;
}

bool Generation::is_full(size_t i) const {
  return static_cast<int64_t>(decoder_.tokens(static_cast<int64_t>(i)).size()) == decoder_.capacity();
}

// The newer half of the tokens of sequence i and the new token: the sequence restarts from these, since
// positions are counted from its beginning.
std::span<const int32_t> Generation::newer_half(size_t i) {
  Sequence& s = sequences_[i];
  const auto read = decoder_.tokens(static_cast<int64_t>(i));
  const auto half = read.last(read.size() / 2);
  s.kept.assign(half.begin(), half.end());
  s.kept.push_back(s.chosen.back());
  s.forgotten += static_cast<int64_t>(read.size() - half.size());
  decoder_.rewind(static_cast<int64_t>(i), 0);
  return s.kept;
}

bool Generation::step() {
  bool any = false, more = false;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    Sequence& s = sequences_[i];
    s.text.clear(), next_[i] = {};
    if (s.finish != Finish::none) continue;
    any = true;
    take(i);
    if (s.finish != Finish::none) continue;
    next_[i] = is_full(i) ? newer_half(i) : std::span<const int32_t>(s.chosen).last(1);
    more = true;
  }
  if (more) decoder_.read(next_);
  return any;
}

}  // namespace weft::nn

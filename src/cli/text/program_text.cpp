#include "cli/text/program_text.h"

#include <algorithm>

#include "base/element.h"
#include "weft/sampling.h"

namespace weft::cli {
namespace {

using runtime::HostTensor;

constexpr std::string_view kTokens = "input_ids", kPosition = "position";

}  // namespace

Result<ProgramDecoder> ProgramDecoder::make(std::unique_ptr<runtime::Session> session) {
  ProgramDecoder d(std::move(session));
  WEFT_CHECK(d.check_ports());
  return d;
}

Status ProgramDecoder::check_ports() {
  const auto& p = session_->program();
  const auto type_of = [&](const program::Port& port) -> const TensorType& {
    return p.values[static_cast<size_t>(port.value)].type;
  };
  const auto refuse = [&](std::string_view what) {
    return invalid(
        "program '{}': {}; text wants the inputs {} [1, length] and {} [length] of integers, and an output "
        "[1, length, vocabulary]: scripts/lib/decoders.py exports one",
        p.name, what, kTokens, kPosition);
  };
  if (p.inputs.size() != 2 || p.outputs.empty()) return refuse("it has other inputs or no output");
  for (const auto& input : p.inputs) {
    const TensorType& type = type_of(input);
    const bool ids = input.name == kTokens;
    if ((!ids && input.name != kPosition) || type.rank() != (ids ? 2 : 1) ||
        (type.dtype != DType::i64 && type.dtype != DType::i32) || (ids && !(type.shape[0] == Dim(1))))
      return refuse(fmt::format("its input '{}' is {}", input.name, weft::text(type)));
    length_ = type.shape.back();
  }
  if (length_.min() > 1) return refuse(fmt::format("it reads {} tokens at least", length_.min()));
  const TensorType& out = type_of(p.outputs[0]);
  if (!is_float(out.dtype) || out.rank() != 3)
    return refuse(fmt::format("its first output is {}", weft::text(out)));
  return {};
}

Result<std::vector<float>> ProgramDecoder::scores_after(std::span<const int32_t> ids, int64_t position) {
  const auto& p = session_->program();
  const auto n = static_cast<int64_t>(ids.size());
  std::vector<HostTensor> inputs;
  for (const auto& input : p.inputs) {
    const bool is_ids = input.name == kTokens;
    HostTensor t{{p.values[static_cast<size_t>(input.value)].type.dtype, is_ids ? IntList{1, n} : IntList{n}},
                 {}};
    t.bytes.resize(ids.size() * byte_size(t.type.dtype));
    for (size_t i = 0; i < ids.size(); ++i)
      store_element(t.type.dtype, t.bytes.data(), i,
                    is_ids ? int64_t{ids[i]} : position + static_cast<int64_t>(i));
    inputs.push_back(std::move(t));
  }
  WEFT_TRY(const auto out, session_->run(inputs));
  const auto width = static_cast<size_t>(out[0].type.shape[2]);
  std::vector<float> scores(width);
  for (size_t i = 0; i < width; ++i)
    scores[i] = load_element<float>(out[0].type.dtype, out[0].bytes.data(), (ids.size() - 1) * width + i);
  return scores;
}

Result<ProgramText> ProgramDecoder::generate(std::span<const int32_t> prompt, const io::Tokenizer& tokenizer,
                                             const nn::GenerateOptions& options,
                                             const std::function<void(std::string_view)>& show) {
  using nn::Finish;
  if (prompt.empty() || static_cast<int64_t>(prompt.size()) > capacity())
    return invalid("the prompt has {} tokens, the program has room for 1 to {}", prompt.size(), capacity());
  io::Sampler sampler(options.sampling);
  sampler.saw(prompt);
  io::TokenStream stream(tokenizer);
  io::StopStrings stops(options.stops);
  ProgramText made;
  const auto take = [&](std::string_view part) {
    made.text += part;
    show(part);
  };
  std::vector<int32_t> next(prompt.begin(), prompt.end());
  for (int64_t position = 0; made.finish == Finish::none;) {
    if (position + static_cast<int64_t>(next.size()) > capacity()) {
      made.finish = Finish::full;
      break;
    }
    WEFT_TRY(const auto scores, scores_after(next, position));
    position += static_cast<int64_t>(next.size());
    const int32_t id = sampler.pick(scores);
    made.tokens.push_back(id);
    next.assign(1, id);
    if (std::ranges::find(options.ends, id) != options.ends.end()) {
      made.finish = Finish::end;
      break;
    }
    take(stops.push(stream.push(id)));
    if (stops.stopped())
      made.finish = Finish::stop;
    else if (static_cast<int64_t>(made.tokens.size()) == options.length)
      made.finish = Finish::length;
  }
  if (made.finish == Finish::stop) return made;
  take(stops.push(stream.finish()));
  if (stops.stopped())
    made.finish = Finish::stop;
  else
    take(stops.finish());
  return made;
}

}  // namespace weft::cli

#include "cli/text/sentences.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/element.h"

namespace weft::cli {
namespace {

using runtime::HostTensor;

constexpr std::string_view kIds = "input_ids", kMask = "attention_mask", kTypes = "token_type_ids";

const TensorType& type_of(const program::CompiledProgram& p, const program::Port& port) {
  return p.values[static_cast<size_t>(port.value)].type;
}

// The vectors of a text's first `n` tokens, `width` numbers each, as one.
std::vector<double> pooled(const HostTensor& hidden, size_t row, size_t length, size_t n, Pooling how) {
  const auto width = static_cast<size_t>(hidden.type.shape[2]);
  const auto at = [&](size_t token, size_t i) {
    return load_element<double>(hidden.type.dtype, hidden.bytes.data(), (row * length + token) * width + i);
  };
  std::vector<double> out(width);
  for (size_t i = 0; i < width; ++i) {
    double all = at(0, i);
    for (size_t token = 1; token < n && how != Pooling::first; ++token)
      all = how == Pooling::mean ? all + at(token, i) : std::max(all, at(token, i));
    out[i] = how == Pooling::mean ? all / static_cast<double>(n) : all;
  }
  return out;
}

std::vector<float> finished(std::vector<double> v, bool normalized) {
  if (normalized) {
    const double length = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    for (auto& x : v) x /= std::max(length, 1e-12);
  }
  return {v.begin(), v.end()};
}

}  // namespace

Result<Embedder> Embedder::make(std::unique_ptr<runtime::Session> session, io::Tokenizer tokenizer,
                                const SentenceConfig& config) {
  Embedder e(std::move(session), std::move(tokenizer), config);
  WEFT_CHECK(e.check_ports());
  auto& longest = e.config_.longest;
  if (!longest) longest = e.tokenizer_.longest();
  longest = std::min(longest.value_or(e.length_.max()), e.length_.max());
  return e;
}

Status Embedder::check_ports() {
  const auto& p = session_->program();
  const auto refuse = [&](std::string_view what) {
    return invalid(
        "program '{}': {}; texts want {} and {} (and perhaps {}) of integers [batch, length], and an "
        "output [batch, length, width] or [batch, width]",
        p.name, what, kIds, kMask, kTypes);
  };
  bool ids = false, mask = false;
  for (const auto& input : p.inputs) {
    const TensorType& type = type_of(p, input);
    if (input.name != kIds && input.name != kMask && input.name != kTypes)
      return refuse(fmt::format("it has an input '{}'", input.name));
    if ((type.dtype != DType::i64 && type.dtype != DType::i32) || type.rank() != 2)
      return refuse(fmt::format("its input '{}' is {}", input.name, weft::text(type)));
    ids |= input.name == kIds;
    mask |= input.name == kMask;
    batch_ = type.shape[0];
    length_ = type.shape[1];
  }
  if (!ids || !mask) return refuse(fmt::format("it has no input '{}'", ids ? kMask : kIds));
  if (p.outputs.empty()) return refuse("it has no output");
  const TensorType& out = type_of(p, p.outputs[0]);
  if (!is_float(out.dtype) || (out.rank() != 2 && out.rank() != 3))
    return refuse(fmt::format("its first output is {}", weft::text(out)));
  return {};
}

// Rows of a batch as long as the longest, or as the program wants them. Rows that it wants beyond those of
// texts have one token, so that no mean is of nothing.
std::vector<HostTensor> Embedder::inputs_of(std::span<const Ids* const> rows) const {
  size_t longest = 1;
  for (const Ids* row : rows) longest = std::max(longest, row->size());
  const auto width = std::max(static_cast<int64_t>(longest), length_.min());
  const auto height = std::max(static_cast<int64_t>(rows.size()), batch_.min());
  const int32_t filler = tokenizer_.padding().value_or(0);
  const auto& p = session_->program();
  std::vector<HostTensor> out;
  for (const auto& input : p.inputs) {
    HostTensor t{{type_of(p, input).dtype, {height, width}}, {}};
    t.bytes.resize(static_cast<size_t>(height * width) * byte_size(t.type.dtype));
    const auto put = [&](int64_t r, size_t c, int64_t value) {
      store_element(t.type.dtype, t.bytes.data(), static_cast<size_t>(r * width) + c, value);
    };
    for (int64_t r = 0; r < height; ++r) {
      const Ids* row = r < static_cast<int64_t>(rows.size()) ? rows[static_cast<size_t>(r)] : nullptr;
      const size_t n = row ? row->size() : 1;
      for (size_t c = 0; c < static_cast<size_t>(width); ++c) {
        if (input.name == kIds) put(r, c, row && c < n ? (*row)[c] : filler);
        if (input.name == kMask) put(r, c, c < n);
      }
    }
    out.push_back(std::move(t));
  }
  return out;
}

Status Embedder::run(std::span<const Ids* const> rows, std::span<Sentence* const> to) {
  WEFT_TRY(const auto out, session_->run(inputs_of(rows)));
  const HostTensor& first = out[0];
  const bool whole = first.type.shape.size() == 2;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<double> v;
    if (whole) {
      const auto width = static_cast<size_t>(first.type.shape[1]);
      for (size_t i = 0; i < width; ++i)
        v.push_back(load_element<double>(first.type.dtype, first.bytes.data(), r * width + i));
    } else {
      v = pooled(first, r, static_cast<size_t>(first.type.shape[1]), rows[r]->size(), config_.pooling);
    }
    to[r]->vector = finished(std::move(v), config_.normalized);
  }
  return {};
}

Result<std::vector<Sentence>> Embedder::operator()(std::span<const std::string> texts, int64_t batch) {
  std::vector<Sentence> out(texts.size());
  std::vector<Ids> ids;
  for (size_t i = 0; i < texts.size(); ++i) {
    ids.push_back(tokenizer_.encode(texts[i]));
    out[i].cut = static_cast<int64_t>(ids[i].size()) > *config_.longest;
    if (out[i].cut) ids[i] = tokenizer_.encode(texts[i], true, true, *config_.longest);
    if (ids[i].empty()) return invalid("text {} has no tokens", i + 1);
    out[i].tokens = ids[i].size();
  }
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](size_t i) { return ids[i].size(); });
  const auto most = static_cast<size_t>(std::min(std::max<int64_t>(batch, 1), batch_.max()));
  for (size_t begin = 0; begin < order.size(); begin += most) {
    std::vector<const Ids*> rows;
    std::vector<Sentence*> to;
    for (size_t k = begin; k < std::min(order.size(), begin + most); ++k) {
      rows.push_back(&ids[order[k]]);
      to.push_back(&out[order[k]]);
    }
    WEFT_CHECK(run(rows, to));
  }
  return out;
}

}  // namespace weft::cli

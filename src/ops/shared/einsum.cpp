#include "ops/shared/einsum.h"

#include <algorithm>
#include <bit>

namespace weft::ir {
namespace {

using shared::Contraction;
using shared::ContractionPath;
using shared::LabelSet;

constexpr int kLetters = 52,
              kMostLabels = 64;  // the axes of "..." are labels after the letters, from the right

int label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  return c >= 'a' && c <= 'z' ? 26 + c - 'a' : -1;
}
char letter_of(int label) { return static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26); }

LabelSet set_of(const Labels& labels) {
  LabelSet set = 0;
  for (const int label : labels)
    if (label != Einsum::kBroadcast) set |= LabelSet{1} << label;
  return set;
}
Labels labels_of(LabelSet set) {
  Labels all;
  for (; set; set &= set - 1) all.push_back(std::countr_zero(set));
  return all;
}

/// Renames labels to the first letters; a broadcast axis gets its own letter, over which it is summed.
std::string spelled(const Labels& a, const Labels& b, const Labels& result) {
  int letters[kMostLabels], next = 0;
  std::fill(std::begin(letters), std::end(letters), -1);
  const auto text = [&](const Labels& labels) {
    std::string s;
    for (const int label : labels) {
      if (label != Einsum::kBroadcast && letters[label] < 0) letters[label] = next++;
      s += letter_of(label == Einsum::kBroadcast ? next++ : letters[label]);
    }
    return s;
  };
  std::string s = text(a) + ',';
  s += text(b) + "->";
  return s + text(result);
}

/// One operand, or the result: letters before and after "...".
struct Term {
  Labels before, after;
  bool ellipsis = false;

  Labels with(int n) const {
    Labels all = before;
    for (int i = n; ellipsis && i-- > 0;) all.push_back(kLetters + i);
    for (const int label : after) all.push_back(label);
    return all;
  }
  int letters() const { return static_cast<int>(before.size() + after.size()); }
};

Result<Term> parse_term(std::string_view text, std::string_view equation) {
  Term t;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "..." && !t.ellipsis) {
      t.ellipsis = true, i += 2;
    } else if (const int label = label_of(text[i]); label >= 0) {
      (t.ellipsis ? t.after : t.before).push_back(label);
    } else {
      return invalid("einsum: \"{}\": letters and one \"...\" in each term, got '{}'", equation, text[i]);
    }
  }
  return t;
}

struct Terms {
  std::vector<Term> operands;
  std::optional<Term> result;
};
Result<Terms> parse_terms(std::string_view equation) {
  std::string plain;
  for (const char c : equation)
    if (c != ' ') plain += c;
  Terms terms;
  std::string_view rest = plain;
  if (const size_t arrow = rest.find("->"); arrow != rest.npos) {
    WEFT_TRY(terms.result, parse_term(rest.substr(arrow + 2), equation));
    rest = rest.substr(0, arrow);
  }
  for (size_t comma = 0; comma != rest.npos; rest = comma == rest.npos ? rest : rest.substr(comma + 1)) {
    comma = rest.find(',');
    WEFT_TRY(Term t, parse_term(rest.substr(0, comma), equation));
    terms.operands.push_back(std::move(t));
  }
  return terms;
}

/// Joins a label's size with one more axis that has it.
Status meet(Dim& size, Dim axis, std::string_view equation) {
  if (size == axis || axis == Dim(1)) return {};
  if (!(size == Dim(1)))
    return invalid("einsum: \"{}\": one letter for {} and {}", equation, size.text(), axis.text());
  size = axis;
  return {};
}

Labels implicit_result(const std::vector<Term>& operands, int ellipsis) {
  int times[kLetters] = {};
  for (const Term& t : operands)
    for (const int label : t.with(0)) ++times[label];
  Labels result;
  for (int i = ellipsis; i-- > 0;) result.push_back(kLetters + i);
  for (int label = 0; label < kLetters; ++label)
    if (times[label] == 1) result.push_back(label);
  return result;
}

Status check_result(const Einsum& e, std::string_view equation) {
  LabelSet known = 0, seen = 0;
  for (const Labels& o : e.operands)
    for (const int label : o) known |= LabelSet{1} << label;
  for (const int label : e.result) {
    const LabelSet one = LabelSet{1} << label;
    if (!(known & one) || (seen & one))
      return invalid("einsum: \"{}\": the result names each axis once, and only axes of operands", equation);
    seen |= one;
  }
  if (e.result.size() > kMostAxes)
    return invalid("einsum: \"{}\": a tensor has at most {} axes, the result would have {}", equation,
                   kMostAxes, e.result.size());
  return {};
}

}  // namespace

Result<Einsum> parse_einsum(std::string_view equation, std::span<const Shape> operands) {
  WEFT_TRY(const Terms terms, parse_terms(equation));
  if (terms.operands.size() != operands.size())
    return invalid("einsum: \"{}\" is for {} operands, got {}", equation, terms.operands.size(),
                   operands.size());
  Einsum e;
  e.sizes.assign(kMostLabels, Dim(1));
  int ellipsis = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Term& t = terms.operands[i];
    const int more = static_cast<int>(operands[i].size()) - t.letters();
    if (more < 0 || (more > 0 && !t.ellipsis) || more > kMostLabels - kLetters)
      return invalid("einsum: \"{}\": term {} does not name the axes of {}", equation, i, text(operands[i]));
    e.operands.push_back(t.with(more));
    ellipsis = std::max(ellipsis, more);
    for (size_t d = 0; d < operands[i].size(); ++d) {
      const Labels& own = e.operands[i];
      for (size_t other = 0; other < d; ++other)
        if (own[other] == own[d] && !(operands[i][other] == operands[i][d]))
          return invalid("einsum: \"{}\": a diagonal wants equal sizes, got {}", equation, text(operands[i]));
      WEFT_CHECK(meet(e.sizes[static_cast<size_t>(own[d])], operands[i][d], equation));
    }
  }
  e.result = terms.result ? terms.result->with(ellipsis) : implicit_result(terms.operands, ellipsis);
  WEFT_CHECK(check_result(e, equation));
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t d = 0; d < operands[i].size(); ++d)
      if (int& label = e.operands[i][d]; !(operands[i][d] == e.sizes[static_cast<size_t>(label)]))
        label = Einsum::kBroadcast;
  return e;
}

Contraction Einsum::contraction() const {
  Contraction c;
  for (const Labels& o : operands) c.operands.push_back(set_of(o));
  c.result = set_of(result);
  for (const Dim d : sizes) c.sizes.push_back(static_cast<double>(d.max()));
  return c;
}

Result<Einsum> parse_einsum(std::string_view equation, Types in) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < in.size() && in.has(i); ++i) shapes.push_back(in[i].shape);
  return parse_einsum(equation, shapes);
}

std::vector<EinsumStep> pairwise(const Einsum& e) {
  const Contraction c = e.contraction();
  std::vector<Labels> values = e.operands;
  std::vector<bool> left(values.size(), true);
  std::vector<EinsumStep> steps;
  const ContractionPath path = shared::find_path(c);
  for (const auto& [a, b] : path) {
    left[a] = left[b] = false;
    LabelSet others = 0;
    for (size_t i = 0; i < values.size(); ++i) others |= left[i] ? set_of(values[i]) : 0;
    const bool last = steps.size() + 1 == path.size();
    const Labels result =
        last ? e.result
             : labels_of(shared::contracted(set_of(values[a]), set_of(values[b]), others, c.result));
    steps.push_back({a, b, result, spelled(values[a], values[b], result)});
    values.push_back(result);
    left.push_back(true);
  }
  return steps;
}

}  // namespace weft::ir

#pragma once
#include <memory>

#include "ir/graph.h"

// Looks for parts of a graph by the ops that make a value: what the files of src/compiler/recompositions are
// written in.
namespace weft::compiler {

/// A tensor whose elements are all one number, as far as the graph says: value * times.
struct Constant {
  double value = 0;
  Dim times = 1;
};

/// What stands for the names in a term, where it fits.
class Match {
 public:
  int32_t value(std::string_view name) const { return *find(values_, name); }
  bool has(std::string_view name) const { return find(values_, name) != nullptr; }
  bool has_number(std::string_view name) const { return find(numbers_, name) != nullptr; }
  double number(std::string_view name) const { return *find(numbers_, name); }
  /// The axes that a fold folds: sorted, counted from the front.
  const IntList& axes(std::string_view name) const { return *find(axes_, name); }

  std::vector<size_t> nodes;  ///< that the term has matched, by their place; not those of its constants

 private:
  friend class Matcher;
  template <class T>
  using Named = std::vector<std::pair<std::string_view, T>>;
  template <class T>
  static const T* find(const Named<T>& all, std::string_view name) {
    for (const auto& [n, v] : all)
      if (n == name) return &v;
    return nullptr;
  }
  Named<int32_t> values_;
  Named<double> numbers_;
  Named<IntList> axes_;
};

/// A condition on one value.
class Term {
 public:
  enum class Kind : uint8_t { any, number, op, fold, either };
  struct Data;
  explicit Term(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const Data& operator*() const { return *data_; }
  /// The value that fits has a name: wherever the name stands, it is this value.
  Term as(std::string_view name) const;

 private:
  std::shared_ptr<const Data> data_;
};

namespace terms {

/// Any value; the same name means the same value.
Term any(std::string_view name);
/// A constant, whose number gets the name; or one that is `value`, rounded as its dtype has it.
Term number(std::string_view name);
Term number(double value);
/// A result of this op with these operands, and no others; add, mul, maximum and minimum also with the
/// operands exchanged.
Term op(const char* name, std::vector<Term> operands);
/// "sum", "mean", "max" or "variance" (of these numbers, not an estimate) of x over axes that get the name,
/// kept with size 1 or reshaped to that, and broadcast or not. A sum that is divided by the number of its
/// elements is a mean, too.
Term fold(const char* op, Term x, std::string_view axes);
/// The first that fits, or the second.
Term operator|(const Term& a, const Term& b);

// Made of these: what is written in several ways.
Term add(const Term& a, const Term& b);
Term sub(const Term& a, const Term& b);
Term mul(const Term& a, const Term& b);
Term div(const Term& a, const Term& b);
/// x, or a reshape of it.
Term viewed(const Term& x);
/// a b c, in any order and with any brackets.
Term product(const Term& a, const Term& b, const Term& c);
/// x times a constant, which may be written as a division by another one.
Term scaled(const Term& x, double by);
Term neg(const Term& x);
Term square(const Term& x);
Term sqrt(const Term& x);
Term reciprocal(const Term& x);
Term rsqrt(const Term& x);
Term sigmoid(const Term& x);

}  // namespace terms

/// Matches terms in a graph that may grow.
class Matcher {
 public:
  explicit Matcher(const ir::Graph& g);
  /// Makes known which node, by its place, makes the results of the last one of the graph.
  void add_last_node();
  /// The node that makes this value; null for those that none makes.
  const ir::Node* maker(int32_t value) const;
  /// Its place in the graph, or -1.
  int32_t place(int32_t value) const { return maker_[static_cast<size_t>(value)]; }
  const TensorType& type(int32_t value) const { return g_.types[static_cast<size_t>(value)]; }

  /// All the ways in which the term fits the value.
  std::vector<Match> matches(const Term& term, int32_t value) const { return solve(term, value, {}); }
  /// The constant that this value is, through views and casts that keep it.
  std::optional<Constant> constant(int32_t value) const;
  /// Is it made of weights and constants alone?
  bool made_of_weights(int32_t value) const { return of_weights_[static_cast<size_t>(value)]; }

 private:
  std::vector<Match> solve(const Term& t, int32_t value, const Match& so_far) const;
  std::vector<Match> solve_op(const Term::Data& t, int32_t value, const Match& so_far) const;
  std::vector<Match> solve_fold(const Term::Data& t, int32_t value, Match so_far) const;
  bool divides_by_count(const ir::Node& node, const ir::Node& sum) const;

  const ir::Graph& g_;
  std::vector<int32_t> maker_;    // by value: the place of a node, or -1
  std::vector<bool> of_weights_;  // by value
};

/// An attribute of a node.
const AttrValue& attr(const ir::Node& node, std::string_view name);
/// Is it a transpose or a permute that exchanges these two axes of a tensor, counted from the front, and no
/// others?
bool swaps_axes(const ir::Node& node, int64_t rank, int64_t a, int64_t b);

}  // namespace weft::compiler

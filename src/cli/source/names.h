#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weft::cli::source {

/// Names of variables in one function of C++.
class Names {
 public:
  /// What no variable may be called: functions that are called, words of the language.
  explicit Names(std::set<std::string> taken) : taken_(std::move(taken)) {}

  /// The first of `wishes` that is free, made a word; else the last one with a number behind it.
  std::string take(const std::vector<std::string>& wishes);

 private:
  std::set<std::string> taken_;
};

/// `text` as an identifier: other characters become underscores. May be empty.
std::string word(std::string_view text);

/// What the value of a node may be called, best first: the layer that made it, as "query" of
/// "blocks.0.attention.query.linear", or the node's own name. In a loop, numbers are left out.
std::vector<std::string> wishes_of(std::string_view node, std::string_view op, bool in_loop);
/// The layer of a weight: "query" of "blocks.0.attention.query.weight".
std::string layer_of(std::string_view weight);
/// "blocks.0" of "blocks.0.attention.query.linear"; empty where nothing is numbered.
std::string numbered_scope(std::string_view node);

}  // namespace weft::cli::source

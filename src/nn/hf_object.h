#pragma once
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "weft/status.h"

namespace weft::nn {

/// A field that does not affect Weft's results: with any value, or only with the value `only`, as JSON.
struct Harmless {
  const char* name;
  const char* only = nullptr;
};

/// The fields of an object in a file. A null field counts as absent. Records which were read, so that none is
/// silently ignored.
class Object {
 public:
  Object(std::string path, nlohmann::json root) : path_(std::move(path)), root_(std::move(root)) {}

  bool has(const char* name) const;
  /// An integer from `least` to `most`, far beyond useful values and small enough that no product overflows
  /// 64 bits. Raises corrupt, as all of these do, for another value, and for an absent one without
  /// `otherwise`.
  int64_t size(const char* name, std::optional<int64_t> otherwise = {}, int64_t least = 1,
               int64_t most = 1 << 28) const;
  double positive(const char* name, std::optional<double> otherwise = {}) const;
  double between(const char* name, double least, double most) const;
  bool flag(const char* name, bool otherwise) const;
  std::string word(const char* name, std::optional<std::string> otherwise = {}) const;
  Object object(const char* name) const;
  /// One token, or a list of them; none if the field is absent.
  std::vector<int32_t> tokens(const char* name) const;
  /// One text, or a list of them; none if the field is absent.
  std::vector<std::string> words(const char* name) const;

  /// Refuses every field that was neither read nor harmless. `what` names the reader of the object: "llama".
  void refuse_the_rest(const std::string& what,
                       std::initializer_list<std::span<const Harmless>> harmless) const;
  Error unsupported(const char* name, const std::string& wanted) const;

 private:
  const nlohmann::json* find(const char* name, bool optional) const;
  Error bad(const char* name, const std::string& wanted) const;

  std::string path_;
  nlohmann::json root_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace weft::nn

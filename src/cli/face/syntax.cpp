#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "cli/command.h"
#include "cli/face/face.h"

namespace weft::cli {

namespace {

std::string checked_number(const std::string& text, const char* range, auto holds) {
  const double v = std::atof(text.c_str());
  return std::isfinite(v) && holds(v) ? "" : fmt::format("must be a number {}, got {}", range, text);
}

}  // namespace

std::string positive(const std::string& text) {
  return checked_number(text, "above 0", [](double v) { return v > 0; });
}
std::string from_zero(const std::string& text) {
  return checked_number(text, "from 0", [](double v) { return v >= 0; });
}
std::string share(const std::string& text) {
  return checked_number(text, "from 0 to 1", [](double v) { return v >= 0 && v <= 1; });
}
std::string some_name(const std::string& text) { return text.empty() ? "must not be empty" : ""; }

Option& Option::required() { return option_->required(), *this; }
Option& Option::with_commas() { return option_->delimiter(','), *this; }
Option& Option::type_name(const std::string& word) { return option_->type_name(word), *this; }
Option& Option::capture_default_str() { return option_->capture_default_str(), *this; }
Option& Option::range(int64_t least, int64_t most) { return option_->check(CLI::Range(least, most)), *this; }
Option& Option::range(double least, double most) { return option_->check(CLI::Range(least, most)), *this; }
Option& Option::one_of(std::vector<std::string> words) {
  return option_->check(CLI::IsMember(std::move(words))), *this;
}
Option& Option::check(std::function<std::string(const std::string&)> wrong) {
  return option_->check(std::move(wrong)), *this;
}
Option& Option::excludes(const Option& other) { return option_->excludes(other.option_), *this; }
Option& Option::excludes(const std::string& other) { return option_->excludes(other), *this; }
Option& Option::one_at_a_time() { return option_->allow_extra_args(false), *this; }

Option Syntax::add_option(const std::string& name, std::string& to, const std::string& help) {
  return Option(app_.add_option(name, to, help));
}
Option Syntax::add_option(const std::string& name, std::vector<std::string>& to, const std::string& help) {
  return Option(app_.add_option(name, to, help));
}
Option Syntax::add_option(const std::string& name, int& to, const std::string& help) {
  return Option(app_.add_option(name, to, help));
}
Option Syntax::add_option(const std::string& name, int64_t& to, const std::string& help) {
  return Option(app_.add_option(name, to, help));
}
Option Syntax::add_option(const std::string& name, uint64_t& to, const std::string& help) {
  return Option(app_.add_option(name, to, help));
}
Option Syntax::add_option(const std::string& name, double& to, const std::string& help) {
  return Option(app_.add_option(name, to, help));
}
Option Syntax::add_flag(const std::string& name, bool& to, const std::string& help) {
  return Option(app_.add_flag(name, to, help));
}
Option Syntax::add_function(const std::string& name, const std::string& help,
                            std::function<void(const std::string&)> take) {
  return Option(app_.add_option_function<std::string>(name, take, help));
}
void Syntax::require_one(std::vector<std::string> names) {
  app_.parse_complete_callback([this, names = std::move(names)] {
    if (std::ranges::none_of(names, [&](const auto& name) { return given(name); }))
      throw CLI::RequiredError(joined(names, " or "));
  });
}
void Syntax::footer(const std::string& text) { app_.footer(text); }

bool Syntax::given(const std::string& name) const {
  const auto* found = app_.get_option_no_throw(name);
  return found && found->count() > 0;
}
const CLI::App& Syntax::program() const { return *app_.get_parent(); }

}  // namespace weft::cli

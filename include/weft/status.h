#pragma once
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

/// On what only failures run: it is kept out of its callers, which stay small and quick to compile.
#define WEFT_COLD [[gnu::cold, gnu::noinline]]

namespace weft {

/// What kind of failure a Status reports. The numbers are those of `weft_code` in backend.h.
enum class Code : int {
  ok = 0,
  invalid_argument = 1,  ///< The caller passed something that no backend could serve.
  unsupported = 2,       ///< Valid, but nothing here can do it.
  out_of_memory = 3,
  unavailable = 4,  ///< A library, device or file that should be there is not.
  corrupt = 5,      ///< Data that fails its integrity check.
  io = 6,
  version = 7,  ///< Two sides that do not speak the same version.
  device = 8,   ///< The device reported an error while running.
  internal = 9,
};

const char* code_name(Code code);

/// Success, or a code and a text that says what, where, got, wanted and what to do.
class [[nodiscard]] Status {
 public:
  Status() = default;
  WEFT_COLD Status(Code code, std::string message) : state_(new State{code, std::move(message)}) {}
  WEFT_COLD Status(const Status& other) : state_(other.state_ ? new State(*other.state_) : nullptr) {}
  Status(Status&&) = default;
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status& operator=(Status&&) = default;

  bool ok() const { return !state_; }
  Code code() const { return state_ ? state_->code : Code::ok; }
  const std::string& message() const {
    static const std::string none;
    return state_ ? state_->message : none;
  }
  /// "unsupported: softmax on far:0 ...", for printing.
  WEFT_COLD std::string text() const {
    return ok() ? "ok" : fmt::format("{}: {}", code_name(code()), message());
  }
  /// The same failure with `where` put before the message, so that context grows while it travels up.
  WEFT_COLD Status at(std::string_view where) && {
    if (state_) state_->message = fmt::format("{}: {}", where, state_->message);
    return std::move(*this);
  }

 private:
  struct State {
    Code code;
    std::string message;
  };
  struct Drop {
    WEFT_COLD void operator()(State* state) const { delete state; }
  };
  std::unique_ptr<State, Drop> state_;
};

template <class... A>
WEFT_COLD Status fail(Code code, fmt::format_string<A...> text, A&&... args) {
  return Status(code, fmt::format(text, std::forward<A>(args)...));
}
template <class... A>
WEFT_COLD Status invalid(fmt::format_string<A...> text, A&&... args) {
  return Status(Code::invalid_argument, fmt::format(text, std::forward<A>(args)...));
}

/// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  Status take_status() { return std::move(status_); }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  T& operator*() & { return *value_; }
  T&& operator*() && { return std::move(*value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

/// The one exception type of the public surface; below it, everything returns Status.
class Error : public std::exception {
 public:
  explicit Error(Status status) : status_(std::move(status)), text_(status_.text()) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
  std::string text_;
};

inline void raise_if(Status status) {
  if (!status.ok()) throw Error(std::move(status));
}
template <class T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) throw Error(result.take_status());
  return std::move(result).value();
}

}  // namespace weft

#define WEFT_CONCAT_(a, b) a##b
#define WEFT_CONCAT(a, b) WEFT_CONCAT_(a, b)
#define WEFT_TRY_(tmp, decl, expr)         \
  auto tmp = (expr);                       \
  if (!tmp.ok()) return tmp.take_status(); \
  decl = std::move(tmp).value()
/// `WEFT_TRY(const int64_t axis, resolve_axis(...));` declares `axis`, or returns the failure.
#define WEFT_TRY(decl, ...) WEFT_TRY_(WEFT_CONCAT(weft_try_, __COUNTER__), decl, (__VA_ARGS__))
/// Returns the failure of an expression that gives a Status.
#define WEFT_CHECK(...)                                                                    \
  do {                                                                                     \
    if (::weft::Status weft_status = (__VA_ARGS__); !weft_status.ok()) return weft_status; \
  } while (false)

#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "weft/backend.h"
#include "weft/dtype.h"

// What the C functions of a backend are written with: sized structs, texts of errors, the host's services.
namespace weft::backend {

// ---- sized structs
// ----------------------------------------------------------------------------------------------

/// The field, or zero where the struct was made before the field was added.
template <class S, class F>
F read(const S* s, F S::* field) {
  const auto at = reinterpret_cast<const char*>(&(s->*field)) - reinterpret_cast<const char*>(s);
  return static_cast<size_t>(at) + sizeof(F) <= s->size ? s->*field : F{};
}
/// Sets the field unless the struct is older than it.
template <class S, class F, class V>
void write(S* s, F S::* field, const V& value) {
  const auto at = reinterpret_cast<const char*>(&(s->*field)) - reinterpret_cast<const char*>(s);
  if (static_cast<size_t>(at) + sizeof(F) <= s->size) s->*field = static_cast<F>(value);
}
/// The same for a text field: cut to what fits, always ended by a zero.
template <class S, size_t N>
void write_text(S* s, char (S::*field)[N], std::string_view text) {
  char(&to)[N] = s->*field;
  if (static_cast<size_t>(&to[0] - reinterpret_cast<const char*>(s)) + N > s->size) return;
  const size_t n = text.size() < N - 1 ? text.size() : N - 1;
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

// ---- text
// -------------------------------------------------------------------------------------------------------

namespace detail {
template <class T>
void append(std::string& out, const T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    out += v ? "true" : "false";
  } else if constexpr (std::is_same_v<T, DType>) {
    out += name(v);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    out += std::to_string(v);
  } else if constexpr (std::is_floating_point_v<T>) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", static_cast<double>(v));
    out += text;
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    out += std::string_view(v);
  } else {  // a range: [2, 3]
    const char* comma = "[";
    for (const auto& x : v) append(out += std::exchange(comma, ", "), x);
    out += comma[0] == '[' ? "[]" : "]";
  }
}
inline void format_rest(std::string& out, std::string_view pattern) { out += pattern; }
template <class T, class... Rest>
void format_rest(std::string& out, std::string_view pattern, const T& first, const Rest&... rest) {
  const size_t at = pattern.find("{}");
  out += pattern.substr(0, at);
  if (at == std::string_view::npos) return;
  append(out, first);
  format_rest(out, pattern.substr(at + 2), rest...);
}
}  // namespace detail

/// Each "{}" of the pattern stands for the next argument: numbers, text, dtypes and ranges of them.
template <class... Args>
std::string format(std::string_view pattern, const Args&... args) {
  std::string out;
  detail::format_rest(out, pattern, args...);
  return out;
}

/// Writes the text, cut to what fits; `error` may be null.
inline weft_code fill(weft_error* error, weft_code code, std::string_view text) {
  constexpr size_t head = offsetof(weft_error, text);
  if (error == nullptr || error->size <= head) return code;
  const size_t room = std::min<size_t>(error->size, sizeof(weft_error)) - head - 1;
  const size_t n = text.size() < room ? text.size() : room;
  std::memcpy(error->text, text.data(), n);
  error->text[n] = 0;
  return code;
}

/// What came of an action: nothing to say, or a code with a text.
struct [[nodiscard]] Outcome {
  weft_code code = WEFT_OK;
  std::string text;

  static Outcome ok() { return {}; }
  template <class... Args>
  static Outcome fail(weft_code code, std::string_view pattern, const Args&... args) {
    return {code, format(pattern, args...)};
  }
  bool good() const { return code == WEFT_OK; }
};

/// Whether a kernel takes a call, and why not.
struct [[nodiscard]] Support {
  bool accepted = true;
  std::string reason;

  static Support yes() { return {}; }
  template <class... Args>
  static Support no(std::string_view pattern, const Args&... args) {
    return {false, format(pattern, args...)};
  }
  explicit operator bool() const { return accepted; }
};

/// Runs `f`, which returns an Outcome; whatever it throws ends here. Every C function of a backend goes
/// through this.
template <class F>
weft_code guarded(weft_error* error, F&& f) noexcept {
  try {
    const Outcome outcome = f();
    return outcome.good() ? WEFT_OK : fill(error, outcome.code, outcome.text);
  } catch (const std::bad_alloc&) {
    return fill(error, WEFT_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& e) {
    return fill(error, WEFT_INTERNAL, e.what());
  } catch (...) {
    return fill(error, WEFT_INTERNAL, "an exception of unknown type");
  }
}

// ---- the host
// ---------------------------------------------------------------------------------------------------

/// The host's services; each does something sensible where the host lacks it.
class Host {
 public:
  Host() = default;
  explicit Host(const weft_host* host) : host_(host) {}

  /// Refuses a host that does not speak this header's version.
  Outcome speaks() const {
    if (host_ == nullptr) return Outcome::fail(WEFT_VERSION, "no host was given");
    if (host_->abi_min <= WEFT_ABI && WEFT_ABI <= host_->abi_max) return Outcome::ok();
    return Outcome::fail(WEFT_VERSION, "built for ABI {}, the host speaks {} to {}", WEFT_ABI, host_->abi_min,
                         host_->abi_max);
  }
  void log(uint32_t level, const std::string& text) const {
    if (host_ == nullptr) return;
    if (auto* f = read(host_, &weft_host::log)) f(level, text.c_str());
  }
  /// body(begin, end) over pieces of [0, n); what a piece throws is thrown here, after all have ended.
  template <class Body>
  void parallel_for(int64_t n, int64_t grain, Body&& body) const {
    if (n <= 0) return;
    auto* spread = host_ == nullptr ? nullptr : read(host_, &weft_host::parallel_for);
    if (spread == nullptr || n <= grain) return body(int64_t{0}, n);
    using Own = std::remove_reference_t<Body>;
    const Piece piece = [](const void* own, int64_t begin, int64_t end) {
      (*static_cast<Own*>(const_cast<void*>(own)))(begin, end);
    };
    spread_pieces(n, grain, piece, &body);
  }

 private:
  using Piece = void (*)(const void* body, int64_t begin, int64_t end);

  /// No template: what it takes to bring an exception back is compiled once.
  [[gnu::noinline]] void spread_pieces(int64_t n, int64_t grain, Piece piece, const void* body) const {
    struct Context {
      Piece piece;
      const void* body;
      std::mutex mutex;
      std::exception_ptr failure;
    } context{piece, body, {}, {}};
    host_->parallel_for(
        n, grain,
        [](void* raw, int64_t begin, int64_t end) {
          auto& c = *static_cast<Context*>(raw);
          try {
            c.piece(c.body, begin, end);
          } catch (...) {
            const std::lock_guard lock(c.mutex);
            c.failure = std::current_exception();
          }
        },
        &context);
    if (context.failure) std::rethrow_exception(context.failure);
  }

  const weft_host* host_ = nullptr;
};

}  // namespace weft::backend

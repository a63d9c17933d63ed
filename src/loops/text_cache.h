#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>

#include "codegen/render.h"
#include "weft/backend.h"

namespace weft::loops {

/// A function of one opened device: compiled, or noted to be compiled together with others.
struct Compiled {
  codegen::Function function;
  std::atomic<weft_module> module{nullptr};
};

/// Compiled texts of one opened device: equal functions are compiled once, whatever call they come from, and
/// those that were noted meanwhile together, as programs of many. Safe from any thread; a second thread that
/// wants a function waits until the first has compiled it. Modules live as long as the device: its
/// close_device ends those that are left.
class TextCache {
 public:
  TextCache(const weft_backend& backend, weft_device device, const codegen::Dialect& dialect)
      : backend_(backend), device_(device), dialect_(dialect) {}

  /// The place of a function, which stays; compiled now unless `later`.
  Result<Compiled*> want(codegen::Function function, bool later);
  /// Compiles what was noted.
  Status compile_noted();

 private:
  Status compile_together(std::span<Compiled* const> some);

  const weft_backend& backend_;
  weft_device device_;
  const codegen::Dialect& dialect_;
  std::mutex mutex_;
  std::unordered_map<std::string, Compiled> all_;
  std::vector<Compiled*> noted_;
};

}  // namespace weft::loops

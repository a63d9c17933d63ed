#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <unordered_map>

#include "codegen/render.h"
#include "weft/backend.h"

namespace weft::loops {

/// A function of one opened device: compiled, or to be compiled, maybe together with others.
struct Compiled {
  codegen::Function function;
  std::atomic<weft_module> module{nullptr};
};

/// Texts of one opened device: equal functions are compiled once, whatever call they come from. Safe from any
/// thread; one that needs a function which another is compiling waits for it. Modules live as long as the
/// device: its close_device ends those that are left.
class TextCache {
 public:
  TextCache(const weft_backend& backend, weft_device device, const codegen::Dialect& dialect)
      : backend_(backend), device_(device), dialect_(dialect) {}

  /// The place of a function, which stays.
  Compiled& place(codegen::Function function);
  /// Compiles those that are not yet, many to a program. One that the device refuses leaves the others alone;
  /// its error is the result.
  Status compile(std::span<Compiled* const> wanted);

 private:
  /// In one program; where that fails, one by one, so that a bad one stands alone.
  Status compile_or_single_out(std::span<Compiled* const> some);
  Status compile_program(std::span<Compiled* const> some);

  const weft_backend& backend_;
  weft_device device_;
  const codegen::Dialect& dialect_;
  std::mutex mutex_;  // of the map alone: finding a function does not wait for a compiler
  std::unordered_map<std::string, Compiled> all_;
  std::mutex compiling_;
};

}  // namespace weft::loops

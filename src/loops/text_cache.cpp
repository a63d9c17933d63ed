#include "loops/text_cache.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "base/thread_pool.h"
#include "loops/loops.h"

namespace weft::loops {
namespace {

/// Hashes of every text of this process. Created on first use, so nothing runs before main.
struct Seen {
  std::mutex mutex;
  std::unordered_set<size_t> texts;
  std::atomic<uint64_t> programs{0}, compiled{0};
};
Seen& seen() {
  static Seen& all = *new Seen;  // never destroyed: records live until the process ends
  return all;
}

}  // namespace

Compiled& TextCache::place(codegen::Function function) {
  std::lock_guard lock(mutex_);
  const auto [found, fresh] = all_.try_emplace(function.text);
  if (fresh) {
    std::lock_guard count(seen().mutex);
    seen().texts.insert(std::hash<std::string>{}(function.text));
    found->second.function = std::move(function);
  }
  return found->second;
}

Status TextCache::compile(std::span<Compiled* const> wanted) {
  std::lock_guard lock(compiling_);
  std::vector<Compiled*> missing;
  for (Compiled* c : wanted)
    if (!c->module && std::find(missing.begin(), missing.end(), c) == missing.end()) missing.push_back(c);
  constexpr size_t kLeast =
      16;  // functions per program: takes half the time of one each on PoCL; 64 take longer
  const size_t programs = std::max(std::min<size_t>(1, missing.size()), missing.size() / kLeast);
  std::vector<Status> ends(programs);
  const auto compile_some = [&](size_t i) {
    const size_t begin = missing.size() * i / programs, end = missing.size() * (i + 1) / programs;
    ends[i] = compile_or_single_out(std::span(missing).subspan(begin, end - begin));
  };
  // Compiles on several threads: drivers compile on the calling thread.
  parallel_for(
      static_cast<int64_t>(programs), 1,
      [](void* context, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          (*static_cast<decltype(compile_some)*>(context))(static_cast<size_t>(i));
      },
      const_cast<void*>(static_cast<const void*>(&compile_some)));
  Status first;
  for (Status& s : ends)
    if (first.ok()) first = std::move(s);
  return first;
}

Status TextCache::compile_or_single_out(std::span<Compiled* const> some) {
  Status first = compile_program(some);
  if (first.ok() || some.size() == 1) return first;
  first = {};
  for (Compiled* c : some)
    if (!c->module)
      if (Status s = compile_program({&c, 1}); first.ok()) first = std::move(s);
  return first;
}

// One text for all functions; a backend builds it once for several of them.
Status TextCache::compile_program(std::span<Compiled* const> some) {
  std::vector<const codegen::Function*> functions;
  for (const Compiled* c : some) functions.push_back(&c->function);
  const std::string text = codegen::program_of(functions, dialect_);
  ++seen().programs, seen().compiled += some.size();
  for (size_t i = 0; i < some.size(); ++i) {
    const std::string entry = codegen::entry_of(i);
    const weft_source source = {
        .size = sizeof source, .reserved = 0, .text = text.c_str(), .entry = entry.c_str()};
    weft_error error{};
    error.size = sizeof error;
    weft_module module = nullptr;
    if (const weft_code code = backend_.compile(device_, &source, &module, &error); code != WEFT_OK)
      return Status(static_cast<Code>(code), error.text);
    some[i]->module = module;
  }
  return {};
}

uint64_t distinct_texts() {
  std::lock_guard lock(seen().mutex);
  return seen().texts.size();
}
Compilations compilations() { return {seen().programs, seen().compiled}; }

}  // namespace weft::loops

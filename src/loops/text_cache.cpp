#include "loops/text_cache.h"

#include <atomic>
#include <unordered_set>

#include "codegen/render.h"
#include "loops/loops.h"

namespace weft::loops {
namespace {

/// Hashes of every text of this process. Made at first use, so that nothing runs before main.
struct Seen {
  std::mutex mutex;
  std::unordered_set<size_t> texts;
  std::atomic<uint64_t> compilations{0};
};
Seen& seen() {
  static Seen& all = *new Seen;  // never destroyed: records live until the process ends
  return all;
}

}  // namespace

Result<weft_module> TextCache::compile(const std::string& text) {
  std::lock_guard lock(mutex_);
  if (auto found = modules_.find(text); found != modules_.end()) return found->second;
  {
    std::lock_guard count(seen().mutex);
    seen().texts.insert(std::hash<std::string>{}(text));
  }
  weft_source source{};
  source.size = sizeof source;
  source.text = text.c_str();
  source.entry = codegen::kEntry;
  weft_error error{};
  error.size = sizeof error;
  weft_module module = nullptr;
  ++seen().compilations;
  if (const weft_code code = backend_.compile(device_, &source, &module, &error); code != WEFT_OK)
    return Status(static_cast<Code>(code), error.text);
  modules_.emplace(text, module);
  return module;
}

uint64_t distinct_texts() {
  std::lock_guard lock(seen().mutex);
  return seen().texts.size();
}
uint64_t compilations() { return seen().compilations; }

}  // namespace weft::loops

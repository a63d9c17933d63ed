#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "weft/backend.hpp"

// Memory behind opaque handles: a handle is an address in an inaccessible reservation, and the bytes are a
// constant distance above it. Free memory is filled with 0xFF, so a stale or early read gives NaN.
namespace far {

using weft::backend::Outcome;

class Queue;

class Memory {
 public:
  static constexpr uint64_t kSpan = uint64_t{4} << 30, kMaxBuffer = uint64_t{64} << 20, kAlignment = 256;

  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (base_ != nullptr) munmap(base_, 2 * kSpan);
  }

  Outcome reserve() {
    void* at = mmap(nullptr, 2 * kSpan, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return Outcome::fail(WEFT_OUT_OF_MEMORY, "cannot reserve {} bytes", 2 * kSpan);
    base_ = static_cast<char*>(at);
    if (mprotect(base_ + kSpan, kSpan, PROT_READ | PROT_WRITE) != 0)
      return Outcome::fail(WEFT_OUT_OF_MEMORY, "cannot map {} bytes", kSpan);
    free_[0] = kSpan;
    return Outcome::ok();
  }

  char* real(void* handle) {
    const std::lock_guard lock(mutex_);
    const auto at = blocks_.find(key(handle));
    return at == blocks_.end() ? nullptr : real(*at);
  }

  Outcome allocate(uint64_t bytes, void** handle) {
    if (bytes > kMaxBuffer)
      return Outcome::fail(WEFT_UNSUPPORTED, "a buffer holds at most {} bytes, {} were asked for", kMaxBuffer,
                           bytes);
    const uint64_t size = (bytes / kAlignment + 1) * kAlignment;
    const std::lock_guard lock(mutex_);
    for (auto& [offset, room] : free_) {
      if (room < size) continue;
      const uint64_t at = offset, left = room - size;
      free_.erase(at);
      if (left > 0) free_[at + size] = left;
      blocks_[at] = {.bytes = bytes, .size = size};
      *handle = base_ + at;
      std::memset(base_ + kSpan + at, 0xFF, size);
      return Outcome::ok();
    }
    return Outcome::fail(WEFT_OUT_OF_MEMORY, "no {} bytes are left of {}", bytes, kSpan);
  }
  /// A handle for bytes that another owner allocated.
  Outcome import(char* address, uint64_t bytes, void** handle) {
    if (auto outcome = allocate(bytes, handle); !outcome.good()) return outcome;
    const std::lock_guard lock(mutex_);
    blocks_.at(key(*handle)).imported = address;
    return Outcome::ok();
  }

  /// What is wrong with these bytes of a buffer, if anything.
  Outcome check(void* handle, uint64_t offset, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto at = blocks_.find(key(handle));
    if (at == blocks_.end() || at->second.dying)
      return Outcome::fail(WEFT_INVALID_ARGUMENT, "no buffer has this handle");
    if (offset <= at->second.bytes && bytes <= at->second.bytes - offset) return Outcome::ok();
    return Outcome::fail(WEFT_INVALID_ARGUMENT, "bytes {} to {} of a buffer of {}", offset, offset + bytes,
                         at->second.bytes);
  }

  /// Records that a queue will use the buffer, or that it has.
  void hold(void* handle, Queue* queue, const std::string& user) {
    const std::lock_guard lock(mutex_);
    blocks_.at(key(handle)).users.push_back({queue, user});
  }
  void release(void* handle, const Queue* queue) {
    const std::lock_guard lock(mutex_);
    const auto at = blocks_.find(key(handle));
    auto& users = at->second.users;
    users.erase(std::ranges::find(users, queue, &User::queue));  // uses of a queue end in order
    if (users.empty() && at->second.dying) give_back(at);
  }

  /// False if no buffer has the handle. Calls `pending` with the users that have yet to use the buffer; its
  /// memory stays until they have. Under the lock: without it their queue might be closed.
  bool free(void* handle, const std::function<void(Queue&, const std::string& user)>& pending) {
    const std::lock_guard lock(mutex_);
    const auto at = blocks_.find(key(handle));
    if (at == blocks_.end() || at->second.dying) return false;
    if (at->second.users.empty()) {
      give_back(at);
      return true;
    }
    at->second.dying = true;
    const User& last = at->second.users.back();
    pending(*last.queue, last.name);
    return true;
  }

  size_t count() {
    const std::lock_guard lock(mutex_);
    return blocks_.size();
  }

 private:
  /// A task that has not run yet, so its queue is open.
  struct User {
    Queue* queue;
    std::string name;
  };
  struct Block {
    uint64_t bytes = 0, size = 0;
    std::vector<User> users = {};
    bool dying = false;
    char* imported = nullptr;  // where the bytes of an import are
  };
  char* real(const std::pair<const uint64_t, Block>& block) const {
    return block.second.imported ? block.second.imported : base_ + kSpan + block.first;
  }

  uint64_t key(void* handle) const {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(base_));
  }

  void give_back(std::map<uint64_t, Block>::iterator block) {
    uint64_t at = block->first, size = block->second.size;
    std::memset(base_ + kSpan + at, 0xFF, size);
    blocks_.erase(block);
    const auto next = free_.lower_bound(at);
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first;
        size += before->second;
        free_.erase(before);
      }
    }
    if (next != free_.end() && at + size == next->first) {
      size += next->second;
      free_.erase(next);
    }
    free_[at] = size;
  }

  char* base_ = nullptr;
  std::mutex mutex_;
  std::map<uint64_t, Block> blocks_;  // by offset from base_
  std::map<uint64_t, uint64_t> free_;
};

}  // namespace far

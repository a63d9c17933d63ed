#include <cstring>
#include <map>

#include "conformance/liars/liar.h"

// Imports that are separated from their owner's memory.
namespace weft::conformance {
namespace {

// A copy of the bytes in the device's memory.
class ImportsACopy : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code import_memory(weft_device d, const DLTensor* t, uint64_t bytes, void** handle,
                          weft_error* e) override {
    if (const weft_code code = Drawn::allocate(d, bytes, handle, e); code != WEFT_OK) return code;
    const weft_copy copy{.size = sizeof copy,
                         .target = *handle,
                         .host_source = static_cast<const char*>(t->data) + t->byte_offset,
                         .bytes = bytes};
    weft_queue q = nullptr;
    if (const weft_code code = Drawn::open_queue(d, &q, e); code != WEFT_OK) return code;
    const weft_code code = Drawn::copy(q, &copy, e);
    Drawn::close_queue(q);
    return code;
  }
};

// Ignores some offsets into the imported memory.
class ForgetsOffsets : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code import_memory(weft_device d, const DLTensor* t, uint64_t bytes, void** handle,
                          weft_error* e) override {
    DLTensor other = *t;
    other.byte_offset -= other.byte_offset % grain_;
    return Drawn::import_memory(d, &other, bytes, handle, e);
  }

 private:
  const uint64_t grain_ = uint64_t{8} << between(random_, 0, 4);
};

// Releasing an import overwrites the owner's memory.
class EndsImports : public Drawn {
 public:
  using Drawn::Drawn;
  weft_code import_memory(weft_device d, const DLTensor* t, uint64_t bytes, void** handle,
                          weft_error* e) override {
    const weft_code code = Drawn::import_memory(d, t, bytes, handle, e);
    if (code == WEFT_OK) imported_[*handle] = {static_cast<char*>(t->data) + t->byte_offset, bytes};
    return code;
  }
  void free(weft_device d, void* handle) override {
    if (const auto at = imported_.find(handle); at != imported_.end()) {
      std::memset(at->second.first, 0, std::min(at->second.second, most_));
      imported_.erase(at);
    }
    Drawn::free(d, handle);
  }

 private:
  const uint64_t most_ = between(random_, 4, 4000);
  std::map<void*, std::pair<char*, uint64_t>> imported_;
};

constexpr Liar kImportsLiars[] = {
    {"liar_imports_a_copy", "far", "copies memory that it should import", "imports_memory",
     make_liar<ImportsACopy>, lacks_imports},
    {"liar_forgets_offsets", "far", "imports memory from a round address on", "imports_memory",
     make_liar<ForgetsOffsets>, lacks_imports},
    {"liar_ends_imports", "far", "writes over imported memory when it is released", "imports_memory",
     make_liar<EndsImports>, lacks_imports},
};

}  // namespace

Liars imports_liars() { return kImportsLiars; }

}  // namespace weft::conformance

#include <array>
#include <cstring>
#include <filesystem>
#include <new>

#include "base/file_to_read.h"
#include "base/output_file.h"
#include "program/container.h"
#include "program/plan.h"

namespace weft::program {

static Result<Blob> map_file(const std::string& path) {
  WEFT_TRY(const auto file, FileToRead::open(path));
  WEFT_TRY(auto mapped, file.map());
  return Blob{mapped.bytes.data(), mapped.bytes.size(), std::move(mapped.owner)};
}

Blob Blob::copy_of(const void* bytes, uint64_t n) {
  constexpr std::align_val_t kAlign{64};
  std::shared_ptr<void> memory(::operator new(n, kAlign), [](void* p) { ::operator delete(p, kAlign); });
  if (n > 0) std::memcpy(memory.get(), bytes, n);
  return {static_cast<const std::byte*>(memory.get()), n, memory};
}

static Status write_container(const std::string& head, std::span<const Blob> blobs, const std::string& path) {
  WEFT_TRY(auto file, OutputFile::open(path));
  WEFT_CHECK(file.write(std::as_bytes(std::span(head))));
  constexpr std::array<std::byte, 64> kZeros{};
  for (size_t i = 0; i < blobs.size(); ++i) {
    WEFT_CHECK(file.write({blobs[i].data, blobs[i].size}));
    WEFT_CHECK(file.write(std::span(kZeros).first(blob_padding(blobs, i))));
  }
  return file.commit();
}

static std::string in_folder_of(const std::string& path, const std::string& name) {
  return (std::filesystem::path(path).parent_path() / name).string();
}

// The weights come first: a program that lies there finds them.
static Status write_beside_each_other(const CompiledProgram& program, const std::string& path,
                                      const std::string& weights) {
  if (weights == std::filesystem::path(path).filename())
    return invalid("'{}' can't be the file of the weights, too", path);
  const std::string beside = write_beside(program, weights), names = write_weights(program);
  WEFT_CHECK(write_container(container_head({{"weights", names}}, program.blobs, Holds::weights),
                             program.blobs, in_folder_of(path, weights)));
  return write_container(write_head(program, beside), {}, path);
}

Status write_file(const CompiledProgram& program, const std::string& path, const std::string& weights) {
  WEFT_CHECK(verify(program).at("program not written"));
  WEFT_CHECK(check_tests(program).at("program not written: its tests"));
  if (!weights.empty()) return write_beside_each_other(program, path, weights);
  return write_container(write_head(program), program.blobs, path);
}

Result<CompiledProgram> read_file(const std::string& path) {
  WEFT_TRY(Blob bytes, map_file(path));
  const auto beside = [&](const std::string& name) { return map_file(in_folder_of(path, name)); };
  auto program = deserialize(std::move(bytes), beside);
  if (!program.ok()) return program.take_status().at(path);
  return program;
}

}  // namespace weft::program

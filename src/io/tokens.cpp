#include <filesystem>
#include <fstream>

#include "formats/safetensors.h"
#include "weft/data.h"

namespace weft::io {

constexpr const char* kTensor = "tokens";
constexpr const char *kTokenizer = "tokenizer", *kConfig = "tokenizer_config";

Tokens::Tokens(std::shared_ptr<const void> owner, std::span<const int32_t> ids, Tokenizer tokenizer)
    : owner_(std::move(owner)), ids_(ids), tokenizer_(std::move(tokenizer)) {}

Tokens::Tokens(std::vector<int32_t> ids, Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {
  const auto kept = std::make_shared<const std::vector<int32_t>>(std::move(ids));
  owner_ = kept, ids_ = *kept;
}

Tokens Tokens::map(const std::string& path) {
  const auto file =
      std::make_shared<const formats::Safetensors>(value_or_raise(formats::map_safetensors(path)));
  const auto* tokens = file->find(kTensor);
  const auto tokenizer = file->metadata.find(kTokenizer);
  if (!tokens || tokens->dtype != DType::i32 || tokens->shape.size() != 1)
    throw Error(
        fail(Code::corrupt, "{}: no token file: tensor '{}' must be there, i32 of rank 1", path, kTensor));
  if (tokenizer == file->metadata.end())
    throw Error(fail(Code::corrupt, "{}: field '{}' is missing in the metadata", path, kTokenizer));
  // Our writer pads headers to a multiple of 8 bytes; others may not.
  if (reinterpret_cast<uintptr_t>(tokens->bytes.data()) % alignof(int32_t) != 0)
    throw Error(
        fail(Code::corrupt, "{}: tensor '{}' does not begin at a multiple of 4 bytes", path, kTensor));
  const std::span ids(reinterpret_cast<const int32_t*>(tokens->bytes.data()), tokens->bytes.size() / 4);
  const auto config = file->metadata.find(kConfig);  // absent in older files
  try {
    return Tokens(
        file, ids,
        Tokenizer::from_json(tokenizer->second, config == file->metadata.end() ? "" : config->second));
  } catch (const Error& e) {
    throw Error(Status(e.status()).at(path));
  }
}

bool Tokens::is_token_file(const std::string& path) {
  std::error_code not_there;
  if (!std::filesystem::is_regular_file(path, not_there)) return false;
  // The length of a header is below 2^32 (safetensors), so its upper bytes are zero, unlike text.
  char head[9] = {};
  std::ifstream(path, std::ios::binary).read(head, sizeof head);
  return head[7] == 0 && head[6] == 0 && head[8] == '{';
}

void Tokens::save(const std::string& path) const {
  const formats::TensorEntry entry{
      kTensor, DType::i32, {static_cast<int64_t>(ids_.size())}, std::as_bytes(ids_)};
  raise_if(formats::write_safetensors(
      path, {&entry, 1}, {{kTokenizer, tokenizer_.to_json()}, {kConfig, tokenizer_.config_json()}}));
}

}  // namespace weft::io

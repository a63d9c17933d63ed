#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/hash.h"
#include "base/hash_kernels.h"

// Hashes of files.
namespace weft::hash_test {
namespace {

// Whatever instructions it is computed with: the file format depends on it.
TEST(Hash, EveryKernelSaysTheSame) {
  std::array<std::byte, kHashSecret> secret{};
  std::vector<std::byte> bytes(5000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  hash128_secret(std::span(bytes).first(64), secret);
  for (const size_t n : {0u, 1u, 16u, 129u, 241u, 1024u, 1025u, 5000u}) {
    const std::span part(bytes.data(), n);
    uint64_t plain[2], keyed[2];
    hash128_baseline(bytes.data(), n, nullptr, 0, plain);
    hash128_baseline(bytes.data(), n, secret.data(), secret.size(), keyed);
    EXPECT_EQ(hash128(part), (Hash128{plain[0], plain[1]})) << n;
    EXPECT_EQ(hash128(part, secret), (Hash128{keyed[0], keyed[1]})) << n;
    EXPECT_FALSE(hash128(part) == hash128(part, secret)) << n;
  }
  EXPECT_EQ(hash128({}), (Hash128{0x6001c324468d497f, 0x99aa06d3014798d8})) << "as XXH3 defines it";
}

}  // namespace
}  // namespace weft::hash_test

#include "backends/onednn/product.h"

#include <algorithm>

namespace weft::onednn {

using namespace weft::backend;

namespace {

constexpr int64_t kPieces = 16;               // more would pack the uncut side too often
constexpr int64_t kWorth = 1 << 21;           // multiply-adds that justify a piece
constexpr int64_t kRows = 16, kColumns = 64;  // blocks are multiples of these, which suit kernels

int64_t pieces_of(const Product& p, int64_t count) {
  const int64_t wanted = std::max<int64_t>(1, kPieces / count);
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  return std::clamp<int64_t>(static_cast<int64_t>(work / static_cast<double>(kWorth)), 1, wanted);
}

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

BlockedProduct::BlockedProduct(const Product& product, int64_t count)
    : p_(product), rows_(product.m > product.n) {
  const int64_t size = rows_ ? p_.m : p_.n, pieces = pieces_of(p_, count);
  block_ = std::min(size, round_up((size + pieces - 1) / pieces, rows_ ? kRows : kColumns));
  blocks_ = (size + block_ - 1) / block_;
  whole_ = make(block_);
  if (const int64_t rest = size - (blocks_ - 1) * block_; rest != block_) last_ = make(rest);
}

Primitive BlockedProduct::make(int64_t size) const {
  const int64_t m = rows_ ? size : p_.m, n = rows_ ? p_.n : size;
  const auto type = type_of(p_.type);
  const auto matrix = [&](int64_t rows, int64_t columns, int64_t row, int64_t column) {
    const int64_t sizes[] = {rows, columns}, strides[] = {row, column};
    return Layout(type, sizes, strides);
  };
  const Layout a = matrix(m, p_.k, p_.a_row, p_.a_column), b = matrix(p_.k, n, p_.b_row, p_.b_column);
  const Layout c = matrix(m, n, p_.n, 1), bias = p_.bias ? matrix(1, n, n, 1) : Layout();
  const Attributes attributes(p_.epilogue, p_.accumulate);
  return Primitive::make([&](dnnl_primitive_desc_t* desc) {
    return library().dnnl_matmul_primitive_desc_create(desc, library().engine, a.get(), b.get(), bias.get(),
                                                       c.get(), attributes.get());
  });
}

void BlockedProduct::run(int64_t block, char* a, char* b, char* bias, char* c) const {
  const auto bytes = static_cast<int64_t>(byte_size(p_.type));
  const int64_t at = block * block_ * bytes;
  (rows_ ? a : b) += at * (rows_ ? p_.a_row : p_.b_column);
  c += at * (rows_ ? p_.n : 1);
  if (bias && !rows_) bias += at;
  const Primitive::Argument all[] = {
      {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}, {DNNL_ARG_BIAS, bias}};
  (last_ && block == blocks_ - 1 ? last_ : whole_).run(std::span(all, p_.bias ? 4 : 3));
}

Support accepts_types(const OpCall& c) {
  const DType type = c.output(0).dtype();
  if (type != DType::f32 && type != DType::bf16) return Support::no("computes in f32 and bf16, got {}", type);
  const auto empty = [](TypeView t) { return t.has() && std::ranges::find(t.max(), 0) != t.max().end(); };
  for (int64_t i = 0; i < c.n_inputs(); ++i)
    if (empty(c.input(i))) return Support::no("input {} is empty: {}", i, c.input(i).max());
  if (empty(c.output(0))) return Support::no("the result is empty: {}", c.output(0).max());
  return Support::yes();
}

}  // namespace weft::onednn

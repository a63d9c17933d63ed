#include <cmath>

#include "base/element.h"
#include "nn/host_zeros.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/random.h"
#include "weft/trace.h"

namespace weft::nn {

Tensor Initializer::uniform(std::vector<int64_t> shape, double bound, DType dtype) {
  auto bytes = host_zeros(dtype, shape);
  const size_t n = bytes.size() / byte_size(dtype);
  for (size_t i = 0; i < n; ++i)
    store_element(dtype, bytes.data(), i, bound * (2 * unit(random_word(seed_, drawn_++)) - 1));
  return Tensor::from_bytes(bytes, shape, dtype);
}

Tensor Initializer::random_state() {
  const uint64_t words[] = {random_word(seed_, drawn_++), 0};
  const int64_t shape[] = {2};
  return Tensor::from_bytes(std::as_bytes(std::span(words)), shape, DType::u64);
}

Linear::Linear(std::string name, int64_t in, int64_t out, double gain, Initializer& init, DType dtype)
    : name_(std::move(name)) {
  if (in < 1 || out < 1)
    throw Error(invalid("Linear {}: sizes must be at least 1, got {} -> {}", name_, in, out));
  weight = init.uniform({out, in}, gain * std::sqrt(3.0 / static_cast<double>(in)), dtype);
  bias = init.uniform({out}, 0, dtype);
  weight.named(name_ + ".weight").requires_grad(true);
  bias.named(name_ + ".bias").requires_grad(true);
}

Tensor Linear::operator()(const Tensor& x) const {
  const Scope scope(name_);
  return matmul(x, weight, false, true) + bias;
}

Embedding::Embedding(std::string name, int64_t count, int64_t dim, Initializer& init, DType dtype)
    : name_(std::move(name)) {
  if (count < 1 || dim < 1)
    throw Error(invalid("Embedding {}: sizes must be at least 1, got {} rows of {}", name_, count, dim));
  table = init.uniform({count, dim}, std::sqrt(3.0), dtype);
  table.named(name_ + ".table").requires_grad(true);
}

Tensor Embedding::operator()(const Tensor& ids) const {
  const Scope scope(name_);
  return gather(table, ids);
}

Dropout::Dropout(std::string name, double probability, Initializer& init)
    : state(init.random_state()), p(probability), name_(std::move(name)) {
  if (!(p >= 0 && p < 1)) throw Error(invalid("Dropout {}: p must be in [0, 1), got {}", name_, p));
  state.named(name_ + ".state");
}

Tensor Dropout::operator()(const Tensor& x, bool training) const {
  if (!training || p == 0) return x;
  const Scope scope(name_);
  return dropout(x, state, p);
}

}  // namespace weft::nn

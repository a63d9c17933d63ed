#include "operands.h"

#include <cstdint>

#include "check.h"

namespace weft::mha {

using namespace backend;

Operands::Operands(const Launch& l, cudaStream_t stream) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto n = static_cast<int64_t>(i);
    if (!l.call().input(n).has()) continue;
    inputs_[i].take(l.input(n), stream);
    inputs_[i].copy_in();
  }
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (const auto n = static_cast<int64_t>(i); l.call().output(n).has())
      outputs_[i].take(l.output(n), stream);
}

void Operands::put_back() const {
  for (const Operand& o : outputs_) o.copy_out();
}

void Operands::Operand::take(TensorView t, cudaStream_t stream) {
  of_launch_ = t.data<void>(), bytes_ = static_cast<size_t>(t.bytes()), stream_ = stream;
  if (reinterpret_cast<uintptr_t>(of_launch_) % 16 != 0)
    check(cudaMallocAsync(&at_, bytes_, stream));
  else
    at_ = of_launch_;
}

void Operands::Operand::copy(void* to, const void* from) const {
  if (to != from) check(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDeviceToDevice, stream_));
}

Operands::Operand::~Operand() {
  if (at_ && at_ != of_launch_) cudaFreeAsync(at_, stream_);
}

}  // namespace weft::mha

#pragma once
#include <cuda_runtime_api.h>

#include <array>

#include "weft/backend.hpp"

namespace weft::mha {

/// The operands of a launch in memory that begins at multiples of 16 bytes. Nearly all does. What does not (a
/// view of the memory of others) is copied to memory of the stream, the only one that no plan knows of.
class Operands {
 public:
  Operands(const backend::Launch&, cudaStream_t);

  void* input(size_t i) const { return inputs_[i].at(); }
  void* output(size_t i) const { return outputs_[i].at(); }
  /// Copies results to where they belong.
  void put_back() const;

 private:
  class Operand {
   public:
    Operand() = default;
    Operand(const Operand&) = delete;
    Operand& operator=(const Operand&) = delete;
    ~Operand();
    void take(backend::TensorView, cudaStream_t);
    void* at() const { return at_; }
    void copy_in() const { copy(at_, of_launch_); }
    void copy_out() const { copy(of_launch_, at_); }

   private:
    void copy(void* to, const void* from) const;
    void *at_ = nullptr, *of_launch_ = nullptr;
    size_t bytes_ = 0;
    cudaStream_t stream_ = nullptr;
  };
  std::array<Operand, 6> inputs_;
  std::array<Operand, 3> outputs_;
};

}  // namespace weft::mha

#pragma once
#include <functional>
#include <memory>

#include "device.hpp"

// A chain: products of one row and attention of one token that follow each other in a sequence, as decoding
// has them. One kernel runs them all, whose blocks stay on their multiprocessors, where a device and its
// runtime have what that takes (chain/chain.cu).
namespace weft::cuda {

namespace skinny {
struct Items;
}
struct ChainedAttention;

class Chain {
 public:
  virtual ~Chain() = default;
  /// Launches a step by itself, where the chain is too short to be worth a kernel.
  using Alone = std::function<Outcome(Queue&)>;

  /// Appends a step; false if it is not for a chain, which its caller launches then.
  virtual bool add(const skinny::Items&, Alone) = 0;
  virtual bool add(const ChainedAttention&, Alone) = 0;
  virtual bool empty() const = 0;
  /// Whether a kernel of it was launched, which reads its memory whenever it runs.
  virtual bool launched() const = 0;
  /// Launches the steps that were added.
  virtual Outcome launch(Queue&) = 0;
  /// After the capture: what the kernels read comes to the device.
  virtual Outcome finish() = 0;
};

/// For the capture of a sequence of so many steps. Null where the device has no chains, or where they are
/// turned off (WEFT_GPU_CHAIN=0).
std::unique_ptr<Chain> make_chain(Device&, size_t most_steps);

#ifdef WEFT_HIP
inline std::unique_ptr<Chain> make_chain(Device&, size_t) { return nullptr; }
#endif

}  // namespace weft::cuda

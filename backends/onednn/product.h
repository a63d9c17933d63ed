#pragma once
#include "backends/onednn/primitive.h"

// Products of matrices in blocks, each of which one thread computes.
namespace weft::onednn {

/// c = epilogue(a b + bias), or c += a b. Sizes and steps in elements.
struct Product {
  DType type = DType::f32;
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0;  ///< c is row-major
  bool bias = false, accumulate = false;
  Epilogue epilogue = Epilogue::none;
};

/// A product cut along its longer side, by its sizes alone, so the number of threads changes no result.
class BlockedProduct {
 public:
  /// `count` products of this kind are run together. Throws Unsupported.
  BlockedProduct(const Product& product, int64_t count);

  int64_t blocks() const { return blocks_; }
  /// One block of one product: the operands' first elements.
  void run(int64_t block, char* a, char* b, char* bias, char* c) const;

 private:
  Primitive make(int64_t size) const;

  Product p_;
  bool rows_ = true;  // which side is cut
  int64_t block_ = 0, blocks_ = 1;
  Primitive whole_, last_;
};

/// Why oneDNN can't take these dtypes and sizes: no f64, no f16, nothing empty.
backend::Support accepts_types(const backend::OpCall& call);

/// For `prepare`: the state of the plan, which owns it.
template <class T>
backend::Outcome keep(weft_plan& plan, std::unique_ptr<T> data) {
  plan.data = data.release();
  return backend::Outcome::ok();
}
template <class T>
void release(weft_plan* plan) {
  delete static_cast<T*>(plan->data);
}
/// `make` for accepts: whether oneDNN has a kernel. oneDNN caches primitives, so making it again is a lookup.
template <class Make>
backend::Support tried(const Make& make) {
  try {
    make();
    return backend::Support::yes();
  } catch (const Unsupported& no) {
    return {false, no.why};
  }
}

}  // namespace weft::onednn

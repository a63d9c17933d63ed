#pragma once
#include <oneapi/dnnl/dnnl.h>

#include <string>

namespace weft::onednn {

// clang-format off: it takes minutes for this list
#define WEFT_ONEDNN_FUNCTIONS(X)                                                                   \
  X(dnnl_version) X(dnnl_set_max_cpu_isa) X(dnnl_engine_create) X(dnnl_stream_create)              \
  X(dnnl_stream_wait)                                                                              \
  X(dnnl_memory_desc_create_with_strides) X(dnnl_memory_desc_destroy) X(dnnl_memory_desc_get_size) \
  X(dnnl_memory_create) X(dnnl_memory_destroy) X(dnnl_primitive_attr_create)                       \
  X(dnnl_primitive_attr_destroy) X(dnnl_primitive_attr_set_scratchpad_mode)                        \
  X(dnnl_primitive_attr_set_post_ops) X(dnnl_post_ops_create) X(dnnl_post_ops_destroy)             \
  X(dnnl_post_ops_append_eltwise) X(dnnl_post_ops_append_sum)                                      \
  X(dnnl_matmul_primitive_desc_create) X(dnnl_convolution_forward_primitive_desc_create)           \
  X(dnnl_primitive_desc_query) X(dnnl_primitive_desc_query_md) X(dnnl_primitive_desc_destroy)      \
  X(dnnl_primitive_create) X(dnnl_primitive_destroy) X(dnnl_primitive_execute)                     \
  X(dnnl_memory_desc_create_with_tag) X(dnnl_reorder_primitive_desc_create)
// clang-format on

/// oneDNN, opened at run time so that one build serves machines with and without it. Stays open.
struct Library {
#define WEFT_ONEDNN_DECLARE(f) decltype(&::f) f = nullptr;
  WEFT_ONEDNN_FUNCTIONS(WEFT_ONEDNN_DECLARE)
#undef WEFT_ONEDNN_DECLARE
  dnnl_engine_t engine = nullptr;  ///< The processor.
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;
  std::string version;  ///< "oneDNN 3.2.0"
  std::string reason;   ///< Why it can't be used; empty: it can.
};

/// Opens the library at the first call.
const Library& library();

/// While it lives, oneDNN computes on this thread alone: threads are the host's to manage.
class OneThread {
 public:
  OneThread() {
    if (!library().omp_set_num_threads) return;
    before_ = library().omp_get_max_threads();
    library().omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_) library().omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;

 private:
  int before_ = 0;
};

}  // namespace weft::onednn

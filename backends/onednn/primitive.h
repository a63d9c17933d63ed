#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/onednn/library.h"
#include "weft/backend.hpp"

// oneDNN's objects, owned.
namespace weft::onednn {

/// Why oneDNN has nothing for a call: a refusal, not a failure.
struct Unsupported {
  std::string why;
};

/// A memory descriptor of these sizes and strides; empty for an absent operand.
class Layout {
 public:
  Layout() = default;
  Layout(dnnl_data_type_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides);
  /// One that the primitive chooses.
  Layout(dnnl_data_type_t type, std::span<const int64_t> sizes);
  dnnl_memory_desc_t get() const { return desc_.get(); }

 private:
  struct End {
    void operator()(dnnl_memory_desc_t d) const { library().dnnl_memory_desc_destroy(d); }
  };
  std::unique_ptr<dnnl_memory_desc, End> desc_;
};

/// Applied to each element of a result before it is stored. No relu: oneDNN's turns NaN into 0.
enum class Epilogue : uint8_t { none, gelu_erf, gelu_tanh, silu };

/// Attributes: the epilogue, whether the result is added to, and that scratch memory is the caller's.
class Attributes {
 public:
  Attributes(Epilogue epilogue, bool accumulate);
  ~Attributes();
  Attributes(const Attributes&) = delete;
  dnnl_primitive_attr_t get() const { return attr_; }

 private:
  dnnl_primitive_attr_t attr_ = nullptr;
};

/// A compiled primitive; runs on the calling thread.
class Primitive {
 public:
  struct Argument {
    int id;  ///< DNNL_ARG_*
    void* data;
  };
  Primitive() = default;
  /// Compiles the descriptor that `create` makes. Throws Unsupported if oneDNN has no implementation, or only
  /// its slow reference one.
  template <class Create>
  static Primitive make(const Create& create) {
    const OneThread one;
    dnnl_primitive_desc_t desc = nullptr;
    const dnnl_status_t status = create(&desc);
    return Primitive(desc, status);
  }
  explicit operator bool() const { return primitive_ != nullptr; }
  void run(std::span<const Argument> arguments) const;
  /// Of an operand, by its DNNL_ARG_*; lives as long as this.
  const_dnnl_memory_desc_t layout(int argument) const {
    return library().dnnl_primitive_desc_query_md(desc_.get(), dnnl_query_exec_arg_md, argument);
  }

 private:
  Primitive(dnnl_primitive_desc_t desc, dnnl_status_t status);
  struct End {
    void operator()(dnnl_primitive_desc_t d) const { library().dnnl_primitive_desc_destroy(d); }
    void operator()(dnnl_primitive_t p) const { library().dnnl_primitive_destroy(p); }
  };
  std::unique_ptr<dnnl_primitive_desc, End> desc_;
  std::unique_ptr<dnnl_primitive, End> primitive_;
};

dnnl_data_type_t type_of(DType dtype);

}  // namespace weft::onednn

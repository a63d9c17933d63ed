#include "backends/onednn/primitive.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace weft::onednn {
namespace {

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success)
    throw std::runtime_error(backend::format("{}: oneDNN answers {}", what, static_cast<int>(status)));
}

// One per thread: streams of one engine run concurrently.
dnnl_stream_t stream() {
  thread_local dnnl_stream_t mine = nullptr;
  if (!mine)
    check(library().dnnl_stream_create(&mine, library().engine, dnnl_stream_default_flags), "a stream");
  return mine;
}

// A thread's memory, which grows and is reused.
void* scratch(size_t bytes) {
  struct Buffer {
    void* at = nullptr;
    size_t bytes = 0;
    ~Buffer() { std::free(at); }
  };
  thread_local Buffer mine;
  if (mine.bytes < bytes) {
    std::free(mine.at);
    mine.bytes = 0;
    mine.at = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!mine.at) throw std::bad_alloc();
    mine.bytes = bytes;
  }
  return mine.at;
}

class Memory {
 public:
  Memory(const_dnnl_memory_desc_t layout, void* data) {
    check(library().dnnl_memory_create(&memory_, layout, library().engine, data), "an operand");
  }
  Memory(Memory&& o) noexcept : memory_(std::exchange(o.memory_, nullptr)) {}
  ~Memory() {
    if (memory_) library().dnnl_memory_destroy(memory_);
  }
  dnnl_memory_t get() const { return memory_; }

 private:
  dnnl_memory_t memory_ = nullptr;
};

}  // namespace

dnnl_data_type_t type_of(DType dtype) { return dtype == DType::bf16 ? dnnl_bf16 : dnnl_f32; }

Layout::Layout(dnnl_data_type_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  dnnl_memory_desc_t desc = nullptr;
  check(library().dnnl_memory_desc_create_with_strides(&desc, static_cast<int>(sizes.size()), sizes.data(),
                                                       type, strides.data()),
        "a layout");
  desc_.reset(desc);
}

Layout::Layout(dnnl_data_type_t type, std::span<const int64_t> sizes) {
  dnnl_memory_desc_t desc = nullptr;
  check(library().dnnl_memory_desc_create_with_tag(&desc, static_cast<int>(sizes.size()), sizes.data(), type,
                                                   dnnl_format_tag_any),
        "a layout");
  desc_.reset(desc);
}

Attributes::Attributes(Epilogue epilogue, bool accumulate) {
  const Library& l = library();
  dnnl_post_ops_t ops = nullptr;
  check(l.dnnl_primitive_attr_create(&attr_), "attributes");
  check(l.dnnl_post_ops_create(&ops), "an epilogue");
  const auto eltwise = [&](dnnl_alg_kind_t kind, float alpha) {
    check(l.dnnl_post_ops_append_eltwise(ops, kind, alpha, 0), "an epilogue");
  };
  if (accumulate) check(l.dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef), "a sum");
  switch (epilogue) {
    case Epilogue::none: break;
    case Epilogue::gelu_erf: eltwise(dnnl_eltwise_gelu_erf, 0); break;
    case Epilogue::gelu_tanh: eltwise(dnnl_eltwise_gelu_tanh, 0); break;
    case Epilogue::silu: eltwise(dnnl_eltwise_swish, 1); break;
  }
  check(l.dnnl_primitive_attr_set_post_ops(attr_, ops), "an epilogue");
  l.dnnl_post_ops_destroy(ops);
  check(l.dnnl_primitive_attr_set_scratchpad_mode(attr_, dnnl_scratchpad_mode_user), "scratch memory");
}
Attributes::~Attributes() { library().dnnl_primitive_attr_destroy(attr_); }

Primitive::Primitive(dnnl_primitive_desc_t desc, dnnl_status_t status) : desc_(desc) {
  const Library& l = library();
  if (status == dnnl_unimplemented || status == dnnl_invalid_arguments)
    throw Unsupported{l.version + " has no kernel for it"};
  check(status, "a primitive");
  const char* kernel = "";
  check(l.dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &kernel), "a primitive's name");
  if (std::strncmp(kernel, "ref", 3) == 0) throw Unsupported{l.version + " has a reference kernel only"};
  dnnl_primitive_t primitive = nullptr;
  check(l.dnnl_primitive_create(&primitive, desc), "a primitive");
  primitive_.reset(primitive);
}

void Primitive::run(std::span<const Argument> arguments) const {
  const OneThread one;
  const Library& l = library();
  std::vector<Memory> memory;
  std::vector<dnnl_exec_arg_t> args;
  memory.reserve(arguments.size() + 1);
  const auto add = [&](int id, void* data) {
    memory.emplace_back(layout(id), data);
    args.push_back({id, memory.back().get()});
  };
  for (const Argument& a : arguments) add(a.id, a.data);
  if (const size_t bytes = l.dnnl_memory_desc_get_size(layout(DNNL_ARG_SCRATCHPAD)))
    add(DNNL_ARG_SCRATCHPAD, scratch(bytes));
  check(l.dnnl_primitive_execute(primitive_.get(), stream(), static_cast<int>(args.size()), args.data()),
        "running");
  check(l.dnnl_stream_wait(stream()), "running");
}

}  // namespace weft::onednn

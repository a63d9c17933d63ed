#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/hash.h"
#include "lab/kernels/provider.h"
#include "lab/kernels/text_module.h"
#include "seam/c_error.h"
#include "seam/device.h"
#include "seam/registry.h"

// A kernel as one function `weft_lab_kernel` in a device's own language, which the device's backend compiles:
// OpenCL C (.cl) or CUDA C++ (.cu). A comment says how it is launched:
//
//   // weft lab: an item for each element
//   // weft lab: a group of 64 for each row
//
// Parameters: the operands and the results; for each of these, as a long, the element at which it begins; the
// number of elements or rows; the number of columns. Rows and columns are those of the first result.
namespace weft::lab {
namespace texts {  // compiled with other providers
namespace {

namespace fs = std::filesystem;

const char* dialect_of(const std::string& file) {
  return file.ends_with(".cl") ? "opencl_c" : file.ends_with(".cu") ? "cuda_cpp" : nullptr;
}
bool takes(const std::string& contender) { return dialect_of(contender) != nullptr; }

// How it is launched, by its comment.
struct Shape {
  bool rows = false;
  uint64_t group = 0;  // items of a row
};
Result<Shape> shape_of(const std::string& file, const std::string& text) {
  constexpr std::string_view kMark = "// weft lab: ", kElements = "an item for each element",
                             kRows = "a group of ";
  const size_t mark = text.find(kMark);
  if (mark == std::string::npos)
    return invalid("{} does not say how it is launched; it wants a comment '{}{}' or '{}{}64 for each row'",
                   file, kMark, kElements, kMark, kRows);
  const size_t begin = mark + kMark.size();
  const auto words = text.substr(begin, text.find('\n', begin) - begin);
  if (words.starts_with(kElements)) return Shape{};
  std::istringstream in(words.starts_with(kRows) ? words.substr(kRows.size()) : "");
  Shape shape{.rows = true};
  std::string rest;
  if (in >> shape.group && std::getline(in, rest) && rest.starts_with(" for each row") && shape.group > 0 &&
      shape.group <= 1024)
    return shape;
  return invalid("{} is launched by '{}'; wanted '{}' or '{}N for each row', N from 1 to 1024", file, words,
                 kElements, kRows);
}

// Sizes and attributes of the call, so that the text may depend on them.
class Prelude {
 public:
  explicit Prelude(const seam::CallDesc& d) {
    define("OP_" + upper(d.op), "1");
    for (size_t i = 0; i < d.inputs.size(); ++i)
      if (d.inputs[i]) tensor(fmt::format("INPUT{}", i), *d.inputs[i]);
    for (size_t k = 0; k < d.outputs.size(); ++k) tensor(fmt::format("OUTPUT{}", k), d.outputs[k]);
    for (const auto& a : d.attrs) {
      const auto name = upper(a.name);
      if (const auto* i = std::get_if<int64_t>(&a.value)) define(name, fmt::format("({})", *i));
      if (const auto* f = std::get_if<double>(&a.value)) define(name, fmt::format("({:.17g})", *f));
    }
    text_ += "#line 1\n";
  }
  const std::string& text() const { return text_; }

 private:
  static std::string upper(std::string word) {
    for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return word;
  }
  void define(const std::string& name, const std::string& value) {
    text_ += fmt::format("#define {} {}\n", name, value);
  }
  void tensor(const std::string& name, const seam::ConcreteType& t) {
    define(fmt::format("{}_IS_{}", name, upper(std::string(weft::name(t.dtype)))), "1");
    define(name + "_RANK", std::to_string(t.shape.size()));
    for (size_t d = 0; d < t.shape.size(); ++d)
      define(fmt::format("{}_SIZE{}", name, d), std::to_string(t.shape[d]));
  }
  std::string text_;
};

class TextKernel : public Kernel {
 public:
  TextKernel(std::string id, std::string identity, seam::Device& device, Shape shape, seam::CallPtr call)
      : id_(std::move(id)),
        identity_(std::move(identity)),
        device_(device),
        shape_(shape),
        call_(std::move(call)) {}

  Status compile(const std::string& text) {
    WEFT_TRY(module_,
             TextModule::compile(device_, Prelude(call_->desc()).text() + text, "weft_lab_kernel", id_));
    WEFT_TRY(queue_, device_.open_queue());
    return {};
  }

  std::string id() const override { return id_; }
  std::string identity() const override { return identity_; }
  seam::Queue* queue() override { return queue_.get(); }

  Status place(std::span<const weft_tensor> inputs, std::span<const weft_tensor> outputs) override {
    tensors_.clear(), pointers_.clear();
    for (const auto tensors : {inputs, outputs})
      for (const auto& t : tensors)
        if (t.dl.data) tensors_.push_back(t);
    for (const auto& t : tensors_) pointers_.push_back(&t);
    const auto& result = call_->desc().outputs.at(0);
    const int64_t elements = element_count(result.shape),
                  columns = result.shape.empty() ? 1 : result.shape.back();
    const int64_t items = shape_.rows && columns ? elements / columns : elements;
    if (items > INT32_MAX || columns > INT32_MAX)
      return fail(Code::unsupported, "{} items of {} columns are more than an int tells", items, columns);
    scalars_[0] = static_cast<int32_t>(items), scalars_[1] = static_cast<int32_t>(columns);
    dispatch_ = {.size = sizeof(weft_dispatch),
                 .n_buffers = static_cast<uint32_t>(pointers_.size()),
                 .module = module_->c(),
                 .buffers = pointers_.data(),
                 .scalars = scalars_,
                 .n_scalars = 2,
                 .reserved = 0,
                 .global = {static_cast<uint64_t>(items) * (shape_.rows ? shape_.group : 1), 1, 1},
                 .local = {shape_.group, shape_.rows ? 1u : 0u, shape_.rows ? 1u : 0u},
                 .name = id_.c_str()};
    return {};
  }

  Status run() override {
    seam::CError error;
    queue_->launched();
    return error.status(device_.backend().dispatch(queue_->c(), &dispatch_, error.out()));
  }

 private:
  std::string id_, identity_;
  seam::Device& device_;
  Shape shape_;
  seam::CallPtr call_;
  std::unique_ptr<TextModule> module_;
  std::unique_ptr<seam::Queue> queue_;  // closed first: no launch of the module is pending then
  std::vector<weft_tensor> tensors_;
  std::vector<const weft_tensor*> pointers_;
  int32_t scalars_[2] = {};
  weft_dispatch dispatch_{};
};

// The first that speaks the language and can be opened.
Result<seam::Device*> device_for(const std::string& file) {
  std::string reasons;
  for (const auto& b : seam::registry().report())
    for (const auto& d : b.devices) {
      if (!d.compiles) continue;
      auto device = seam::registry().open(d.name);
      if (device.ok() && std::string_view((*device)->capability().dialect) == dialect_of(file))
        return *device;
      if (!device.ok()) reasons += "; " + device.status().message();
    }
  return fail(Code::unavailable, "no device here compiles {}, which wants one of the language {}{}", file,
              dialect_of(file), reasons);
}

Result<std::string> read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return fail(Code::io, "{} can't be read", file);
  return text.str();
}

// Its whole path: a process runs in a folder of its own.
Result<std::string> prepare(const std::string& contender, const std::string&) {
  std::error_code none;
  const auto path = fs::absolute(contender, none);
  if (!fs::is_regular_file(path, none)) return fail(Code::unavailable, "there is no file {}", contender);
  WEFT_TRY(const auto text, read(path.string()));
  WEFT_CHECK(shape_of(contender, text).take_status());
  return path.string();
}

Result<std::unique_ptr<Kernel>> open(const std::string& file, const seam::CallPtr& call) {
  WEFT_TRY(const auto text, read(file));
  WEFT_TRY(const auto shape, shape_of(file, text));
  WEFT_TRY(seam::Device * device, device_for(file));
  const auto hash = hash128(std::as_bytes(std::span(text)));
  auto kernel =
      std::make_unique<TextKernel>(fs::path(file).filename().string(),
                                   fmt::format("{:016x}{:016x}", hash.high, hash.low), *device, shape, call);
  WEFT_CHECK(kernel->compile(text));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

std::vector<Offer> offers() { return {}; }

void precompile(const std::string& file, const seam::CallPtr& call) { (void)open(file, call); }

std::string device_of(const std::string& file) {
  auto device = device_for(file);
  return device.ok() ? (*device)->name() : "";
}

}  // namespace
}  // namespace texts

extern const Provider text_provider = {
    "text",           "a .cl or .cu file with a kernel weft_lab_kernel in a device's language",
    texts::takes,     texts::prepare,
    texts::open,      texts::offers,
    nullptr,          texts::device_of,
    texts::precompile};

}  // namespace weft::lab

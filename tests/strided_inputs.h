#pragma once
#include <filesystem>

#include "imported_model.h"
#include "weft/dlpack.h"
#include "weft/jit.h"

// Inputs of a program that lie elsewhere in another order: the numbers it makes of them are the same.
namespace weft::testing::imported {

/// An array in memory of its own, which tensors show without a copy. It outlives them.
class Lying {
 public:
  enum class How : uint8_t {
    plain,     ///< row-major
    reversed,  ///< the first axis is the one whose elements are neighbours
    repeated   ///< the first element of the first axis stands for all of them
  };
  Lying(const Array& a, How how) : shape_(a.shape.begin(), a.shape.end()), strides_(shape_.size()) {
    int64_t step = 1;
    for (size_t i = 0; i < shape_.size(); ++i) {
      const size_t d = how == How::reversed ? i : shape_.size() - 1 - i;
      strides_[d] = step, step *= shape_[d];
    }
    if (how == How::repeated && !shape_.empty()) strides_[0] = 0;
    const auto from = conformance::encode(a);
    const size_t size = byte_size(a.dtype);
    bytes_.resize(from.size());
    for (size_t i = from.size() / size; i-- > 0;)  // the first element of an axis is the last one written
      std::memcpy(bytes_.data() + place_of(i) * size, from.data() + i * size, size);
    dl_ = {};
    dl_.dl_tensor = {bytes_.data(),
                     {kDLCPU, 0},
                     static_cast<int32_t>(shape_.size()),
                     dlpack_type(a.dtype),
                     shape_.data(),
                     strides_.data(),
                     0};
  }
  Lying(const Lying&) = delete;
  Tensor tensor(const std::string& backend) { return from_dlpack(&dl_, backend); }

 private:
  static DLDataType dlpack_type(DType t) {
    return {info(t).dlpack_code, static_cast<uint8_t>(8 * byte_size(t)), 1};
  }
  size_t place_of(size_t i) const {
    size_t at = 0;
    for (size_t d = shape_.size(); d-- > 0;) {
      const auto n = static_cast<size_t>(shape_[d]);
      at += i % n * static_cast<size_t>(strides_[d]), i /= n;
    }
    return at;
  }

  IntList shape_, strides_;
  std::vector<std::byte> bytes_;
  DLManagedTensor dl_;
};

/// The array with the first element of its first axis in the place of all.
inline Array with_first_repeated(Array a) {
  const size_t n = a.shape.empty() || a.shape[0] == 0 ? a.v.size() : a.v.size() / size_t(a.shape[0]);
  for (size_t i = n; i < a.v.size(); ++i) a.v[i] = a.v[i - n];
  return a;
}

/// The program's outputs, of inputs that lie so.
inline std::vector<std::vector<double>> outputs_of(Compiled& program, const std::vector<Array>& inputs,
                                                   Lying::How how, const std::string& backend) {
  std::vector<std::unique_ptr<Lying>> lying;
  std::vector<Tensor> in;
  for (const Array& a : inputs) {
    lying.push_back(std::make_unique<Lying>(a, how));
    in.push_back(lying.back()->tensor(backend));
  }
  std::vector<std::vector<double>> out;
  for (const Tensor& t : program(in)) out.push_back(t.to_vector<double>());
  return out;
}

/// Permuted and broadcast inputs give the bits that the same numbers give row-major.
inline void expect_same_bits_of_strided_inputs(const program::CompiledProgram& p, std::vector<Array> inputs,
                                               const std::string& backend) {
  using How = Lying::How;
  const auto path =
      (std::filesystem::temp_directory_path() / fmt::format("weft_strided_{}.weft", ::getpid())).string();
  const std::string text = program::serialize(p);
  raise_if(formats::write_file(path, std::string_view(text)));
  Compiled program = load_program(path, {.backend = backend});
  std::filesystem::remove(path);
  EXPECT_EQ(outputs_of(program, inputs, How::reversed, backend),
            outputs_of(program, inputs, How::plain, backend));
  for (Array& a : inputs) a = with_first_repeated(std::move(a));
  EXPECT_EQ(outputs_of(program, inputs, How::repeated, backend),
            outputs_of(program, inputs, How::plain, backend));
}

}  // namespace weft::testing::imported

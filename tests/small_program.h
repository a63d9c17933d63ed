#pragma once
#include "program/program.h"

namespace weft::program {

inline TensorSpec f32(Shape shape) { return {{DType::f32, std::move(shape)}, 0}; }

// The test's own symbol name: expressions are interned for the process, and other tests have a `batch` too.
inline Dim rows() { return Dim::symbol("rows", 1, 64); }

/// y = silu(x @ w), a state that counts in place, and one attribute of each kind.
inline CompiledProgram small_program() {
  const TensorSpec wide = f32({rows() * 16, 4});
  CompiledProgram p;
  p.name = "small";
  p.symbols = {{"rows", 1, 64}};
  p.values = {wide, f32({4, 4}), f32({3}), wide, wide, f32({3}), {{DType::u8, {5}}, 7}};
  KernelCall matmul{.op = "matmul", .inputs = {0, 1}, .outputs = {3}, .where = "hidden1.matmul"};
  matmul.attrs = {{"a", int64_t{-3}},
                  {"b", -0.0},
                  {"c", Shape{2, rows() * 16, max(rows(), 7)}},
                  {"d", std::string("me\0an", 5)},
                  {"e", Bytes{std::string("\0\xff", 2)}}};
  matmul.defaults = {"a", "d"};
  KernelCall silu{.op = "silu", .version = 3, .inputs = {3, kAbsent}, .outputs = {4}, .region = 0};
  KernelCall count{.op = "count", .inputs = {2}, .outputs = {5}, .updates = {{0, 0}}, .where = "count"};
  p.calls = {matmul, silu, count};
  Region r{.pattern = "silu", .n_inputs = 2, .values = {wide, f32({4}), wide, wide}, .outputs = {3}};
  r.calls = {{.op = "sigmoid", .inputs = {0}, .outputs = {2}},
             {.op = "mul", .inputs = {0, 2}, .outputs = {3}}};
  p.regions = {r};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 4}};
  p.states = {{"counter", 2, 5, 1}};
  p.weights = {{"w", 1, 0}, {"packed", 6, 2}};
  const std::vector<float> numbers(16, 1.5f);
  p.blobs = {Blob::copy_of(numbers.data(), 64), Blob::copy_of(numbers.data(), 12), Blob::copy_of("12345", 5)};
  p.origin = {{"compiler", "weft test"}, {"model", ""}};
  return p;
}

/// The same with a test of 2 rows; its numbers mean nothing.
inline CompiledProgram tested_program() {
  CompiledProgram p = small_program();
  const std::vector<float> numbers(128, 0.25f);
  const auto tensor = [&](const char* name, Shape shape, size_t n) {
    return TestTensor{name, {DType::f32, std::move(shape)}, Blob::copy_of(numbers.data(), n * 4)};
  };
  p.tests.push_back({{tensor("x", {32, 4}, 128)},
                     {tensor("y", {32, 4}, 128), tensor("counter", {3}, 3)},
                     {Blob::copy_of(numbers.data(), 512), Blob{}}});
  return p;
}

/// The same with code that a device compiled; no device knows it.
inline CompiledProgram coded_program() {
  CompiledProgram p = tested_program();
  p.device_code.push_back(
      {"opencl: a device",
       std::string(32, '0'),
       {{"opencl-00", Blob::copy_of("one", 3)}, {"opencl-01", Blob::copy_of("the other", 9)}}});
  return p;
}

inline Result<CompiledProgram> load(const std::string& file) {
  return deserialize(Blob::copy_of(file.data(), file.size()));
}

/// What loading says; "ok" if it is content.
inline std::string said(const std::string& file) {
  const auto p = load(file);
  return p.ok() ? "ok" : p.status().text();
}

}  // namespace weft::program

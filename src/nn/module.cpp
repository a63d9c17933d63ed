#include "weft/module.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <numbers>

#include "base/element.h"
#include "nn/host_zeros.h"
#include "weft/random.h"

namespace weft::nn {

std::string Fields::within(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void Fields::parameter(std::string_view name, Tensor& t, std::vector<int64_t> shape, Initial initial) {
  Field f{within(name), t, std::move(shape), dtype_, initial, true};
  field(f);
}
void Fields::state(std::string_view name, Tensor& t, std::vector<int64_t> shape, DType dtype,
                   Initial initial) {
  Field f{within(name), t, std::move(shape), dtype, initial, false};
  field(f);
}
void Fields::random(std::string_view name, Tensor& t) { state(name, t, {2}, DType::u64, Initial::key()); }

void Fields::child(std::string_view name, Module& m) {
  const std::string outer = path_;
  path_ = within(name);
  if (m.own_name_ != name) m.own_name_ = name;  // else who only looks would write, beside who computes
  module(m);
  m.fields(*this);
  path_ = outer;
}

namespace {

/// A walk that does one thing with each field.
template <class Visit>
class Walk final : public Fields {
 public:
  Walk(Module& m, DType dtype, Visit visit) : visit_(std::move(visit)) {
    dtype_ = dtype;
    m.fields(*this);
  }

 private:
  void field(Field& f) override { visit_(f); }
  Visit visit_;
};
template <class Visit>
void each_field(Module& m, DType dtype, Visit visit) {
  Walk<Visit> walk(m, dtype, std::move(visit));
}
// fields() hands out its tensors to be changed; who only looks at them changes nothing.
template <class Visit>
void each_field(const Module& m, Visit visit) {
  each_field(const_cast<Module&>(m), DType::f32, std::move(visit));
}
std::vector<Tensor> collect(const Module& m, bool trained) {
  std::vector<Tensor> all;
  each_field(m, [&](const Field& f) {
    if (f.trained == trained) all.push_back(built(f.tensor, f.name));
  });
  return all;
}

/// Number i of a field.
double draw(const Initial& initial, uint64_t key, uint64_t i) {
  const auto one = [&](uint64_t k) { return unit(random_word(key, k)); };
  switch (initial.kind) {
    case Initial::Kind::constant:
    case Initial::Kind::key: return initial.scale;
    case Initial::Kind::uniform: return initial.scale * (2 * one(i) - 1);
    case Initial::Kind::normal: break;
  }
  // Box and Muller, A note on the generation of random normal deviates (1958): two of each pair.
  const double radius = std::sqrt(-2 * std::log1p(-one(i & ~uint64_t{1}))),
               turn = 2 * std::numbers::pi * one(i | 1);
  return initial.scale * radius * (i & 1 ? std::sin(turn) : std::cos(turn));
}

Tensor first_value(const Field& f, uint64_t seed) {
  for (const int64_t n : f.shape)
    if (n < 1) throw Error(invalid("{}: sizes must be at least 1, got {}", f.name, text(f.shape)));
  auto bytes = host_zeros(f.dtype, f.shape);
  const uint64_t key = XXH3_64bits_withSeed(f.name.data(), f.name.size(), seed);
  if (f.initial.kind == Initial::Kind::key) {
    store_element(f.dtype, bytes.data(), 0, key);
  } else if (f.initial.kind != Initial::Kind::constant || f.initial.scale != 0) {
    const size_t n = bytes.size() / byte_size(f.dtype);
    for (size_t i = 0; i < n; ++i) store_element(f.dtype, bytes.data(), i, draw(f.initial, key, i));
  }
  return Tensor::from_bytes(bytes, f.shape, f.dtype);
}

void put(Field& f, Tensor t) {
  if (t.dtype() != f.dtype || !std::ranges::equal(t.sizes(), f.shape))
    throw Error(invalid("{} is {}{}, got {}", f.name, name(f.dtype), text(f.shape), text(t.type())));
  f.tensor = t.named(f.name);
  if (f.trained) f.tensor.requires_grad(true);
}

}  // namespace

const Tensor& built(const Tensor& t, std::string_view name) {
  if (!t)
    throw Error(
        invalid("{} has no elements yet: call nn::build(model), or load the model, before using it", name));
  return t;
}

void build(Module& m, const BuildOptions& options) {
  each_field(m, options.dtype, [&](Field& f) { put(f, first_value(f, options.seed)); });
}

void replace(Module& m, const Replacement& with, DType dtype) {
  each_field(m, dtype, [&](Field& f) { put(f, with(f)); });
}

std::vector<Tensor> parameters(const Module& m) { return collect(m, true); }
std::vector<Tensor> states(const Module& m) { return collect(m, false); }
int64_t parameter_count(const Module& m) {
  int64_t n = 0;
  each_field(m, [&](const Field& f) {
    if (f.trained) n += element_count(std::span<const int64_t>(f.shape));
  });
  return n;
}

void set_training(Module& m, bool on) {
  class Setter final : public Fields {
   public:
    explicit Setter(bool on) : on_(on) {}

   private:
    void field(Field&) override {}
    void module(Module& inner) override { inner.training = on_; }
    bool on_;
  } setter(on);
  m.training = on;
  m.fields(setter);
}

void copy_fields(const Module& from, Module& to, DType dtype) {
  std::vector<Tensor> values = parameters(from);
  for (const auto& s : states(from)) values.push_back(s);
  size_t copied = 0;
  replace(
      to,
      [&](const Field& f) {
        const auto at = std::ranges::find_if(values, [&](const Tensor& t) { return t.name() == f.name; });
        if (at == values.end()) throw Error(invalid("{}: there is no such field to copy", f.name));
        ++copied;
        if (at->dtype() == f.dtype) return Tensor::from_bytes(at->to_bytes(), at->sizes(), f.dtype);
        const auto wide = at->to_vector<double>();  // holds every value of a narrower type exactly
        return Tensor::of(std::span<const double>(wide), at->sizes(), f.dtype);
      },
      dtype);
  if (copied != values.size())
    throw Error(invalid("copy_fields: {} fields to copy, {} to take them", values.size(), copied));
}

}  // namespace weft::nn

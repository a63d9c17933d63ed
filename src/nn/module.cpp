#include "weft/module.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <numbers>

#include "base/element.h"
#include "nn/host_zeros.h"
#include "nn/range.h"
#include "nn/walk.h"
#include "weft/random.h"

namespace weft::nn {

std::string Fields::within(std::string_view name) const {
  if (name.empty())
    throw Error(invalid("{} has a field or module without a name; give it one",
                        path_.empty() ? "the model" : "'" + path_ + "'"));
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void Fields::parameter(std::string_view name, Tensor& t, std::vector<int64_t> shape, Initial initial) {
  visit({within(name), t, std::move(shape), dtype_, initial, true});
}
void Fields::state(std::string_view name, Tensor& t, std::vector<int64_t> shape, DType dtype,
                   Initial initial) {
  visit({within(name), t, std::move(shape), dtype, initial, false});
}
void Fields::random(std::string_view name, Tensor& t) { state(name, t, {2}, DType::u64, Initial::key()); }

void Fields::name_once(const std::string& name, std::string what) {
  const auto [other, fresh] = named_.try_emplace(name, std::move(what));
  if (!fresh)
    throw Error(invalid("two fields of a module are named '{}': {}, and {}; each wants a name of its own",
                        name, other->second, what));
}

void Fields::visit(Field f) {
  const std::string type = fmt::format("{} {}{}", f.trained ? "parameter" : "state", weft::name(f.dtype),
                                       text(std::span<const int64_t>(f.shape)));
  name_once(f.name, type);
  auto known = first_.find(&f.tensor);
  if (known == first_.end() && f.tensor) known = first_.find(f.tensor.impl());
  if (known != first_.end()) {
    if (known->second.type != type)
      throw Error(invalid("'{}', a {}, and '{}', a {}, are one tensor: they must be alike",
                          known->second.name, known->second.type, f.name, type));
    f.tied = known->second.tensor;
  } else {
    const First first{f.name, &f.tensor, type};
    first_.emplace(&f.tensor, first);
    if (f.tensor) first_.emplace(f.tensor.impl(), first);
  }
  field(f);
}

void Fields::child(std::string_view name, Module& m) {
  const std::string outer = path_, inner = within(name);
  const auto itself = std::ranges::find(around_, &m, [](const auto& a) { return a.first; });
  if (itself != around_.end())
    throw Error(
        invalid("'{}' is '{}', a module that it is in: no module can hold itself", inner, itself->second));
  path_ = inner;
  name_once(path_, "a module");
  around_.emplace_back(&m, path_);
  // A module under two names keeps the first. Names are written once, since read-only walks may run
  // concurrently with the forward pass.
  if (seen_.insert(&m).second && m.own_name_ != name) m.own_name_ = name;
  module(m);
  m.fields(*this);
  around_.pop_back();
  path_ = outer;
}

void put_field(Field& f, Tensor t) {
  if (t.dtype() != f.dtype || !std::ranges::equal(t.sizes(), f.shape))
    throw Error(invalid("{} is {}{}, got {}", f.name, name(f.dtype), text(f.shape), text(t.type())));
  const bool frozen = f.tensor && !f.tensor.requires_grad();
  f.tensor = t.named(f.name);
  if (f.trained) f.tensor.requires_grad(!frozen);
}

namespace {

std::vector<Tensor> collect(const Module& m, bool trained) {
  std::vector<Tensor> all;
  each_field(m, [&](const Field& f) {
    if (f.trained == trained && !f.tied) all.push_back(built(f.tensor, f.name));
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

// Each field's value; tied fields get the tensor of the first.
void put_each(Module& m, DType dtype, const Replacement& value) {
  each_field(m, dtype, [&](Field& f) {
    if (f.tied)
      f.tensor = *f.tied;
    else
      put_field(f, value(f));
  });
}

}  // namespace

const Tensor& built(const Tensor& t, std::string_view name) {
  if (!t)
    throw Error(in_scope(
        invalid("{} has no elements yet: call nn::build(model), or load the model, before using it", name)));
  return t;
}

void build(Module& m, const BuildOptions& options) {
  put_each(m, options.dtype, [&](const Field& f) { return first_value(f, options.seed); });
}

void replace(Module& m, const Replacement& with, DType dtype) { put_each(m, dtype, with); }

std::vector<Tensor> parameters(const Module& m) { return collect(m, true); }
std::vector<Tensor> states(const Module& m) { return collect(m, false); }
int64_t parameter_count(const Module& m) {
  int64_t n = 0;
  each_field(m, [&](const Field& f) {
    if (f.trained && !f.tied) n += element_count(std::span<const int64_t>(f.shape));
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
  std::map<std::string, Tensor> values;  // by name: fields tied here may be separate there
  each_field(from, [&](const Field& f) { values.emplace(f.name, built(f.tensor, f.name)); });
  size_t fields = 0;
  each_field(to, dtype, [&](const Field& f) {
    if (++fields; !values.contains(f.name))
      throw Error(invalid("{}: there is no such field to copy", f.name));
  });
  if (fields != values.size())
    throw Error(invalid("copy_fields: {} fields to copy, {} to take them", values.size(), fields));
  replace(
      to,
      [&](const Field& f) {
        const Tensor& value = values.at(f.name);
        const auto bytes = value.to_bytes();
        if (value.dtype() == f.dtype) return Tensor::from_bytes(bytes, value.sizes(), f.dtype);
        if (is_float(value.dtype()) && overflows(value.dtype(), bytes, f.dtype))
          throw Error(invalid("copy_fields: '{}' has numbers beyond {}", f.name, name(f.dtype)));
        const auto wide = value.to_vector<double>();  // holds every value of a narrower type exactly
        return Tensor::of(std::span<const double>(wide), value.sizes(), f.dtype);
      },
      dtype);
}

}  // namespace weft::nn

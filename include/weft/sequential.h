#pragma once
#include <any>
#include <concepts>
#include <utility>
#include <vector>

#include "weft/module.h"

namespace weft::nn {

/// One part after the other: modules, functions and lambdas of a tensor, each kept by value.
///
///     nn::Sequential model(nn::Conv2d({.in = 1, .out = 8}), relu, nn::Linear(8, 10));
///
/// Modules are named by their place among all parts, so that what has no parameters counts too.
class Sequential : public Module {
 public:
  template <class... Parts>
  explicit Sequential(Parts... parts) {
    (append(std::move(parts)), ...);
  }
  template <std::invocable<const Tensor&> P>
  void append(P part) {
    parts_.push_back(Part::of(std::move(part)));
  }
  size_t size() const { return parts_.size(); }
  void fields(Fields& f) override;
  Tensor operator()(const Tensor& x) const;

 private:
  // A part whose type only these two functions still know.
  struct Part {
    template <class P>
    static Part of(P part) {
      return {std::move(part),
              [](const std::any& held, const Tensor& x) -> Tensor { return get<P>(held)(x); },
              [](std::any& held) -> Module* {
                if constexpr (std::derived_from<P, Module>) return &*std::any_cast<P>(&held);
                return nullptr;
              },
              std::derived_from<P, Module>};
    }
    template <class P>
    static const P& get(const std::any& held) {
      return *std::any_cast<P>(&held);
    }
    std::any held;
    Tensor (*run)(const std::any& held, const Tensor& x);
    Module* (*module)(std::any& held);
    bool is_module;
  };
  std::vector<Part> parts_;
};

}  // namespace weft::nn

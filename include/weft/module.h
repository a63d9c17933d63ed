#pragma once
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor.h"
#include "weft/trace.h"

// Modules. A module declares its fields once: parameters, states and submodules. Creation, naming, counting,
// saving, loading and conversion all follow from that.
namespace weft::nn {

/// The initial elements of a tensor.
struct Initial {
  enum class Kind : uint8_t { constant, normal, uniform, key } kind = Kind::constant;
  double scale = 0;  ///< the constant, the standard deviation, or the bound

  static Initial constant(double value) { return {Kind::constant, value}; }
  static Initial normal(double deviation) { return {Kind::normal, deviation}; }
  /// Evenly from [-bound, bound).
  static Initial uniform(double bound) { return {Kind::uniform, bound}; }
  /// The state (key, 0) of a random op, with a key of its own.
  static Initial key() { return {Kind::key, 0}; }
};

/// A parameter or state, as stored in a checkpoint.
struct Field {
  std::string name;  ///< from the root: "blocks.3.attention.query.weight"
  Tensor& tensor;
  std::vector<int64_t> shape;
  DType dtype;
  Initial initial;
  bool trained;  ///< a parameter; a state changes too, but not by a gradient
  /// The tensor of a field that came before and is the same one: weights that are tied. Null: this is the
  /// first.
  const Tensor* tied = nullptr;
};

class Fields;

/// Part of a model. A layer derives from it, names its fields, and computes in an operator() of its own:
///
///     struct Scale : nn::Module {
///       Tensor factor;
///       void fields(nn::Fields& f) override {
///         f.parameter("factor", factor, {1}, nn::Initial::constant(1));
///       }
///       Tensor operator()(const Tensor& x) const { return x * factor; }
///     };
///
/// Modules are values: a copy shares its tensors until it is built or loaded anew.
///
/// Tensors may be tied: one tensor is named by two fields, or the handle of one field is assigned to another
/// after build(). Such a tensor is one parameter. It counts once, takes one step of an optimiser, is stored
/// once, under the name of its first field, and stays tied when it is replaced.
///
/// Errors   invalid_argument, in whatever walks over the fields, where two of them have one name or one has
///          none, where tied ones differ in shape, dtype or kind, and where a module is inside itself.
class Module {
 public:
  virtual ~Module() = default;
  virtual void fields(Fields& f) = 0;

  /// Is dropout on, do norms take the batch's own statistics? set_training() sets it everywhere below.
  bool training = false;

 protected:
  /// Names the nodes of a trace while it lives: `const Scope here = scope();` begins an operator().
  Scope scope() const { return Scope(own_name_); }

 private:
  friend class Fields;
  std::string own_name_;  // in the module around it
};

/// A visitor of a module's fields.
class Fields {
 public:
  virtual ~Fields() = default;
  /// Of the parameters.
  DType dtype() const { return dtype_; }

  /// A trained parameter, in the dtype of the model.
  void parameter(std::string_view name, Tensor& t, std::vector<int64_t> shape, Initial initial = {});
  /// A state: running statistics, counters.
  void state(std::string_view name, Tensor& t, std::vector<int64_t> shape, DType dtype, Initial initial = {});
  /// The u64[2] state (key, counter) of random ops.
  void random(std::string_view name, Tensor& t);

  void child(std::string_view name, Module& m);
  /// Those of a list are named by their place: "blocks.0".
  template <class M>
  void children(std::string_view name, std::vector<M>& list) {
    for (size_t i = 0; i < list.size(); ++i) child(std::string(name) + "." + std::to_string(i), list[i]);
  }

 protected:
  virtual void field(Field& f) = 0;
  virtual void module(Module&) {}
  DType dtype_ = DType::f32;

 private:
  std::string within(std::string_view name) const;
  void visit(Field f);
  void name_once(const std::string& name, std::string what);

  std::string path_;
  std::map<std::string, std::string> named_;  // what has each name
  std::set<const Module*> seen_;
  std::vector<std::pair<const Module*, std::string>>
      around_;  // the modules that the walk is in, and their paths
  struct First {
    std::string name;
    const Tensor* tensor;
    std::string type;
  };
  std::map<const void*, First> first_;  // by the tensor's place, and by its memory
};

struct BuildOptions {
  uint64_t seed = 0;
  DType dtype = DType::f32;
};
/// Creates all tensors of a module, on the default backend, with their names and initial values. Those depend
/// on the seed, the name and the shape alone: not on the backend, nor on what else the model has.
void build(Module& m, const BuildOptions& options = {});

/// The tensor itself, for a layer to compute with. Errors: invalid_argument when it was not built yet; `name`
/// is said.
const Tensor& built(const Tensor& t, std::string_view name);

/// In the order in which modules name them, a tied one once. Errors: invalid_argument when the module was not
/// built yet.
std::vector<Tensor> parameters(const Module& m);
std::vector<Tensor> states(const Module& m);
/// The number of trained elements.
int64_t parameter_count(const Module& m);

/// Sets training mode for a module and all its submodules.
void set_training(Module& m, bool on);

/// Gives a tensor to put in the place of a field.
using Replacement = std::function<Tensor(const Field&)>;
/// Replaces the tensors of all fields, matched by name; tied and frozen ones stay so. An optimiser made
/// before keeps the old ones.
///
/// Errors   invalid_argument when a tensor has another shape or dtype than its field.
void replace(Module& m, const Replacement& with, DType dtype = DType::f32);
/// Gives `to` the elements of `from`, a module of the same fields, parameters converted to `dtype`; on the
/// default backend.
///
/// Errors   invalid_argument when their fields differ.
void copy_fields(const Module& from, Module& to, DType dtype);
/// A model of its own with the same weights, in another dtype, on the default backend; not in training.
template <class M>
M copy_as(DType dtype, const M& model) {
  M copy = model;
  copy_fields(model, copy, dtype);
  set_training(copy, false);
  return copy;
}

}  // namespace weft::nn

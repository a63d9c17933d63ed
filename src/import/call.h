#pragma once
#include "import/model_ir.h"
#include "import/promote.h"

// What the files of src/import/aten see: one node, with its arguments by the names of ATen's schema.
namespace weft::importer {

class Call;

inline Shape shape_of(const IntList& list) { return Shape(list.begin(), list.end()); }

/// An op of ATen and what becomes of it. `args` are the schema's parameters in order:
///   self        a tensor; a number may stand for it
///   bias?       a tensor that may be missing
///   tensors[]   a list of tensors, in which some may be missing
///   dim=0       anything else, with its default; `dim=` has none, and must be given
/// Those of in-place forms (add_) are the same, and have no entry of their own.
struct AtenOp {
  const char* name;  ///< "add.Tensor"
  const char* args;
  const char*
      how;  ///< the op or ops that it becomes, for docs/import.md; some converters call the op named here
  void (*convert)(Call&);
  /// Of a view: `base` with the elements that the view shows replaced by `part`. Null: the result is a copy.
  ir::Value (*write)(Call&, ir::Value base, ir::Value part) = nullptr;
  /// PyTorch decides by strides whether the result is a view.
  bool maybe_view = false;
};

/// The ops of a file. The build makes the list of files.
struct Family {
  std::span<const AtenOp> ops;
};
std::span<const Family* const> all_families();
/// The names of PyTorch's core set, sorted.
std::span<const char* const> core_aten();
/// Null when nothing has this name.
const AtenOp* find_aten(std::string_view name);

/// A node while it is converted. The first failure is kept: what is asked for afterwards is a plausible
/// value, as of ir::Builder.
class Call {
 public:
  /// `inputs` are the values of node.inputs.
  Call(const NodeInfo& what, const AtenOp& how, ir::Builder& builder, ir::Values inputs);

  const NodeInfo& node;
  const AtenOp& op;
  ir::Builder& b;
  /// Does the first tensor lie in memory row by row? Files say nothing of strides: false where it is not
  /// known.
  bool row_major = false;

  // ---- arguments, by name
  /// Is the argument there, and not None?
  bool has(std::string_view name) const;
  /// A tensor; a number becomes one without axes.
  ir::Value tensor(std::string_view name);
  /// A tensor, or an absent value.
  ir::Value maybe(std::string_view name);
  /// A tensor, a number or neither.
  Operand operand(std::string_view name);
  /// A tensor or a number.
  Operand required(std::string_view name);
  ir::ValueList tensors(std::string_view name);
  int64_t integer(std::string_view name);
  /// An integer that symbols may decide.
  Dim dim(std::string_view name);
  double real(std::string_view name);
  Number number(std::string_view name);
  bool flag(std::string_view name);
  std::string text(std::string_view name);
  /// A list of integers; one integer is a list of one.
  IntList integers(std::string_view name);
  /// The same with one entry for each of `n` axes, where one entry stands for all.
  IntList integers(std::string_view name, size_t n);
  /// The dtype, or `otherwise` for None.
  DType dtype(std::string_view name, DType otherwise);
  /// An axis of a tensor of this rank, counted from the front; a tensor without axes has one.
  int64_t axis(std::string_view name, int64_t rank);
  /// The axes named; none named means all.
  Shape axes(std::string_view name, int64_t rank);

  // ---- results
  /// What the file says of result `i`: its type is checked, and gives sizes that are symbols or -1.
  const TensorType& declared(size_t i = 0) const;
  size_t n_declared() const { return node.outputs.size(); }
  /// Does anything read result `i`? One that nothing reads need not be made.
  bool reads(size_t i) const { return i < node.outputs.size() && !node.outputs[i].name.empty(); }
  void give(ir::Value result) { results.assign(1, result); }
  void give(ir::ValueList all) { results = std::move(all); }
  ir::ValueList results;
  /// For AtenOp::write: which of the node's results is written.
  size_t which = 0;
  /// Something that the user should know, though it is no failure.
  void note(std::string what) { notes.push_back(std::move(what)); }
  std::vector<std::string> notes;

  // ---- what converters share
  /// `operand` in `dtype`: cast, or as a constant without axes.
  ir::Value as(const Operand& operand, DType dtype);
  /// A number as a constant without axes, rounded as PyTorch rounds it.
  ir::Value constant(const Number& n, DType dtype);
  ir::Value constant(double value, DType dtype) { return constant(Number{.value = value}, dtype); }
  /// Operands in the dtype that they promote to.
  ir::ValueList promoted(std::span<const Operand> operands);
  /// Tensors, some of them absent, in one dtype. PyTorch wants them so, but a graph that was exported on the
  /// meta device may have others: they are promoted, and the result is what the file says.
  void unify(std::initializer_list<ir::Value*> operands);
  /// One or more tensors one after the other, in groups where there are more than an op takes.
  ir::Value concat(ir::ValueList all, int64_t along);

  void refuse(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status& status() const { return status_; }

 private:
  struct Bound {
    std::string_view name;
    std::vector<int> inputs;  ///< of tensors: their numbers among the inputs, -1 for one that is missing
    bool is_tensor = false, is_list = false;
    Arg fallback;
  };
  const Bound* find(std::string_view name) const;
  const Arg& argument(std::string_view name);
  void bind(size_t n_given);
  void bind_by_name();
  std::vector<int> bind_list(size_t which_list, size_t& next, size_t most) const;
  void wrong(std::string_view name, std::string_view wanted, const Arg& got);

  ir::Values inputs_;
  std::vector<Bound> bound_;
  Status status_;
};

}  // namespace weft::importer

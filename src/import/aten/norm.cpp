#include "import/call.h"

// Normalisations.
namespace weft::importer {
namespace {

// Weights may be of another float dtype than the input: then in the wider one.
struct Normed {
  ir::Value x, weight, bias;
  DType result;
};
Normed normed_operands(Call& c) {
  Normed n{c.tensor("input"), c.maybe("weight"), c.maybe("bias"), c.declared().dtype};
  std::optional<DType> t = n.x.dtype();
  for (const ir::Value v : {n.weight, n.bias})
    if (v && t) t = promote(*t, v.dtype());
  if (!t) c.refuse(invalid("its operands' dtypes promote to none that Weft has"));
  for (ir::Value* v : {&n.x, &n.weight, &n.bias})
    if (*v) *v = c.b.cast(*v, t.value_or(DType::f32));
  return n;
}
ir::Value layer_normed(Call& c, const Normed& n) {
  const auto trailing = static_cast<int64_t>(c.integers("normalized_shape").size());
  const std::array all = {n.x, n.weight, n.bias};
  return c.b.call("layer_norm", all, {{"trailing", trailing}, {"epsilon", c.real("eps")}})[0];
}
void layer_norm(Call& c) {
  const Normed n = normed_operands(c);
  c.give(c.b.cast(layer_normed(c, n), n.result));
}

// Mean and 1 / deviation over `axes`, as the decomposed ops give them beside the result.
void give_with_statistics(Call& c, ir::Value y, ir::Value x, const Shape& axes, double epsilon) {
  const auto over = [&](const char* op) { return c.b.one(op, {x}, {{"axes", axes}, {"keep", int64_t{1}}}); };
  const auto rest = c.b.one("rsqrt", {c.b.add(over("variance"), epsilon)});
  const auto as = [&](size_t i, ir::Value v) {
    return c.reads(i) ? c.b.cast(c.b.reshape(v, c.declared(i).shape), c.declared(i).dtype) : ir::Value();
  };
  c.give({y, as(1, over("mean")), as(2, rest)});
}
void native_layer_norm(Call& c) {
  const Normed n = normed_operands(c);
  Shape axes;
  const auto trailing = static_cast<int64_t>(c.integers("normalized_shape").size());
  for (int64_t i = n.x.rank() - trailing; i < n.x.rank(); ++i) axes.push_back(i);
  give_with_statistics(c, c.b.cast(layer_normed(c, n), n.result), n.x, axes, c.real("eps"));
}

void rms_norm(Call& c) {
  const auto x = c.tensor("input"), weight = c.maybe("weight");
  const IntList shape = c.integers("normalized_shape");
  // None stands for the epsilon of the dtype, which for halves is that of f32.
  const double epsilon =
      c.has("eps") ? c.real("eps") : weft::epsilon(is_half(x.dtype()) ? DType::f32 : x.dtype());
  const int64_t trailing = static_cast<int64_t>(shape.size()), rank = x.rank();
  if (trailing < 1 || trailing > rank) return c.refuse(invalid("{} axes of {}", trailing, rank));
  Shape rows(x.shape().begin(), x.shape().end() - trailing), row;
  Dim n = 1;
  for (int64_t i = rank - trailing; i < rank; ++i) n = n * x.shape()[static_cast<size_t>(i)];
  rows.push_back(n), row.push_back(n);
  const DType t = weight ? promote(x.dtype(), weight.dtype()).value_or(x.dtype()) : x.dtype();
  const auto scale = weight ? c.b.reshape(c.b.cast(weight, t), row) : c.b.full(1, row, t);
  const auto y = c.b.one("rms_norm", {c.b.reshape(c.b.cast(x, t), rows), scale}, {{"epsilon", epsilon}});
  c.give(c.b.cast(c.b.reshape(y, x.shape()), c.declared().dtype));
}

// ---- by channels
ir::Value batch_normed(Call& c, const Normed& n, const char* mean, const char* variance) {
  const DType t = n.x.dtype();
  const std::array all = {n.x, c.b.cast(c.tensor(mean), t), c.b.cast(c.tensor(variance), t), n.weight,
                          n.bias};
  return c.b.cast(c.b.call("batch_norm", all, {{"epsilon", c.real("eps")}})[0], n.result);
}
constexpr const char* kTrains =
    "it normalises by the batch and updates its statistics, as in training; export after model.eval()";
void batch_norm(Call& c) {
  if (c.flag("training")) return c.refuse(fail(Code::unsupported, "{}", kTrains));
  const Normed n = normed_operands(c);
  c.give(batch_normed(c, n, "running_mean", "running_var"));
}
// The decomposed op, whose statistics are empty.
void batch_norm_legit(Call& c) {
  const Normed n = normed_operands(c);
  const auto nothing = [&](size_t i) { return c.b.full(0, c.declared(i).shape, c.declared(i).dtype); };
  c.give({batch_normed(c, n, "running_mean", "running_var"), nothing(1), nothing(2)});
}
// The op before that, which also trains.
void batch_norm_legit_of(Call& c) {
  if (c.flag("training")) return c.refuse(fail(Code::unsupported, "{}", kTrains));
  batch_norm_legit(c);
}
// By the statistics of the batch, and nothing to keep them in.
void batch_norm_without_statistics(Call& c) {
  const Normed n = normed_operands(c);
  Shape axes;
  for (int64_t i = 0; i < n.x.rank(); ++i)
    if (i != 1) axes.push_back(i);
  if (n.x.rank() < 2) return c.refuse(invalid("channels of {}", weft::text(n.x.type())));
  const auto over = [&](const char* op) { return c.b.one(op, {n.x}, {{"axes", axes}}); };
  const std::array all = {n.x, over("mean"), over("variance"), n.weight, n.bias};
  const auto y = c.b.cast(c.b.call("batch_norm", all, {{"epsilon", c.real("eps")}})[0], n.result);
  give_with_statistics(c, y, n.x, axes, c.real("eps"));
}
ir::Value group_normed(Call& c, const Normed& n, int64_t groups) {
  const std::array all = {n.x, n.weight, n.bias};
  return c.b.cast(c.b.call("group_norm", all, {{"groups", groups}, {"epsilon", c.real("eps")}})[0], n.result);
}
void group_norm(Call& c) { c.give(group_normed(c, normed_operands(c), c.integer("num_groups"))); }
void native_group_norm(Call& c) {
  const Normed n = normed_operands(c);
  const int64_t groups = c.integer("group");
  const auto y = group_normed(c, n, groups);
  if (n.x.rank() < 2 || groups < 1)
    return c.refuse(invalid("{} groups of {}", groups, weft::text(n.x.type())));
  const Dim batch = n.x.shape()[0],
            each = floor_div(element_count(std::span<const Dim>(n.x.shape()).subspan(1)), groups);
  give_with_statistics(c, y, c.b.reshape(n.x, {batch, groups, each}), {2}, c.real("eps"));
}
void instance_norm(Call& c) {
  const Normed n = normed_operands(c);
  if (!c.flag("use_input_stats")) return c.give(batch_normed(c, n, "running_mean", "running_var"));
  const Dim channels = n.x.rank() > 1 ? n.x.shape()[1] : Dim(1);
  if (!channels.is_const()) return c.refuse(fail(Code::unsupported, "channels whose number is a symbol"));
  c.give(group_normed(c, n, channels.value()));
}

constexpr AtenOp norm_ops[] = {
    {"_native_batch_norm_legit.default",
     "input, weight?, bias?, running_mean, running_var, training=, momentum=, eps=", "batch_norm",
     batch_norm_legit_of},
    {"_native_batch_norm_legit.no_stats", "input, weight?, bias?, training=, momentum=, eps=",
     "mean, variance, batch_norm", batch_norm_without_statistics},
    {"_native_batch_norm_legit_no_training.default",
     "input, weight?, bias?, running_mean, running_var, momentum=, eps=", "batch_norm", batch_norm_legit},
    {"batch_norm.default",
     "input, weight?, bias?, running_mean, running_var, training=, momentum=, eps=, cudnn_enabled=false",
     "batch_norm", batch_norm},
    {"group_norm.default", "input, num_groups=, weight?, bias?, eps=1e-05, cudnn_enabled=false", "group_norm",
     group_norm},
    {"instance_norm.default",
     "input, weight?, bias?, running_mean?, running_var?, use_input_stats=, momentum=, eps=, "
     "cudnn_enabled=false",
     "group_norm", instance_norm},
    {"layer_norm.default", "input, normalized_shape=, weight?, bias?, eps=1e-05, cudnn_enable=false",
     "layer_norm", layer_norm},
    {"native_group_norm.default", "input, weight?, bias?, N=None, C=None, HxW=None, group=, eps=",
     "group_norm, mean, variance", native_group_norm},
    {"native_layer_norm.default",
     "input, normalized_shape=, weight?, bias?, eps=", "layer_norm, mean, variance", native_layer_norm},
    {"rms_norm.default", "input, normalized_shape=, weight?, eps=None", "rms_norm", rms_norm},
};

}  // namespace

extern constinit const Family norm_family = {norm_ops};

}  // namespace weft::importer

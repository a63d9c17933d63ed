#include "lab/calls.h"

#include <algorithm>
#include <map>

#include "link/place.h"
#include "link/resolve_types.h"
#include "program/flow.h"
#include "runtime/devices.h"
#include "seam/registry.h"
#include "weft/backends.h"
#include "weft/policy_scope.h"

namespace weft::lab {

using conformance::Array;
using conformance::Bounded;
using program::CompiledProgram;
using program::KernelCall;
using program::ValueId;
using runtime::HostTensor;

// A name that `weft backends` lists, available or not: misspelled names are no part of a list.
static bool is_backend(std::string_view word) {
  return std::ranges::any_of(get_backends(),
                             [&](const auto& b) { return b.name == word.substr(0, word.find(':')); });
}

Result<Config> parse_config(const std::string& text) {
  Config c;
  size_t from = 0;
  for (bool first = true; from <= text.size(); first = false) {
    const size_t end = std::min(text.find(',', from), text.size());
    const std::string word = text.substr(from, end - from);
    from = end + 1;
    if (first) {
      c.backend = word;
    } else if (word == "unfused") {
      c.fuse = false;
    } else if (word.size() > 1 && word[0] == '-') {
      c.without.push_back(word.substr(1));
    } else if (c.fuse && c.without.empty() && is_backend(word)) {
      c.backend += "," + word;  // a list of them
    } else {
      return invalid("a configuration is BACKEND[,BACKEND]...[,unfused][,-KERNEL]..., got '{}' in '{}'", word,
                     text);
    }
  }
  return c;
}

static bool has_kernel(const std::string& backend, const std::string& id) {
  const auto device = seam::registry().open(backend);
  return device.ok() && std::ranges::any_of(device.value()->sources, [&](const auto& source) {
           return std::ranges::any_of(source.kernels, [&](const weft_kernel* k) { return k->id == id; });
         });
}

// Excluding another device's kernel has an effect only if that device may step in.
Status check_kernels(const Config& c) {
  auto backends = std::vector{c.backend.empty() ? default_backend() : c.backend};
  if (current_policy().fallback != Fallback::forbid) backends = get_available_backends();
  for (const auto& id : c.without)
    if (std::ranges::none_of(backends, [&](const auto& backend) { return has_kernel(backend, id); }))
      return invalid(
          "there is no kernel {} to leave out of '{}'; `weft run FILE --ledger` names those that ran", id,
          text(c));
  return {};
}

std::string text(const Config& c) {
  std::string s = c.backend.empty() ? default_backend() : c.backend;
  if (!c.fuse) s += ",unfused";
  for (const auto& k : c.without) s += ",-" + k;
  return s;
}

// ---- sizes

static Status settle(const Bindings& bindings, std::vector<program::TensorSpec>& values,
                     std::vector<KernelCall>& calls) {
  for (auto& v : values) {
    WEFT_TRY(const auto type, link::concrete(v, bindings));
    v.type.shape = to_shape(type.shape);
  }
  for (auto& call : calls)
    for (auto& attr : call.attrs)
      if (auto* dims = std::get_if<Shape>(&attr.value)) {
        WEFT_TRY(const auto numbers, evaluate(std::span<const Dim>(*dims), bindings));
        *dims = to_shape(numbers);
      }
  return {};
}

Result<CompiledProgram> without_symbols(const CompiledProgram& program, std::span<const HostTensor> inputs) {
  if (inputs.size() != program.inputs.size())
    return invalid("{} takes {} inputs, got {}", program.name, program.inputs.size(), inputs.size());
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& want = program.values[static_cast<size_t>(program.inputs[i].value)].type;
    const auto& have = inputs[i].type;
    if (have.dtype != want.dtype || have.shape.size() != want.shape.size())
      return invalid("input {} is {}, got {}", program.inputs[i].name, weft::text(want), seam::text(have));
    for (size_t d = 0; d < have.shape.size(); ++d)
      WEFT_CHECK(unify(want.shape[d], have.shape[d], bindings).at("input " + program.inputs[i].name));
  }
  CompiledProgram p = program;
  WEFT_CHECK(settle(bindings, p.values, p.calls));
  for (auto& region : p.regions) WEFT_CHECK(settle(bindings, region.values, region.calls));
  p.symbols.clear();
  return p;
}

// ---- values

static seam::ConcreteType type_of(const CompiledProgram& p, ValueId id) {
  const auto& t = p.values[static_cast<size_t>(id)].type;
  seam::ConcreteType out{t.dtype, {}};
  for (const Dim d : t.shape) out.shape.push_back(d.value());
  return out;
}

Result<Values> first_values(const CompiledProgram& p, std::span<const HostTensor> inputs) {
  Values values(p.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[static_cast<size_t>(p.inputs[i].value)] = inputs[i];
  const auto from_blob = [&](ValueId id, int32_t blob, const std::string& name) -> Status {
    if (blob < 0) return invalid("{} of {} has no value in the file", name, p.name);
    const auto& b = p.blobs[static_cast<size_t>(blob)];
    values[static_cast<size_t>(id)] = {type_of(p, id), {b.data, b.data + b.size}};
    return {};
  };
  for (const auto& s : p.states) WEFT_CHECK(from_blob(s.before, s.blob, s.name));
  for (const auto& w : p.weights) WEFT_CHECK(from_blob(w.value, w.blob, w.name));
  return values;
}

// The call as a program: its operands are inputs, its results outputs.
static CompiledProgram alone(const CompiledProgram& p, size_t index, std::vector<ValueId>& reads) {
  CompiledProgram one;
  KernelCall call = p.calls[index];
  one.name = program::call_text(index, call);
  std::map<ValueId, ValueId> renamed;
  const auto add = [&](ValueId id) {
    one.values.push_back(p.values[static_cast<size_t>(id)]);
    return renamed[id] = static_cast<ValueId>(one.values.size()) - 1;
  };
  for (ValueId& id : call.inputs) {
    if (id < 0) continue;
    if (!renamed.count(id)) {
      reads.push_back(id);
      one.inputs.push_back({fmt::format("operand {}", reads.size() - 1), add(id)});
    }
    id = renamed[id];
  }
  for (size_t k = 0; k < call.outputs.size(); ++k)
    if (call.outputs[k] >= 0) {
      call.outputs[k] = add(call.outputs[k]);
      one.outputs.push_back({fmt::format("result {}", k), call.outputs[k]});
    }
  one.regions.assign(p.regions.begin(),
                     p.regions.begin() + call.region + 1);  // a body may nest those before it
  one.calls.push_back(std::move(call));
  return one;
}

static seam::Without::Refuse refuses(const Config& c) {
  return [c](const weft_kernel& k) -> std::string {
    if (!c.fuse && std::string_view(k.op) == "region") return "left out: unfused";
    return std::find(c.without.begin(), c.without.end(), k.id) != c.without.end() ? "left out by its name"
                                                                                  : "";
  };
}

static Result<CallRun> run_one(std::shared_ptr<const CompiledProgram> one, std::span<const HostTensor> in,
                               const Config& config, const Policy& policy) {
  WEFT_TRY(auto devices, runtime::devices_for(config.backend, policy));
  const seam::Without without(refuses(config));
  WEFT_TRY(auto session, runtime::Session::create_whole(std::move(one), std::move(devices), policy));
  CallRun run;
  WEFT_TRY(run.results, session->run(in));
  for (const auto& step : session->schedule().steps)
    run.kernels.push_back(step.prepared ? step.prepared->kernel.id : "copy");
  return run;
}

Result<CallRun> run_call(const CompiledProgram& p, size_t index, const Config& config, const Policy& policy,
                         const Values& values) {
  std::vector<ValueId> reads;
  auto one = std::make_shared<const CompiledProgram>(alone(p, index, reads));
  std::vector<HostTensor> in;
  for (const ValueId id : reads) in.push_back(values[static_cast<size_t>(id)]);
  auto run = run_one(one, in, config, policy);
  return run.ok() ? std::move(run) : Result<CallRun>(run.take_status().at(one->name));
}

std::vector<ValueId> results_of(const KernelCall& call) {
  std::vector<ValueId> ids = call.outputs;
  std::erase_if(ids, [](ValueId id) { return id < 0; });
  return ids;
}

void keep(const CompiledProgram& p, size_t index, CallRun run, Values& values) {
  const auto ids = results_of(p.calls[index]);
  for (size_t k = 0; k < ids.size(); ++k) values[static_cast<size_t>(ids[k])] = std::move(run.results[k]);
}

Array to_array(const HostTensor& t) {
  return conformance::decode(t.type.dtype, {t.type.shape.begin(), t.type.shape.end()}, t.bytes);
}

// ---- meaning

static Result<ir::ValueList> add_call(ir::Graph& g, const KernelCall& call, const ir::ValueList& in) {
  const auto* op = ir::find_op(call.op);
  if (!op) return fail(Code::unsupported, "this Weft has no op named {}", call.op);
  WEFT_TRY(auto attrs, ir::order_attrs(*op, call.attrs));
  auto out = g.call(*op, in, std::move(attrs));
  WEFT_CHECK(Status(g.status()));
  return out;
}
// A body's calls on these operands; its results.
static Result<ir::ValueList> add_meaning(ir::Graph& g, const CompiledProgram& p, const KernelCall& call,
                                         const ir::ValueList& in);
static Result<ir::ValueList> add_body(ir::Graph& g, const CompiledProgram& p, const program::Region& r,
                                      const ir::ValueList& operands) {
  ir::ValueList values(r.values.size());
  std::copy(operands.begin(), operands.end(), values.begin());
  for (const auto& call : r.calls) {
    ir::ValueList in;
    for (const ValueId id : call.inputs) in.push_back(id < 0 ? ir::Value() : values[static_cast<size_t>(id)]);
    WEFT_TRY(const auto out, add_meaning(g, p, call, in));
    for (size_t k = 0; k < out.size(); ++k) values[static_cast<size_t>(call.outputs[k])] = out[k];
  }
  ir::ValueList out;
  for (const ValueId id : r.outputs) out.push_back(values[static_cast<size_t>(id)]);
  return out;
}
static Result<ir::ValueList> add_meaning(ir::Graph& g, const CompiledProgram& p, const KernelCall& call,
                                         const ir::ValueList& in) {
  return call.region < 0 ? add_call(g, call, in)
                         : add_body(g, p, p.regions[static_cast<size_t>(call.region)], in);
}

Result<seam::CallDesc> describe(const CompiledProgram& p, size_t index) {
  std::vector<seam::ConcreteType> types;
  for (const auto& value : p.values) {
    WEFT_TRY(auto type, link::concrete(value, {}));
    types.push_back(std::move(type));
  }
  const auto& call = p.calls[index];
  WEFT_TRY(auto desc, link::describe(call, types, {}));
  const Bindings none;
  WEFT_TRY(desc.region, link::Bodies(p, none).of(call.region));
  return desc;
}

std::vector<seam::Constant> constants_of(const CompiledProgram& p, size_t index, bool one_size) {
  const auto packable = link::packable_weights(p);
  std::vector<seam::Constant> found;
  const auto& inputs = p.calls[index].inputs;
  for (uint32_t i = 0; i < inputs.size(); ++i)
    for (size_t w = 0; w < p.weights.size(); ++w)
      if (packable[w] && p.weights[w].value == inputs[i]) found.push_back({i, {}, one_size});
  return found;
}

// The results are the graph's outputs.
Result<ir::Graph> call_graph(const CompiledProgram& p, size_t index) {
  const auto& call = p.calls[index];
  ir::Graph g;
  ir::ValueList in;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const ValueId id = call.inputs[i];
    in.push_back(id < 0 ? ir::Value()
                        : g.input(fmt::format("{}", i), p.values[static_cast<size_t>(id)].type));
  }
  WEFT_TRY(const auto out, add_meaning(g, p, call, in));
  for (size_t k = 0; k < out.size(); ++k) g.output(fmt::format("{}", k), out[k]);
  return g;
}

Result<std::vector<Bounded>> bound_call(const CompiledProgram& p, size_t index, const Values& values) {
  const auto& call = p.calls[index];
  WEFT_TRY(const auto g, call_graph(p, index));
  std::vector<Bounded> operands;
  for (const ValueId id : call.inputs)
    if (id >= 0) operands.push_back(conformance::exactly(to_array(values[static_cast<size_t>(id)])));
  const auto all = conformance::bound_graph(g, std::move(operands));
  std::vector<Bounded> results;
  for (size_t k = 0; k < g.outputs.size(); ++k)
    if (call.outputs[k] >= 0) results.push_back(all[static_cast<size_t>(g.outputs[k].value)]);
  return results;
}

Result<WholeGraph> whole_graph(const CompiledProgram& p, const Values& first) {
  WholeGraph whole;
  ir::ValueList values(p.values.size());
  const auto enter = [&](const std::string& name, ValueId id) {
    const auto at = static_cast<size_t>(id);
    values[at] = whole.graph.input(name, p.values[at].type);
    whole.values.push_back(to_array(first[at]));
  };
  for (const auto& i : p.inputs) enter(i.name, i.value);
  for (const auto& s : p.states) enter(s.name, s.before);
  for (const auto& w : p.weights) enter(w.name, w.value);
  for (size_t i = 0; i < p.calls.size(); ++i) {
    const auto& call = p.calls[i];
    ir::ValueList in;
    for (const ValueId id : call.inputs) in.push_back(id < 0 ? ir::Value() : values[static_cast<size_t>(id)]);
    auto out = add_meaning(whole.graph, p, call, in);
    if (!out.ok()) return out.take_status().at(program::call_text(i, call));
    for (size_t k = 0; k < call.outputs.size(); ++k)
      if (call.outputs[k] >= 0) values[static_cast<size_t>(call.outputs[k])] = out.value()[k];
  }
  for (const auto& o : p.outputs) whole.graph.output(o.name, values[static_cast<size_t>(o.value)]);
  for (const auto& s : p.states) whole.graph.output(s.name, values[static_cast<size_t>(s.after)]);
  return whole;
}

std::vector<Array> outputs_of(const CompiledProgram& p, const Values& values) {
  std::vector<Array> out;
  for (const auto& o : p.outputs) out.push_back(to_array(values[static_cast<size_t>(o.value)]));
  for (const auto& s : p.states) out.push_back(to_array(values[static_cast<size_t>(s.after)]));
  return out;
}

// The ops of a body, fully decomposed.
static std::string steps_of(const CompiledProgram& p, int32_t region) {
  std::string names;
  for (const auto& step : p.regions[static_cast<size_t>(region)].calls) {
    const bool opened = step.region >= 0 && !ir::find_op(step.op);
    names += opened ? steps_of(p, step.region) : " " + step.op;
  }
  return names;
}

std::string describe_call(const CompiledProgram& p, size_t index) {
  const auto& call = p.calls[index];
  const auto types = [&](const std::vector<ValueId>& ids) {
    std::string s;
    for (const ValueId id : ids)
      s += (s.empty() ? "" : ", ") +
           (id < 0 ? std::string("_")
                   : fmt::format("%{}: {}", id, weft::text(p.values[static_cast<size_t>(id)].type)));
    return s;
  };
  std::string name = program::call_text(index, call);
  if (!ir::find_op(call.op) && call.region >= 0) {
    name += " of" + steps_of(p, call.region);
  }
  return fmt::format("{}: {} = ({})", name, types(call.outputs), types(call.inputs));
}

}  // namespace weft::lab

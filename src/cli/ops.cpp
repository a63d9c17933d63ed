#include <algorithm>
#include <map>
#include <set>

#include "cli/command.h"
#include "cli/show.h"
#include "import/import.h"
#include "ir/end.h"
#include "ir/op.h"
#include "seam/registry.h"
#include "weft/backends.h"

// weft ops: the documentation of each op and its kernels. docs/ops.md is the output of --markdown,
// docs/import.md that of --imports.
namespace weft::cli {
namespace {

/// Op -> ids of its kernels on the available backends. Without the shared primitives, which every backend may
/// have.
std::map<std::string, std::set<std::string>> own_kernels() {
  std::map<std::string, std::set<std::string>> all;
  for (const auto& name : get_available_backends()) {
    const auto device = seam::registry().open(name);
    if (!device.ok()) continue;
    for (const auto& source : device.value()->sources)
      for (const weft_kernel* k : source.kernels)
        if (!std::string_view(k->id).ends_with(".shared")) all[k->op].insert(k->id);
  }
  return all;
}

std::string signature(const ir::OpDef& op) {
  std::string s;
  const auto add = [&](const std::string& word) { s += (s.empty() ? "" : ", ") + word; };
  for (int i = 0; i < static_cast<int>(op.listed(0)); ++i)
    add(fmt::format("{}{}", op.inputs[static_cast<size_t>(i)], i >= op.n_inputs - op.n_optional ? "?" : ""));
  if (op.n_inputs > op.listed(0)) add("...");
  const auto defaults = op.defaults();
  for (size_t i = 0; i < op.attrs.size(); ++i) {
    const auto* dims = std::get_if<Shape>(&defaults[i]);
    const bool end = dims && *dims == Shape{ir::kEnd};
    add(fmt::format("{} = {}", op.attrs[i].name, end ? "end" : text(defaults[i])));
  }
  std::string results;
  for (int k = 0; k < op.n_outputs; ++k)
    results += fmt::format("{}{}", k ? ", " : "", op.outputs[static_cast<size_t>(k)]);
  return fmt::format("{}({}) -> {}", op.name, s, results);
}

const char* gradient(const ir::OpDef& op) {
  if (!op.differentiable) return "none";
  return op.grad ? "its own rule" : op.decompose ? "by its decomposition" : "none";
}

Json to_json(const ir::OpDef& op, const std::set<std::string>& kernels) {
  return {{"name", op.name},          {"signature", signature(op)}, {"primitive", op.primitive()},
          {"gradient", gradient(op)}, {"kernels", kernels},         {"doc", op.doc}};
}

constexpr const char* kLimits =
    "Limits: a tensor has up to 8 axes, an op up to 8 operands. The operands of a call keep their dtypes:\n"
    "nothing is converted unless the op's DType line says so. Number types are f64, f32, f16, bf16 (the "
    "floats), "
    "i32,\n"
    "i64, u32 and u64; compute types are these and bool. i8, u8, f8e4m3 and f8e5m2 are for storage: ops "
    "that\n"
    "move elements take them, and cast makes compute types of them.\n";

void print_words(const ir::OpDef& op, const std::set<std::string>& kernels) {
  fmt::print("{}\n\n{}\n\n", signature(op), op.doc);
  fmt::print("{}; gradient: {}\n", op.primitive() ? "primitive" : "composite", gradient(op));
  for (const auto& k : kernels) fmt::print("  {}\n", k);
  fmt::print("\n");
}

void print_markdown(const std::vector<const ir::OpDef*>& ops,
                    const std::map<std::string, std::set<std::string>>& kernels) {
  fmt::print(
      "# Ops\n\nMade by `weft ops --markdown` from the definitions in `src/ops`; `scripts/test` compares the "
      "two.\n\n"
      "Every backend runs every op. A primitive op has a kernel everywhere: one of the shared ones, or text "
      "made by\n"
      "`loops`. A composite one runs by its own kernel where a backend has one, and otherwise by its "
      "decomposition.\n"
      "A question mark follows an operand that may be left out.\n\n{}\n| op | | gradient | kernels of its "
      "own "
      "|\n| --- | --- | --- | "
      "--- |\n",
      kLimits);
  const auto own = [&](const ir::OpDef& op) {
    const auto found = kernels.find(op.name);
    return found == kernels.end() ? std::set<std::string>() : found->second;
  };
  for (const auto* op : ops) {
    std::string list;
    for (const auto& k : own(*op)) list += (list.empty() ? "`" : ", `") + k + "`";
    fmt::print("| [{0}](#{0}) | {1} | {2} | {3} |\n", op->name, op->primitive() ? "primitive" : "composite",
               gradient(*op), list);
  }
  for (const auto* op : ops)
    fmt::print("\n## {}\n\n`{}`\n\n```text\n{}\n```\n", op->name, signature(*op), op->doc);
}

struct Options {
  std::vector<std::string> names;
  bool markdown = false, imports = false;
};

int run(const Options& o, const Common& common) {
  if (o.imports) {
    fmt::print("{}", importer::coverage_page());
    return 0;
  }
  std::vector<const ir::OpDef*> ops;
  for (const auto& name : o.names) {
    const auto* op = ir::find_op(name);
    if (!op) throw Error(invalid("no op is called '{}'; `weft ops` lists them all", name));
    ops.push_back(op);
  }
  if (o.names.empty()) ops.assign(ir::all_ops().begin(), ir::all_ops().end());
  auto kernels = own_kernels();
  if (o.markdown) {
    print_markdown(ops, kernels);
  } else if (common.json) {
    Json out = Json::list();
    for (const auto* op : ops) out.push_back(to_json(*op, kernels[op->name]));
    fmt::print("{}\n", page_of(out));
  } else if (o.names.empty()) {
    for (const auto* op : ops) {
      const std::string_view doc = op->doc;
      fmt::print("{:<20} {}\n", op->name, doc.substr(0, doc.find('\n')));
    }
  } else {
    for (const auto* op : ops) print_words(*op, kernels[op->name]);
    fmt::print("{}", kLimits);
  }
  return 0;
}

}  // namespace

extern const Command ops_command = {
    "ops", "list ops with their documentation and kernels",
    [](Syntax& app, const Common& common) -> std::function<int()> {
      const auto o = std::make_shared<Options>();
      app.add_option("names", o->names, "ops to explain (default: a line for each)").type_name("OP");
      app.add_flag("--markdown", o->markdown, "as docs/ops.md is written");
      app.add_flag("--imports", o->imports,
                   "the ops of ATen that weft compile imports, as docs/import.md is written");
      return [o, &common] { return run(*o, common); };
    }};

}  // namespace weft::cli

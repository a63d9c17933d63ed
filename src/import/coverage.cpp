#include <algorithm>

#include "import/call.h"
#include "import/import.h"
#include "import/refused.h"

namespace weft::importer {
namespace {

std::string how_cell(const AtenOp& op) {
  std::string out;
  std::string_view rest = op.how;
  if (rest.empty()) return "nothing: the operand itself, or a copy";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(", "), rest.size());
    out += fmt::format("{}`{}`", out.empty() ? "" : ", ", rest.substr(0, end));
    rest.remove_prefix(std::min(rest.size(), end + 2));
  }
  return out;
}

std::string refusal(std::string_view name) {
  const char* why = why_refused(name);
  return why ? fmt::format("no: {}", why) : "no";
}

std::vector<const AtenOp*> all_ops() {
  std::vector<const AtenOp*> all;
  for (const Family* family : all_families())
    for (const AtenOp& op : family->ops) all.push_back(&op);
  std::sort(all.begin(), all.end(),
            [](const AtenOp* a, const AtenOp* b) { return std::string_view(a->name) < b->name; });
  return all;
}

constexpr const char* kPage =
    R"(# Models from PyTorch

Made by `weft ops --imports` from the files of `src/import/aten`; `scripts/test` compares the two.

`weft compile` reads `model_ir.json`, as PyPI's `pytorch-ir` writes what `torch.export` made of a model,
and its weights:
```
weft compile model_ir.json --weights model.safetensors --out model.weft
weft run model.weft --inputs inputs.safetensors --out outputs.safetensors
```
The ATen graph is imported as it was exported, not a decomposed one. A view that is written in place
writes to what it is a view of. A buffer that the model writes to is a state of the program. What can't be
imported is listed at once, with the names of the nodes.

`scripts/lib/model_ir.py` exports a model: `json.dump(export(model, inputs), file)`. It does four things
that `extract_ir()` of `pytorch-ir` leaves to its caller:
- It exports under `torch.no_grad()`. Otherwise a block of `no_grad` is one node,
  `wrap_with_set_grad_enabled`, whose body the file does not hold.
- It writes dtypes and devices as texts, such as `torch.float32`; JSON has nothing else for them.
- It keeps sizes that are symbols: in `"shape": ["s0", 8]` a text is a dimension over the symbols that
  the field `symbols` of the file names, each with its least and largest value: `"symbols": {"s0": [1,
  64]}`. They are symbols of the program. Sizes that are arguments, which `pytorch-ir` leaves out, are
  `{"dim": "s0 + 1"}`.
- It names the parameter of each tensor in a field `arg`: `(x, None, bias)` and `(x, weight)` look alike
  without. A file that does not is read by the names of its tensors, which then must end in `weight` or
  `bias`.

`--weights` may be given more than once; no tensor may be in two of the files. A weight that is narrower
in a file than in the model is widened. `--tie NAME=OTHER` says that the weight NAME is the one that a
file has as OTHER. Constants that the code of a model makes are in the file when the export ran on the
CPU, not on the meta device.
i16 and complex numbers do not exist in Weft; what draws random numbers, layers in training mode, and
results whose size depends on data are refused: `torch.nonzero_static` has a size, `nonzero` has not. So are
resizing an axis whose size is a symbol, and numbers that are no whole numbers but depend on sizes.
`as_strided` wants an operand that lies in memory row by row: an input, a weight, or what
`contiguous()` made. A model of `transformers` with experts is exported with
`config._experts_implementation = "batched_mm"`: its other ways loop over data, or call ops of its own.

An op below includes its form in place: `add.Tensor` is `add_.Tensor`, too.

)";

}  // namespace

std::string coverage_page() {
  const auto core = core_aten();
  size_t covered = 0;
  std::string core_rows, other_rows;
  for (const char* name : core) {
    const AtenOp* op = find_aten(name);
    const bool size = std::string_view(name).starts_with("sym_");
    covered += op || size;
    core_rows += fmt::format("| `{}` | {} |\n", name,
                             op     ? how_cell(*op)
                             : size ? "nothing: shapes hold it"
                                    : refusal(name));
  }
  size_t others = 0;
  for (const AtenOp* op : all_ops()) {
    if (std::find_if(core.begin(), core.end(), [&](std::string_view n) { return n == op->name; }) !=
        core.end())
      continue;
    ++others;
    other_rows += fmt::format("| `{}` | {} |\n", op->name, how_cell(*op));
  }
  return kPage + fmt::format(
                     "## Core ATen: {} of {}\n\n| op | imported as |\n| --- | --- |\n{}\n"
                     "## Other ops of ATen: {}\n\n| op | imported as |\n| --- | --- |\n{}",
                     covered, core.size(), core_rows, others, other_rows);
}

}  // namespace weft::importer

"""Writes a model of models.py for all that run it: model_ir.json, weights and inputs as safetensors, model.onnx, and PyTorch's outputs.

    write.py NAME FOLDER
"""
import json
import logging
import pathlib
import sys
import time
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lib"))
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import torch  # noqa: E402
from model_ir import export  # noqa: E402
from models import make  # noqa: E402
from safetensors.torch import save_file  # noqa: E402


def main():
    name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    model, inputs = make(name)
    start = time.perf_counter()
    ir = export(model, inputs)
    exported = time.perf_counter() - start
    held = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers(remove_duplicate=False))}
    read = {i["name"] for node in ir["nodes"] for i in node["inputs"]}
    named = {weight for placeholder, weight in ir["weight_name_mapping"].items() if placeholder in read}
    ir["constants"] = {k: v for k, v in ir.get("constants", {}).items() if k in named and k not in held}
    save_file({k: held[k].detach().clone().contiguous() for k in sorted(named & set(held))}, folder / "model.safetensors")
    save_file({t["name"]: x.contiguous() for t, x in zip(ir["graph_inputs"], inputs, strict=True)}, folder / "inputs.safetensors")
    with torch.no_grad():
        made = model(*inputs)
    made = made if isinstance(made, tuple) else (made,)
    save_file({t["name"]: y.contiguous() for t, y in zip(ir["graph_outputs"], made, strict=True)}, folder / "outputs.safetensors")
    (folder / "model_ir.json").write_text(json.dumps(ir, separators=(",", ":")) + "\n", encoding="utf-8")
    torch.onnx.export(model, inputs, folder / "model.onnx", dynamo=True, external_data=True, verbose=False)
    print(json.dumps({"nodes": len(ir["nodes"]), "export_s": exported}))


if __name__ == "__main__":
    main()

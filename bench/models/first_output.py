"""From the start to the first output, weft beside onnxruntime, by turns. scripts/bench first runs it.

    first_output.py FOLDER WEFT [--threads N] [--rounds N] [NAME...]

Of weft all of a process counts that loads the program file, runs it once and ends; of onnxruntime the session and its first run, without
the start of Python and the loading of its library. Each turn is a process of its own; the files are in the page cache. CPU time, user
and system, and the clock. Exits with 1 where weft takes more than half of onnxruntime's CPU time.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
MOST = 0.5


def of_peer(folder, threads):
    """CPU seconds and seconds of a session and a run; prints them, in a process of its own."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import onnxruntime as ort
    from safetensors.numpy import load_file
    ir = json.loads((folder / "model_ir.json").read_text(encoding="utf-8"))
    tensors = load_file(folder / "inputs.safetensors")
    inputs = [tensors[t["name"]] for t in ir["graph_inputs"]]
    cpu, clock = time.process_time(), time.perf_counter()
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    session.run(None, dict(zip([x.name for x in session.get_inputs()], inputs, strict=True)))
    print(json.dumps([time.process_time() - cpu, time.perf_counter() - clock]))


def peer(folder, threads):
    words = [sys.executable, __file__, "--peer", folder, "-", "--threads", str(threads)]
    return json.loads(subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout)


def weft(program, folder, threads):
    def used():
        r = resource.getrusage(resource.RUSAGE_CHILDREN)
        return r.ru_utime + r.ru_stime
    cpu, clock = used(), time.perf_counter()
    subprocess.run([program, "run", folder / "model.weft", "--inputs", folder / "inputs.safetensors", "--threads", str(threads), "--json"],
                   check=True, stdout=subprocess.DEVNULL)
    clock = time.perf_counter() - clock
    return used() - cpu, clock


def prepare(name, folder, program):
    if not (folder / "model.onnx").exists():
        subprocess.run([sys.executable, pathlib.Path(__file__).parent / "write.py", name, folder], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([program, "compile", folder / "model_ir.json", "--weights", folder / "model.safetensors", "--out", folder / "model.weft",
                    "--tests", "0"], check=True, stdout=subprocess.DEVNULL)
    for file in (folder / "model.weft", folder / "model.onnx.data"):  # both as a file lies in the page cache that was read, not written
        if not file.exists():
            continue
        with open(file, "rb") as f:
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while f.read(1 << 20):
                pass


def show(name, ours, theirs):
    share = 0
    for k, what in enumerate(("CPU", "clock")):
        a, b = [1e3 * x[k] for x in ours], [1e3 * x[k] for x in theirs]
        ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
        share = share or ratio
        print(f"{name:<13} {what:<5} ms: weft {statistics.median(a):.1f} (least {min(a):.1f}), onnxruntime {statistics.median(b):.1f} "
              f"(least {min(b):.1f}); weft takes {ratio:.2f} of it (at most {MOST})", flush=True)
    return share <= MOST


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=11)
    p.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("weft")
    p.add_argument("names", nargs="*")
    o = p.parse_intermixed_args()
    if o.peer:
        return of_peer(o.folder, o.threads)
    good = True
    for name in o.names or ["minilm-1"]:
        folder = o.folder / name
        prepare(name, folder, o.weft)
        ours, theirs = [], []
        for r in range(o.rounds):
            turns = [lambda: ours.append(weft(o.weft, folder, o.threads)), lambda: theirs.append(peer(folder, o.threads))]
            for turn in turns[::-1] if r % 2 else turns:
                turn()
        good &= show(name, ours, theirs)
    return sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

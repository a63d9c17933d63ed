"""Weft beside onnxruntime, OpenVINO and torch.compile on whole models, by turns. scripts/bench models runs it.

    compare.py FOLDER WEFT [--json FILE] [--threads N] [--rounds N] [--seconds X] [--peers A,B] [--backend NAMES] [NAME...]

Each round runs `weft bench` and each peer for SECONDS; of a round's runs the median counts. The figures are medians over the rounds,
the ratio is the median of the rounds' ratios to the peer that is fastest. Exits with 1 where a model falls short, or numbers differ.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
PEERS = ["onnxruntime", "openvino", "torch.compile"]
MOST_DIFFERENCE = 1e-3  # of the largest output; a check that they compute the same, not of how well


def median(values):
    return statistics.median(values)


class Peer:
    def __init__(self, peer, name, folder, threads):
        self.name = peer
        self.process = subprocess.Popen([sys.executable, HERE / "peer.py", peer, name, folder, str(threads)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.about = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended")
        return json.loads(line)

    def measure(self, seconds):
        print(seconds, file=self.process.stdin, flush=True)
        return median(self.answer())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Weft:
    def __init__(self, weft, folder, threads, backend):
        self.weft, self.folder = weft, folder
        self.options = ["--threads", str(threads), "--json", *(["--backend", backend] if backend else [])]
        self.program, self.inputs = folder / "model.weft", folder / "inputs.safetensors"

    def call(self, *words):
        return json.loads(subprocess.run([self.weft, *words, *self.options], check=True, text=True, stdout=subprocess.PIPE).stdout)

    def compile(self):
        start = time.perf_counter()
        self.call("compile", self.folder / "model_ir.json", "--weights", self.folder / "model.safetensors", "--out", self.program,
                  "--tests", "0")
        return time.perf_counter() - start

    def difference(self):
        import numpy as np
        from safetensors.numpy import load_file
        made = self.folder / "weft.safetensors"
        self.call("run", self.program, "--inputs", self.inputs, "--out", made)
        ours, theirs = load_file(made), load_file(self.folder / "outputs.safetensors")
        return max(float(np.abs(ours[k] - y).max() / np.abs(y).max()) for k, y in theirs.items())

    def ready(self):
        """Seconds of a process that loads the program, runs it once and ends."""
        start = time.perf_counter()
        self.call("run", self.program, "--inputs", self.inputs)
        return time.perf_counter() - start

    def measure(self, seconds):
        found = self.call("bench", self.program, "--inputs", self.inputs, "--seconds", str(seconds), "--warm-up", "0.3")
        self.backend = found["backend"]
        return found["seconds"]["median"]


def compare(name, folder, reach, options):
    if not (folder / "model.onnx").exists():
        subprocess.run([sys.executable, HERE / "write.py", name, folder], check=True, stdout=subprocess.DEVNULL)
    ours = Weft(options.weft, folder, options.threads, options.backend)
    compiled = min(ours.compile() for _ in range(3))
    peers = [Peer(p, name, folder, options.threads) for p in options.peers.split(",")]
    off = ours.difference()
    ready = min(ours.ready() for _ in range(3))
    rounds = []
    for r in range(options.rounds):
        turns = [ours, *peers]
        turns = turns[::-1] if r % 2 else turns
        rounds.append({getattr(t, "name", "weft"): t.measure(options.seconds) for t in turns})
    for p in peers:
        p.close()
    times = {who: median([r[who] for r in rounds]) for who in rounds[0]}
    fastest = min((p.name for p in peers), key=times.get)
    ratios = sorted(r[fastest] / r["weft"] for r in rounds)
    return {"model": name, "threads": options.threads, "backend": ours.backend, "seconds": times, "fastest_peer": fastest,
            "ratio": median(ratios), "low": ratios[len(ratios) // 4], "high": ratios[-1 - len(ratios) // 4], "reach": reach,
            "difference": off, "compile_s": compiled, "ready_s": ready, "peers": {p.name: p.about for p in peers},
            "rounds": rounds}


def machine():
    """What a reader of the figures must know of where they were measured."""
    cpu = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    said = dict(map(str.strip, line.split(":", 1)) for line in cpu.splitlines() if ":" in line)
    units = [f for f in said.get("flags", "").split() if f in ("avx2", "avx512f", "amx_bf16")]
    return f"{said.get('model name', 'CPU')}, {os.cpu_count()} virtual cores, {' '.join(units)}"


def commit():
    return subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.strip()


def show(row):
    names = list(row["seconds"])
    text = "  ".join(f"{n} {1e3 * row['seconds'][n]:.2f}" for n in names)
    good = row["ratio"] >= row["reach"] and row["difference"] <= MOST_DIFFERENCE
    print(f"{row['model']:<13} ms: {text}  ratio {row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}] to {row['fastest_peer']}"
          f" (reach {row['reach']:.1f}){'' if good else ' SHORT'}")
    about = {n: f"{p['ready_s']:.2f}" for n, p in row["peers"].items()}
    print(f"{'':<13} s until ready: weft {row['ready_s']:.3f} (a process), {', '.join(f'{n} {s}' for n, s in about.items())};"
          f" compiled in {row['compile_s']:.2f} s; differs from PyTorch by {row['difference']:.1e}", flush=True)
    return good


def main():
    from models import CASES
    p = argparse.ArgumentParser()
    p.add_argument("--json")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--peers", default=",".join(PEERS))
    p.add_argument("--backend", default="")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("weft", type=pathlib.Path)
    p.add_argument("names", nargs="*")
    o = p.parse_intermixed_args()
    if unknown := set(o.names) - set(CASES):
        sys.exit(f"no model is named {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    rows, good, began = [], True, time.perf_counter()
    for name in o.names or CASES:
        rows.append(compare(name, o.folder / name, CASES[name].reach, o))
        rows[-1]["load"] = os.getloadavg()[1]  # of the last five minutes
        good &= show(rows[-1])
    if o.json:
        made = {"machine": machine(), "commit": commit(), "threads": o.threads, "rounds": o.rounds, "seconds_a_turn": o.seconds,
                "seconds_in_all": time.perf_counter() - began, "models": rows}
        pathlib.Path(o.json).write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()

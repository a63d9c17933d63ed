#!/usr/bin/env python3
"""How often the lab's verdicts are right: a kernel beside itself, and beside one that takes 3 percent longer.

    bench/lab/error_rates.py WEFT [--runs N] [--first SEED] [--seconds S] [--jobs N] [--kernels FOLDER] [--long] [--out FILE]
    bench/lab/error_rates.py WEFT --gpu --plugin cuda.so [--runs N] [--first SEED] [--seconds S] [--long]

Prints a table of verdicts, and exits with 1 where equal kernels are not the SAME, or slower ones not SLOWER, in 95 of 100 runs that were
not UNDECIDED, or where any verdict says FASTER.
"""
import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS, HONEST_ON_GPU = ROOT / "tests" / "lab", ROOT / "examples" / "lab" / "softmax.cu"
PAIRS = [("equal", "honest", "honest", "SAME"), ("3 percent slower", "honest", "slower", "SLOWER")]


def slower_on_gpu(folder):
    """The softmax of the examples, each of whose blocks then waits for a sixteenth of the time that it took: about 3 percent slower, since
    others compute meanwhile."""
    text = HONEST_ON_GPU.read_text()
    begin, end = "  const long row = blockIdx.x;\n", "}\n"
    if text.count(begin) != 1 or not text.endswith(end):
        raise SystemExit(f"{HONEST_ON_GPU} is not as it was: where does a block begin and end?")
    text = text.replace(begin, "  const long long began = clock64();\n" + begin)[:-len(end)]
    text += "  const long long took = clock64() - began;\n  while (clock64() - began < took + took / 16) {\n  }\n" + end
    file = folder / "slower.cu"
    file.write_text(text)
    return file


def file_of(name, o):
    if o.gpu:
        return HONEST_ON_GPU if name == "honest" else o.slower
    return o.kernels / f"{name}.so" if o.kernels else KERNELS / f"{name}.cpp"


def verdicts(first, second, seed, o):
    words = [o.weft, "lab", file_of(first, o), file_of(second, o), "--ops", "softmax", "--json", "--threads", "1",
             "--seconds", str(o.seconds), "--seed", str(seed)]
    # One launch must take long beside what a stamp and a launch cost, or 3 percent of the kernel are less of the time.
    words += ["--shapes", "1024x4096"] if o.gpu else []
    words += [] if o.long else ["--quick"]
    words += ["--plugin", *o.plugin] if o.plugin else []
    out = subprocess.run(words, text=True, stdout=subprocess.PIPE, check=False).stdout
    rows = [json.loads(line)["rows"][1] for line in out.splitlines()]
    return [(r["verdict"], r.get("ratio", {}), r["turns"], r["why"]) for r in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weft")
    parser.add_argument("--runs", type=int, default=50, help="of each pair; each gives a verdict for two sizes of softmax, on a GPU for one")
    parser.add_argument("--first", type=int, default=1, help="seed of the first run; the others follow")
    parser.add_argument("--seconds", type=float, default=10, help="that one verdict may take")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, each of two processes of one thread that take turns")
    parser.add_argument("--kernels", type=pathlib.Path, help="a folder with honest.so and slower.so, for a machine without a compiler")
    parser.add_argument("--gpu", action="store_true", help="kernels in CUDA C++, on the first device that compiles it")
    parser.add_argument("--plugin", nargs="+", default=[], help="of the GPU's backend")
    parser.add_argument("--out", type=argparse.FileType("a"), help="each verdict with its interval and processes, as JSON lines")
    parser.add_argument("--long", action="store_true", help="without --quick")
    o = parser.parse_args()
    folder = tempfile.TemporaryDirectory()
    o.slower = slower_on_gpu(pathlib.Path(folder.name)) if o.gpu else None
    failed = False
    for name, first, second, wanted in PAIRS:
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            of_runs = pool.map(lambda seed: verdicts(first, second, seed, o), range(o.first, o.first + o.runs))
            found = [v for run in of_runs for v in run]
        if not any(ratio for _, ratio, _, _ in found):
            raise SystemExit(f"{name}: nothing was timed: {found[0][0]}")
        counts = collections.Counter(v for v, _, _, _ in found)
        ratios = sorted(r["middle"] for _, r, _, _ in found if r)
        turns = sorted(t for _, _, t, _ in found)
        processes = sorted(len(r["processes"]) for _, r, _, _ in found if r)
        for why in sorted({w for _, _, _, w in found if w}):
            print(f"{name}: {why}")
        print(f"{name}: {', '.join(f'{n} {v}' for v, n in counts.most_common())}; ratios {ratios[0]:.3f} to {ratios[-1]:.3f}, "
              f"median {ratios[len(ratios) // 2]:.3f}; turns {turns[len(turns) // 2]} (most {turns[-1]}) of {processes[len(processes) // 2]} processes",
              flush=True)
        if o.out:
            o.out.write("".join(json.dumps({"pair": name, "verdict": v, "ratio": r}) + "\n" for v, r, _, _ in found))
        sure = len(found) - counts["UNDECIDED"]
        failed |= counts[wanted] < 0.95 * sure or counts["FASTER"] > 0
    raise SystemExit(failed)


if __name__ == "__main__":
    main()

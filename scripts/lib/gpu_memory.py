"""compute-sanitizer over a fault planted for each tool, over the smallest calls of each kernel of a GPU's backend (weft check,
reaches_its_kernels), and over three steps of training, shared out among processes.

    gpu_memory.py FOLDER SECONDS PROCESSES WEFT BACKEND TEXT "TOOL..." [OPTION...]      TEXT: what is trained on

The cases are run without a tool first. Prints for each tool how many cases of how many kernels ran and how many errors it saw, and
the kernels that no case reaches. Writes what each process printed to FOLDER/TOOL.txt. After SECONDS no process is begun. Exits with 1
where there were errors, a case failed or was not run, or a tool did not see the fault planted for it (the program `planted` beside
WEFT, of bench/gpu/planted.cu).
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

CHECK = "reaches_its_kernels"
SHARE = 8  # cases of a process; its start takes as long as twenty small ones
# Rows and heads that the kernels of warpgroups take; racecheck takes a hundred times as long, and longer for more of them.
TRAINED = ["--layers", "1", "--heads", "2", "--width", "128", "--batch", "1", "--context", "256", "--compile", "--steps", "3",
           "--sample-every", "0", "--fresh"]
SETTINGS = {"initcheck": {"WEFT_GPU_SHOW_STORES": "1"}}  # backends/cuda/README.md says why


def report_of(text):
    for line in reversed(text.splitlines()):
        if line.startswith('{"backend"'):
            return json.loads(line)
    return None


def kernel_of(case):
    return case.rsplit(" by ", 1)[1]


def errors_in(text):
    """What the summaries of a tool's output count; None where there is no summary."""
    found = re.findall(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: )(\d+)", text)
    return sum(map(int, found)) if found else None


def plain(folder, weft, backend, options):
    """The cases that pass without a tool, and what is wrong or left out."""
    path = folder / "cases.txt"
    done = subprocess.run([weft, "check", backend, *options, "--only", CHECK + "/", "--cases", str(path), "--json", "--again", "0"],
                          capture_output=True, text=True, timeout=120)
    report = report_of(done.stdout)
    if report is None:
        sys.exit(f"weft check {backend} has no report: {(done.stdout + done.stderr)[-600:]}")
    return path.read_text().splitlines(), report


def jobs(folder, cases, weft, backend, text, options):
    """(name, command, cases, kernels) of each process, without its tool. A process has cases of one op where it can."""
    for n, at in enumerate(range(0, len(cases), SHARE)):
        share = cases[at:at + SHARE]
        path = folder / f"share{n}.cases"
        path.write_text("\n".join(share) + "\n")
        yield (f"cases {n}", [weft, "check", backend, *options, "--only", f"@{path}", "--limit", "600", "--json", "--again", "0"],
               len(share), {kernel_of(c) for c in share})
    for dtype in ("f32", "bf16"):
        yield (f"training in {dtype}", [weft, "train", "--backend", backend, "--data", text, *TRAINED, "--dtype", dtype, "--out",
                                        str(folder / f"checkpoint-{dtype}-TOOL"), *options], 0, set())


def sanitized(tool, command, seconds):
    settings = SETTINGS.get(tool, {})
    return subprocess.run(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", *command], capture_output=True, text=True,
                          timeout=seconds, env={**os.environ, **settings})


def sees_planted(tool, planted):
    """Whether the tool reports the fault that is planted for it; else what it said."""
    try:
        done = sanitized(tool, [planted, tool], 60)
    except subprocess.TimeoutExpired:
        return tool, "it did not end"
    text = done.stdout + done.stderr
    return tool, None if errors_in(text) else text[-300:].strip()


def run(tool, job, stop):
    name, command, cases, kernels = job
    if time.time() > stop:
        return tool, job, "no time was left", 0, ""
    command = [word.replace("TOOL", tool) for word in command]
    begin = time.time()
    try:
        done = sanitized(tool, command, max(60, stop + 60 - begin))
    except subprocess.TimeoutExpired:
        return tool, job, "it did not end", 0, ""
    text = done.stdout + done.stderr
    log = f"# {tool}, {name}: {time.time() - begin:.1f} s\n{text}"
    errors, report = errors_in(text), report_of(done.stdout)
    if errors is None:
        return tool, job, "no summary: " + text[-300:].strip(), 0, log
    if not errors and (done.returncode or (cases and (report is None or report["executed"] != cases))):
        return tool, job, f"ended with {done.returncode}: " + text[-300:].strip(), 0, log
    return tool, job, None, errors, log


def main():
    folder, seconds, processes, weft, backend, text, tools, *options = sys.argv[1:]
    folder = pathlib.Path(folder)
    begin = time.time()
    stop = begin + float(seconds)
    cases, report = plain(folder, weft, backend, options)
    kernels = {kernel_of(c) for c in cases}
    unreached = {left["case"].rsplit(" ", 1)[1]: left["words"] for left in report["left_out"]}
    for failure in report["failures"]:
        print(json.dumps(failure)[:600])
    for kernel, words in sorted(unreached.items()):
        print(f"not reached: {kernel}: {words}")
    count = collections.defaultdict(lambda: {"cases": 0, "kernels": set(), "errors": 0, "not_run": []})
    logs = {tool: open(folder / f"{tool}.txt", "w", buffering=1) for tool in tools.split()}  # a run that is cut off leaves its lines
    # The slowest first: training, then racecheck.
    all_jobs = [(tool, job) for tool in logs for job in jobs(folder, cases, weft, backend, text, options)]
    all_jobs.sort(key=lambda of: (of[1][2] > 0, of[0] != "racecheck"))
    good = not report["failures"]
    for tool in logs:
        for setting, value in SETTINGS.get(tool, {}).items():
            print(f"{tool} with {setting}={value}")
    with concurrent.futures.ThreadPoolExecutor(int(processes)) as pool:
        planted = str(pathlib.Path(weft).with_name("planted"))
        for tool, words in pool.map(lambda tool: sees_planted(tool, planted), logs):
            if words is not None:
                good = False
                print(f"{tool} does not see the fault planted for it, so its silence says nothing: {words}", flush=True)
        for future in concurrent.futures.as_completed([pool.submit(run, tool, job, stop) for tool, job in all_jobs]):
            tool, (name, _, n, which), wrong, errors, log = future.result()
            logs[tool].write(log)
            of = count[tool]
            if wrong:
                of["not_run"].append(name)
                print(f"{tool}, {name}: {wrong}", flush=True)
                continue
            of["cases"] += n
            of["kernels"] |= which
            of["errors"] += errors
            if errors:
                print(f"{tool}, {name}: {errors} errors; see {folder / tool}.txt", flush=True)
    for tool, of in count.items():
        logs[tool].close()
        good &= not of["errors"] and not of["not_run"]
        print(json.dumps({"tool": tool, "cases": of["cases"], "kernels": len(of["kernels"]), "of": len(kernels) + len(unreached),
                          "errors": of["errors"], "not_run": sorted(of["not_run"])}))
    print(f"{time.time() - begin:.0f} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""weft check of a GPU's backend, shared out among processes, since most of its time goes into compiling texts.

    gpu_check.py FOLDER SECONDS PROCESSES WEFT BACKEND [OPTION...]      OPTION: what weft check takes, such as --plugin

Writes what each process printed to FOLDER/check.txt. After SECONDS no process is begun; what was not run is said. The check
used_by_models is left out: it is about a whole run. Exits with 1 where a case failed or was not run.
"""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time

# Checks of every op: a process for each first letter of an op.
OF_OPS = ["arranged", "candidates", "edges", "gradients", "guards", "half_gradients", "keeps_launching", "keeps_to_its_workspace",
          "ops", "places", "plans_stand_alone", "races", "reads_operands_anew", "serves_other_threads", "sizes", "zeros"]
LEFT_OUT = "used_by_models"


def output(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def jobs(weft, options):
    """The filters of each process, the longest first."""
    checks = [json.loads(line)["check"] for line in output([weft, "check", "--list", "--json"]).splitlines()]
    letters = sorted({op["name"][0] for op in json.loads(output([weft, "ops", "--json"]))})
    split = [c for c in OF_OPS if c in checks]
    for check in split:
        yield from (["--only", f"{check}/{letter}"] for letter in letters)
    rest = [word for letter in letters for word in ("--skip", f"/{letter}")]
    for check in split:
        yield ["--only", check + "/"] + [w if w.startswith("--") else check + w for w in rest]
    yield from (["--only", c + "/"] for c in checks if c not in split and c != LEFT_OUT)


def run(weft, options, filters, stop):
    if time.time() > stop:
        return filters, None, ""
    try:
        done = subprocess.run([weft, "check", *options, "--json", "--again", "0", *filters], capture_output=True, text=True,
                              timeout=max(60, stop + 60 - time.time()))
    except subprocess.TimeoutExpired:
        return filters, None, ""
    text = done.stdout + done.stderr
    if "no case was executed" in text:
        return filters, {"executed": 0, "passed": 0, "refused": 0, "failures": []}, ""
    for line in reversed(done.stdout.splitlines()):
        if line.startswith('{"backend"'):
            return filters, json.loads(line), text
    return filters, {"executed": 0, "passed": 0, "refused": 0, "failures": [{"check": " ".join(filters), "text": text[-600:]}]}, text


def main():
    folder, seconds, processes, weft, *options = sys.argv[1:]
    stop = time.time() + float(seconds)
    totals = {"executed": 0, "passed": 0, "refused": 0, "failed": 0, "not_run": []}
    with open(pathlib.Path(folder) / "check.txt", "w") as log, \
            concurrent.futures.ThreadPoolExecutor(int(processes)) as pool:
        running = [pool.submit(run, weft, options, filters, stop) for filters in jobs(weft, options)]
        for future in concurrent.futures.as_completed(running):
            filters, result, text = future.result()
            if result is None:
                totals["not_run"].append(filters[1])
                continue
            log.write(text)
            for key in ("executed", "passed", "refused"):
                totals[key] += result[key]
            totals["failed"] += len(result["failures"])
            for failure in result["failures"]:
                print(json.dumps(failure)[:600], flush=True)
    print(json.dumps(totals))
    return 1 if totals["failed"] or totals["not_run"] else 0


sys.exit(main())

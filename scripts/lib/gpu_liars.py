"""weft check --liars about a GPU's backend: each liar in a process of its own, since some of them leave a device behind that fails.

    gpu_liars.py FOLDER SECONDS PROCESSES WEFT BACKEND [OPTION...]      OPTION: what weft check takes, such as --plugin

A liar that survived among the others is tried once more by itself: lies about waiting show by the order in which work ends, and processes
that share a device change that.

Writes what each process printed to FOLDER/liars.txt. After SECONDS no process is begun. Exits with 1 where a liar survived or was not
tried.
"""
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time


def rows(text, key):
    """The JSON lines that have this key."""
    found = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and key in row:
            found.append(row)
    return found


def names(weft, backend):
    listed = subprocess.run([weft, "check", backend, "--liars", "--list", "--json"], capture_output=True, text=True, check=True)
    return [row["liar"] for row in rows(listed.stdout, "liar")]


def run(weft, options, name, skip, stop):
    """The liar's row, or why there is none; and what was printed."""
    if time.time() > stop:
        return name, "no time was left", ""
    command = [weft, "check", *options, "--liars", "--drawn", "0", "--json", "--only", name]
    for other in skip:
        command += ["--skip", other]
    begin = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=max(30, stop + 30 - begin))
    except subprocess.TimeoutExpired:
        return name, "it did not end", ""
    text = f"# {name}: {time.time() - begin:.1f} s\n{done.stdout}{done.stderr}"
    for row in rows(done.stdout, "liar"):
        if row["liar"] == name:
            return name, row, text
    return name, (done.stdout + done.stderr)[-300:].strip(), text


def skipped(name, all_names):
    """--only takes the beginnings of names."""
    return [other for other in all_names if other != name and other.startswith(name)]


def survived(row):
    return isinstance(row, str) or not (row["caught"] or row["left_out"])


def all_rows(processes, weft, options, all_names, stop, log):
    """Each liar's name and its row, or why there is none."""
    again = []
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        running = [pool.submit(run, weft, options, name, skipped(name, all_names), stop) for name in all_names]
        for future in concurrent.futures.as_completed(running):
            name, row, text = future.result()
            log.write(text)
            if survived(row):
                again.append(name)
            else:
                yield name, row
    for name in again:
        print(f"{name}: once more, by itself", flush=True)
        _, row, text = run(weft, options, name, skipped(name, all_names), stop)
        log.write(text)
        yield name, row


def main():
    folder, seconds, processes, weft, backend, *options = sys.argv[1:]
    begin = time.time()
    stop = begin + float(seconds)
    all_names = names(weft, backend)
    left_out = collections.defaultdict(list)
    caught, failed = 0, []
    with open(pathlib.Path(folder) / "liars.txt", "w", buffering=1) as log:
        for name, row in all_rows(int(processes), weft, [backend, *options], all_names, stop, log):
            if isinstance(row, str):
                failed.append(name)
                print(f"{name}: {row}", flush=True)
            elif row["caught"]:
                caught += 1
            elif row["left_out"]:
                left_out[row["left_out"]].append(name)
            else:
                failed.append(name)
                print(f"{name} ({row['fault']}) SURVIVED: {row['words']}\n  repeat: {row['repeat']}", flush=True)
    for why, which in sorted(left_out.items()):
        print(f"left out: {why}: {', '.join(sorted(which))}")
    print(json.dumps({"liars": len(all_names), "caught": caught, "left_out": sum(map(len, left_out.values())),
                      "failed": sorted(failed), "seconds": round(time.time() - begin, 1)}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

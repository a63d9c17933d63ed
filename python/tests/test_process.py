"""What a process does: import, threads, forks, signals, its end. And what it must not: leak."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest

import weft


def run(code):
    return subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=120)


def test_import_imports_nothing_large():
    made = run("import sys; before = set(sys.modules); import weft; print(*sorted(set(sys.modules) - before))")
    assert made.returncode == 0, made.stderr
    named = {name.split(".")[0] for name in made.stdout.split()}
    large = {"numpy", "torch", "pandas", "IPython", "asyncio", "ctypes", "dataclasses", "email", "inspect", "json", "pathlib", "re", "typing"}
    assert "weft" in named and not named & large, named & large


def test_threads_compute_what_one_thread_computes():
    x = weft.tensor(np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32))
    want = (x @ x).softmax(1).tolist()
    wrong = []

    def work():
        for _ in range(50):
            if (x @ x).softmax(1).tolist() != want:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_other_threads_run_while_a_kernel_does():
    x = weft.ones((1000, 1000), backend="reference")
    with weft.on_backend("reference"):
        x @ x
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    t = threading.Thread(target=tick)
    t.start()
    begin = time.perf_counter()
    x @ x  # one call: between two, any thread may run
    took = time.perf_counter() - begin
    done.set()
    t.join()
    inside = [at for at in ticks if begin + took / 8 < at < begin + took * 7 / 8]
    assert len(inside) >= 3, (took, len(inside))


def test_a_forked_child_computes():
    x = weft.ones((300, 300))
    want = (x @ x).sum().item()
    child = os.fork()
    if child == 0:
        os._exit(0 if (x @ x).sum().item() == want else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (x @ x).sum().item() == want


def test_forks_beside_threads_that_compute():
    stop = threading.Event()

    def work():
        x = weft.ones((200, 200))
        while not stop.is_set():
            x @ x

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if weft.ones((100, 100)).sum().item() == 10000 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for t in threads:
            t.join()


@pytest.mark.parametrize(
    "code",
    [
        "import weft; x = weft.ones((50, 50)); y = x @ x; import atexit; atexit.register(lambda: print((x @ x).sum().item()))",
        "import weft, numpy; a = numpy.ones(9, 'f4'); x = weft.from_numpy(a); weft.kept = x; del a; print(9.0)",
        "import weft, numpy; x = weft.ones(9); numpy.kept = x.numpy(); print(9.0)",
        "import weft, threading, time\nx = weft.ones((500, 500))\ndef f():\n  while True: x @ x\nthreading.Thread(target=f, daemon=True).start(); time.sleep(0.1); print(1.0)",
        "import weft\nclass F(weft.Function):\n  forward = staticmethod(lambda c, x: x * 2)\n  backward = staticmethod(lambda c, d: d)\nx = weft.ones(2, requires_grad=True); weft.kept = F.apply(x); print(2.0)",
        "import weft; t = weft.ones(3); raise SystemExit(print(3.0))",
        "import weft; w = weft.ones(2); weft.kept = weft.compile(lambda x: x * w); print(weft.kept(w).sum().item())",
        # Threads that record are asked for their line when there is no interpreter any more.
        "import weft, threading, time\nw = weft.ones((260, 260)).requires_grad_()\ndef f():\n  while True:\n    y = w\n    for _ in range(4): y = y @ w\n"
        "for _ in range(6): threading.Thread(target=f, daemon=True).start()\ntime.sleep(0.1); print(1.0)",
        "import weft, threading, time\nx = weft.ones((300, 300)); g = weft.compile(lambda x: x @ x)\ndef f():\n  while True: g(x)\nthreading.Thread(target=f, daemon=True).start(); time.sleep(0.1); print(1.0)",
    ],
)
def test_the_interpreter_ends(code):
    made = run(code)
    assert made.returncode == 0 and float(made.stdout) > 0 and made.stderr == "", (made.returncode, made.stdout, made.stderr)


def test_control_c_stops_generation():
    nn = weft.nn
    tokenizer = nn.Tokenizer.bytes()
    model = nn.Pretrained(nn.GPT(vocabulary=256, context=64, layers=1, heads=2, width=16).build(), tokenizer)
    pieces = model.generate("a", length=60, temperature=1)
    next(pieces)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    before = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        with pytest.raises(KeyboardInterrupt):
            while True:
                for _ in model.generate("a", length=60, temperature=1):
                    pass
    finally:
        signal.signal(signal.SIGALRM, before)
    assert (weft.ones(2) + 1).tolist() == [2, 2]


def memory():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_hundred_thousand_calls_leak_nothing():
    a, b = weft.ones((8, 8)), weft.ones((8, 8), requires_grad=True)
    source = np.ones((8, 8), np.float32)

    def calls(n):
        for _ in range(n):
            (a + a) * 2.0 @ a
            a[1:, 0]
            weft.softmax(a, axis=1)
        for _ in range(n // 20):
            (b * a).sum().backward()
            weft.from_numpy(source).numpy()
            weft.from_dlpack(weft.from_dlpack(source)).tolist()
            try:
                weft.softmax(a, 7)
            except ValueError:
                pass

    calls(2000)
    gc.collect()
    tracemalloc.start()
    weft.release_memory()
    held, resident, on_device = tracemalloc.take_snapshot(), memory(), weft.device_memory()
    calls(20_000)  # of five ops each, and some of all others
    gc.collect()
    weft.release_memory()
    assert weft.device_memory() == on_device
    grown = sum(s.size_diff for s in tracemalloc.take_snapshot().compare_to(held, "filename") if "tracemalloc" not in str(s.traceback))
    tracemalloc.stop()
    assert grown < 20_000, grown
    assert memory() - resident < 4 << 20, memory() - resident


def test_control_c_in_a_long_call_is_raised_when_the_call_is_done():
    x = weft.ones((1000, 1000), backend="reference")
    raised = []

    def stop(*_):
        raised.append(time.perf_counter())
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    begin = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(KeyboardInterrupt), weft.on_backend("reference"):
            while True:
                x @ x
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert raised[0] - begin >= 0.02 and weft.default_backend() != "reference"
    assert x.sum().item() == 1e6

"""The process of a kernel in Python: `python -m weft.lab.worker`, which the lab starts with a socket and shared memory.

What the lab asks is answered in C++ (src/lab/kernels/worker.cpp), which also changes the operands before each
launch and reads the clock; here a kernel is opened, and its operands become tensors.

With --check NAME... it prints why each of these contenders can't run, as JSON, and ends.
"""

import argparse
import json
import os
import sys


def _arguments():
    parser = argparse.ArgumentParser(prog="weft.lab.worker")
    parser.add_argument("--check", nargs="*")
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--plugin", action="append", default=[])
    parser.add_argument("--device", default="")
    return parser.parse_args()


def main():
    arguments = _arguments()
    if arguments.check is not None:
        from weft.lab import kernel

        print(json.dumps([kernel.missing(name) for name in arguments.check]))
        return 0
    import weft

    for plugin in arguments.plugin:
        weft.load_backend(plugin)
    weft.set_thread_count(arguments.threads)
    threads = weft.thread_count()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)  # libraries read them when they are loaded

    from weft.lab import kernel
    from weft.lab.frameworks import Place

    queue = weft._weft._lab.open_queue(arguments.device) if arguments.device else None
    place = queue and Place(arguments.device, *queue)
    loaded = set()

    def open_kernel(name, op, inputs, outputs, attrs, off_default):
        framework = kernel.framework_of(name)
        if framework not in loaded:
            framework.load(threads, place)
            loaded.add(framework)
        opened = kernel.Kernel(name, op, attrs, off_default)
        opened.warm_up(inputs, outputs)
        return opened

    return weft._weft._lab.serve(open_kernel, kernel.reason)


if __name__ == "__main__":
    sys.exit(main())

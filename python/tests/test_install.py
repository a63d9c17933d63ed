"""What `pip install .` says where packages of Debian's are missing. That it installs, scripts/test --full tries."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not here")
def test_missing_packages_are_all_said_at_once(tmp_path):
    asked = tmp_path / "asked"
    query = tmp_path / "dpkg-query"
    query.write_text(f'#!/bin/sh\nfor last; do :; done\necho $last >>{asked}\ncase $last in libfmt-dev) printf installed;; *) exit 1;; esac\n')
    query.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "CXX"}
    made = subprocess.run(
        ["cmake", "-S", str(ROOT), "-B", str(tmp_path / "build"), "-DSKBUILD=2", f"-DDPKG_QUERY={query}", f"-DPython_EXECUTABLE={sys.executable}"],
        capture_output=True, text=True, timeout=60, env=environment,
    )
    line = next(line for line in made.stderr.splitlines() if "apt-get install" in line).split()
    assert made.returncode != 0 and not (tmp_path / "build" / "CMakeFiles" / "CMakeScratch").exists()
    assert {"g++", "libpcre2-dev", "nlohmann-json3-dev", "opencl-c-headers", "flatbuffers-compiler"} <= set(line)
    assert not {"libfmt-dev", "libgtest-dev", "libbenchmark-dev", "ccache", "pocl-opencl-icd"} & set(line)
    assert "libfmt-dev" in asked.read_text().split()

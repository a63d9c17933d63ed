# Sourced by scripts/demo and scripts/test, which set weft_root: what they need from Debian, and how they build.

# Every package that building, testing and running takes. The one list.
weft_packages=(
  g++ cmake ninja-build ccache mold clang-format-19 python3
  libfmt-dev libcli11-dev libgtest-dev libbenchmark-dev nlohmann-json3-dev
  libhwy-dev libpcre2-dev libutf8proc-dev
  libflatbuffers-dev flatbuffers-compiler libxxhash-dev libdlpack-dev
  opencl-c-headers ocl-icd-libopencl1 pocl-opencl-icd
)

# And what the sanitizers of scripts/test and scripts/fuzz take beside them.
weft_sanitizer_packages=(clang-19 libclang-rt-19-dev)

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

# need_onednn: oneDNN 3 for the backend of that name, from PyPI into build/onednn; Debian has a 2. Where it can't be had, the build
# leaves the backend out and says so.
need_onednn() {
  local at=$weft_root/build/onednn version=2023.2.0 tmp  # oneDNN 3.2.0 on GNU's OpenMP: one library, nothing else
  [[ -f $at/lib/libdnnl.so.3 && -f $at/include/oneapi/dnnl/dnnl_version.h ]] && return
  python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv || return 1
  say "Downloading oneDNN 3 from PyPI into build/onednn"
  tmp=$(mktemp -d)
  python3 -m venv "$tmp/venv" &&
    "$tmp/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps -d "$tmp" \
      "onednn-cpu-gomp==$version" "onednn-devel-cpu-gomp==$version" &&
    python3 - "$at" "$tmp"/*.whl <<'END'
import pathlib, sys, zipfile
at = pathlib.Path(sys.argv[1])
for wheel in map(zipfile.ZipFile, sys.argv[2:]):
    for name in wheel.namelist():
        inside = name.split(".data/data/", 1)[-1]
        if inside == "lib/libdnnl.so.3" or inside.startswith("include/") and inside.endswith(".h"):
            (at / inside).parent.mkdir(parents=True, exist_ok=True)
            (at / inside).write_bytes(wheel.read(name))
END
  local done=$?
  rm -rf "$tmp"
  return $done
}

# build_release [TARGET...]: configures and builds in build/release; all targets when none is named.
build_release() {
  need_onednn || say "oneDNN can't be had here: the build leaves its backend out"
  say "Building a release in build/release"
  (cd "$weft_root" && cmake --preset release >/dev/null)
  cmake --build "$weft_root/build/release" --target "${@:-all}"
}

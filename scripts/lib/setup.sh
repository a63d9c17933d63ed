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

# build_release [TARGET...]: configures and builds in build/release; all targets when none is named.
build_release() {
  say "Building a release in build/release"
  (cd "$weft_root" && cmake --preset release >/dev/null)
  cmake --build "$weft_root/build/release" --target "${@:-all}"
}

# Sourced by scripts/test: what is seen from outside the tree: the installed package, README.md, and one more file.
# Wants weft_root, weft_tmp and a release build.

weft_consumer=$weft_root/tests/consumer

# consumer PREFIX BUILD [cmake option...]: builds tests/consumer against the Weft that is installed in PREFIX.
consumer() {
  local prefix=$1 build=$2
  shift 2
  cmake -S "$weft_consumer" -B "$build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    "$@" >"$weft_tmp/configure.log" 2>&1 || { cat "$weft_tmp/configure.log"; return 1; }
  cmake --build "$build" >"$weft_tmp/build.log" 2>&1 || { cat "$weft_tmp/build.log"; return 1; }
}

# installed_package: installs into a fresh folder; a project that knows only find_package(Weft) builds on it and runs, and so
# do the programs that the pages show. Manual pages and completions lie where man and the shells look.
installed_package() {
  local prefix=$weft_tmp/installed page sources
  cmake --install build/release --prefix "$prefix" >/dev/null || return 1
  for page in README.md docs/tutorial.md; do
    python3 scripts/lib/pages.py programs "$page" "$weft_tmp/pages" || return 1
  done
  sources=$(printf '%s;' "$weft_tmp"/pages/*.cpp)
  consumer "$prefix" "$weft_tmp/consumer" -DWEFT_CONSUMER_SOURCES="${sources%;}" || return 1
  "$weft_tmp/consumer/main" || return 1
  "$weft_tmp/consumer/run_c" tests/golden/version_1_1.weft reference || return 1
  for page in man/man1/weft{,-train}.1 bash-completion/completions/weft zsh/site-functions/_weft \
    fish/vendor_completions.d/weft.fish; do
    [[ -s $prefix/share/$page ]] || { printf 'share/%s was not installed\n' "$page"; return 1; }
  done
  "$prefix/bin/weft" --version
}

# page_programs: the programs that the pages show, built above, print the text below them there.
page_programs() {
  local source name ran=0
  for source in "$weft_tmp"/pages/*.cpp; do
    name=$(basename "$source" .cpp)
    [[ -x $weft_tmp/consumer/$name ]] || { printf '%s was not built\n' "$name"; return 1; }
    (cd "$weft_tmp/pages" && "$weft_tmp/consumer/$name" >"$name.printed") || { printf '%s failed\n' "$name"; return 1; }
    if [[ -f $weft_tmp/pages/$name.txt ]]; then
      diff -u --label "$name on the page" "$weft_tmp/pages/$name.txt" --label printed "$weft_tmp/pages/$name.printed" || return 1
    fi
    ran=$((ran + 1))
  done
  printf '%d programs print what the pages say\n' "$ran"
  ((ran > 0))
}

# page_commands: what the tutorial has one type, typed with the installed program.
page_commands() {
  python3 scripts/lib/pages.py same docs/tutorial.md tests/one_file/square_plus.cpp || return 1
  PATH=$weft_tmp/installed/bin:$PATH python3 scripts/lib/pages.py shell docs/tutorial.md "$weft_tmp/tutorial"
}

# lab_commands: what docs/lab.md has one type, where it needs no GPU.
lab_commands() { python3 scripts/lib/pages.py lab docs/lab.md "$weft_root/build/release/weft" "$weft_tmp/lab"; }

# config_switches: a config.cmake chooses several backends; what it does not set keeps its default, what is not there is named.
config_switches() {
  local config=$weft_tmp/config.cmake said=$weft_tmp/config.log expect
  configured() { cmake -S tests/config -B "$weft_tmp/config" --fresh "-DWEFT_ROOT=$weft_root" "$@" >"$said" 2>&1; }
  says() { grep -qF -- "$1" "$said" || { printf 'configuring did not say: %s\n' "$1"; cat "$said"; return 1; }; }
  printf 'set(USE_CUDA ON)\nset(BUILD_CUBLASLT ON)\nset(USE_OPENCL OFF)\nset(USE_FAR OFF)\nset(USE_MPS ON)\nset(USE_NNPACK OFF)\n' >"$config"
  configured "-DWEFT_CONFIG=$config" || { cat "$said"; return 1; }
  for expect in BUILD_CUDA=ON BUILD_CUBLASLT=ON USE_OPENCL=OFF BUILD_FAR=OFF USE_NATIVE=ON BUILD_HIP=OFF BUILD_TEMPLATE=ON \
    'there is no backend for USE_MPS'; do
    says "$expect" || return 1
  done
  if grep -E 'no backend for (USE_NNPACK|BUILD_CUBLASLT)' "$said"; then return 1; fi
  configured "-DWEFT_CONFIG=$config" -DBUILD_CUDA=OFF && { echo 'USE_CUDA and BUILD_CUDA may not differ'; return 1; }
  says 'they are one switch' || return 1
  configured && says BUILD_CUDA=OFF && says USE_OPENCL=ON && says BUILD_FAR=ON
}

ops_page() { diff -u --label docs/ops.md docs/ops.md --label "weft ops --markdown" <(build/release/weft ops --markdown); }
python_pages() { scripts/python_pages --check; }
import_page() { diff -u --label docs/import.md docs/import.md --label "weft ops --imports" <(build/release/weft ops --imports); }

readme_subcommands() { build/release/weft --help | python3 scripts/lib/pages.py subcommands README.md; }

# objects_without HEADER: the objects of the release build that were compiled without it.
objects_without() {
  ninja -C build/release -t deps | awk -v header="$1" '
    function end() { if (object != "" && !read) print object }
    /^[^ ]/ { end(); object = substr($1, 1, length($1) - 1); read = 0 }
    substr($0, length($0) - length(header) + 1) == header { read = 1 }
    END { end() }' | grep '\.o$'
}

# one_file: a copy of the tree with one file more in src/ops and one in src/cli, and no other change: both are there. The copy
# stays in build/one_file, and is built as the release is. What does not read the list of ops is the same in both, and taken
# from there.
one_file() {
  local copy=$weft_root/build/one_file
  mkdir -p "$copy"
  find "$copy" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  tar -c --exclude=./build --exclude=./out --exclude=./.git . | tar -x -C "$copy"
  cp tests/one_file/square_plus.cpp "$copy/src/ops/"
  cp tests/one_file/hello.cpp "$copy/src/cli/"
  {
    objects_without /weft/ops.h >"$weft_tmp/one_file.objects" &&
      cmake -S "$copy" -B "$copy/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DWEFT_TESTS=OFF \
        "-DWEFT_OBJECTS_FROM=$weft_root/build/release" "-DWEFT_OBJECTS=$weft_tmp/one_file.objects" \
        "-DWEFT_TREE=$weft_root/build/release" &&
      cmake --build "$copy/build/release" && cmake --install "$copy/build/release" --prefix "$copy/installed"
  } >"$weft_tmp/copy.log" 2>&1 || { cat "$weft_tmp/copy.log"; return 1; }
  consumer "$copy/installed" "$weft_tmp/one_file" -DWEFT_CONSUMER_INCLUDES="$copy/src" \
    -DWEFT_CONSUMER_SOURCES="$weft_root/tests/one_file/check_op.cpp" || return 1
  "$weft_tmp/one_file/check_op" || return 1
  [[ $("$copy/build/release/weft" hello) == hello ]] || { printf 'weft hello did not say hello\n'; return 1; }
  printf 'square_plus: in weft/ops.h, found by name, eager, differentiated, compiled; weft hello runs; no other file was edited\n'
}

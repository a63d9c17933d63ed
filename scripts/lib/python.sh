# Sourced by scripts/test: the Python package of the release build, and its tests. Wants setup.sh and check.sh.

# need_pytest: a venv in build/pytest with what the tests import beside weft. The packages are PyPI's.
need_pytest() {
  local at=$weft_root/build/pytest
  "$at/bin/python" -c 'import numpy, pytest' 2>/dev/null && return
  python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv || return 1
  say "Installing numpy and pytest from PyPI into ${at#"$weft_root"/}"
  python3 -m venv "$at" && "$at/bin/pip" install --quiet --disable-pip-version-check numpy pytest
}

# need_torch: a venv in build/pytorch with what the tests of torch.compile import: PyTorch, and what its own tests want.
need_torch() {
  local at=$weft_root/build/pytorch
  "$at/bin/python" -c 'import expecttest, numpy, pytest, torch' 2>/dev/null && return
  python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv || return 1
  say "Installing PyTorch from PyPI into ${at#"$weft_root"/}"
  python3 -m venv "$at" &&
    "$at/bin/pip" install --quiet --disable-pip-version-check expecttest numpy pytest torch==2.13.0
}

# need_mkl: a venv in build/mkl with Intel's MKL, whose kernels the lab compares. It is large: for scripts/test --full.
need_mkl() {
  local at=$weft_root/build/mkl
  "$at/bin/python" -c 'import numpy, pytest' 2>/dev/null && return
  python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv || return 1
  say "Installing MKL from PyPI into ${at#"$weft_root"/}"
  python3 -m venv "$at" && "$at/bin/pip" install --quiet --disable-pip-version-check mkl numpy pytest
}

# python_of VENV ARGUMENT...: the venv's Python with the package that the release build made.
python_of() {
  PYTHONPATH=$weft_root/build/release/python PYTHONDONTWRITEBYTECODE=1 "$weft_root/build/$1/bin/python" "${@:2}"
}

# python_cases WHAT VENV FILE...: each case of these files, or folders, is a check.
python_cases() {
  local what=$1 venv=$2 before status=0 counts=() report=$weft_tmp/python.xml log=$weft_tmp/python.log
  shift 2
  say "$what"
  cpu_mark; before=$cpu
  rm -f "$report"
  python_of "$venv" -m pytest -q -p no:cacheprovider --junitxml="$report" "$@" >"$log" 2>&1 || status=$?
  cpu_mark
  if [[ ! -s $report ]]; then
    tail -20 "$log"
    failed "$what: no report, exit status $status"
    return 1
  fi
  ((status)) && grep -E '^(E  |FAILED|ERROR)' "$log"
  read -ra counts < <(python3 - "$report" <<'PY'
import sys, xml.etree.ElementTree as tree
suites = tree.parse(sys.argv[1]).getroot().iter("testsuite")
count = [0, 0, 0]
for s in suites:
    bad, skipped = int(s.get("failures")) + int(s.get("errors")), int(s.get("skipped"))
    count = [count[0] + int(s.get("tests")) - bad - skipped, count[1] + bad, count[2] + skipped]
print(*count)
PY
  )
  passed "${counts[0]}"
  if ((counts[1])); then failed "$what: ${counts[1]} cases" "${counts[1]}"; fi
  if ((counts[0] + counts[1] == 0)); then failed "$what: no case was found"; fi
  printf '   %d passed, %d failed, %d skipped; %s CPU seconds\n' "${counts[@]}" "$(minus "$cpu" "$before")"
  return "$status"
}

# wheel_installs: `pip install .` in a clone without anything that was built, into a venv without NumPy; the wheel keeps its size, and the
# package trains its GPT. For scripts/test --full: it compiles all of Weft once more.
wheel_installs() {
  local at=$weft_tmp/clone venv=$weft_tmp/wheel_venv most=15000000 size
  git clone -q "$weft_root" "$at" && python3 -m venv "$venv" &&
    (cd "$at" && "$venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps -w wheels .) || return 1
  size=$(stat -c %s "$at"/wheels/weft-*.whl)
  printf '   the wheel has %d bytes, at most %d\n' "$size" "$most"
  ((size <= most)) && "$venv/bin/pip" install --quiet --disable-pip-version-check "$at"/wheels/weft-*.whl &&
    (cd "$weft_tmp" && "$venv/bin/python" "$at/examples/python/gpt.py")
}

# torch_cases: torch.compile(backend="weft") and weft.export, and one of PyTorch's own samples for each of its ops.
torch_cases() {
  python_cases "Models and functions of PyTorch's" pytorch python/tests/test_torch_{compile,export,lab,models,ops,page,sizes}.py
  check "PyTorch's own samples for its ops" python_of pytorch python/tests/opinfo.py --samples 1
}

# torch_full: what PyTorch traces for long; all of those samples, in the dtypes of models, and gradients on some.
torch_full() {
  local dtype
  WEFT_FULL=1 python_cases "Models of PyTorch's, all sizes, and the lab's" pytorch python/tests/test_torch_{lab,models}.py
  for dtype in float32 float64 float16 bfloat16 int64 int32 bool; do
    check "PyTorch's own samples for its ops, all of $dtype" python_of pytorch python/tests/opinfo.py --dtype "$dtype"
  done
  check "Gradients on PyTorch's own samples" python_of pytorch python/tests/opinfo.py --gradients --samples 8
}

# Sourced by scripts/test: the Python package of the release build, and its tests. Wants setup.sh and check.sh.

# need_pytest: a venv in build/pytest with what the tests import beside weft. The packages are PyPI's.
need_pytest() {
  local at=$weft_root/build/pytest
  "$at/bin/python" -c 'import numpy, pytest' 2>/dev/null && return
  python3 -c 'import ensurepip' 2>/dev/null || need_packages python3-venv || return 1
  say "Installing numpy and pytest from PyPI into ${at#"$weft_root"/}"
  python3 -m venv "$at" && "$at/bin/pip" install --quiet --disable-pip-version-check numpy pytest
}

# python_cases: each case of python/tests is a check.
python_cases() {
  local before status=0 counts=() report=$weft_tmp/python.xml log=$weft_tmp/python.log
  say "The Python package"
  cpu_mark; before=$cpu
  PYTHONPATH=$weft_root/build/release/python PYTHONDONTWRITEBYTECODE=1 "$weft_root/build/pytest/bin/python" -m pytest -q -p no:cacheprovider \
    --junitxml="$report" python/tests >"$log" 2>&1 || status=$?
  cpu_mark
  if [[ ! -s $report ]]; then
    tail -20 "$log"
    failed "The Python package: no report, exit status $status"
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
  if ((counts[1])); then failed "The Python package: ${counts[1]} cases" "${counts[1]}"; fi
  if ((counts[0] + counts[1] == 0)); then failed "The Python package: no case was found"; fi
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

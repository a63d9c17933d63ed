# Sourced by scripts/test: runs checks, counts them, measures CPU seconds. Wants weft_tmp, a folder to write in.

weft_passed=0 weft_failed=0 weft_failures=()

# cpu_mark: sets `cpu` to the CPU seconds of all children so far. `times` must run in this shell, not in a subshell.
cpu_mark() {
  times >"$weft_tmp/times"
  cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; ++i) { split($i, t, /[ms]/); s += 60 * t[1] + t[2] } printf "%.1f", s }' "$weft_tmp/times")
}
minus() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a - b }'; }

passed() { weft_passed=$((weft_passed + ${1:-1})); }
failed() {
  weft_failed=$((weft_failed + ${2:-1}))
  weft_failures+=("$1")
  printf 'FAILED: %s\n' "$1"
}

# check WHAT COMMAND...: one check, which passes when the command does. Its output is shown as it comes.
check() {
  local what=$1 before after status=0
  shift
  say "$what"
  cpu_mark; before=$cpu
  "$@" || status=$?
  cpu_mark; after=$cpu
  if ((status == 0)); then passed; else failed "$what (exit status $status)"; fi
  printf '   %s CPU seconds\n' "$(minus "$after" "$before")"
  return "$status"
}

# cases WHAT PROGRAM FILTER: each GoogleTest case is a check. Cases that pass are not shown, all else is.
cases() {
  local what=$1 program=$2 filter=$3 log=$weft_tmp/cases.log json=$weft_tmp/cases.json before status=0 counts=() quiet
  say "$what"
  cpu_mark; before=$cpu
  rm -f "$json"
  "$program" --gtest_filter="$filter" --gtest_output="json:$json" >"$log" 2>&1 || status=$?
  cpu_mark
  quiet='^\[ RUN |^\[       OK |^\[---|^\[===|^Running main|^Note: Google|^ *$'
  grep -vE "$quiet" "$log" || true
  if [[ ! -s $json ]]; then
    printf 'It ended in: %s\n' "$(grep -E '^\[ RUN' "$log" | tail -1)"
    failed "$what: no report, exit status $status"
  else
    read -ra counts < <(python3 - "$json" <<'PY'
import json, sys
cases = [c for s in json.load(open(sys.argv[1]))["testsuites"] for c in s["testsuite"]]
bad = sum(bool(c.get("failures")) for c in cases)
skipped = sum(c.get("result") == "SKIPPED" for c in cases)
print(len(cases) - bad - skipped, bad, skipped)
PY
    )
    passed "${counts[0]}"
    if ((counts[1])); then failed "$what: ${counts[1]} cases" "${counts[1]}"; fi
    if ((counts[0] + counts[1] == 0)); then failed "$what: the filter matches nothing"; fi
    # A sanitizer speaks by the exit status where no case failed.
    if ((status && !counts[1])); then failed "$what: exit status $status"; fi
    printf '   %d passed, %d failed, %d skipped' "${counts[@]}"
  fi
  printf '; %s CPU seconds\n' "$(minus "$cpu" "$before")"
  [[ -s $json ]] && dearest_cases "$json" 5
  return "$status"
}

# dearest_cases JSON N: the cases of a report that took more than a second, by their CPU seconds.
dearest_cases() {
  python3 - "$1" "$2" <<'PY'
import json, sys
cases = [(int(c["cpu_ms"]), s["name"] + "." + c["name"]) for s in json.load(open(sys.argv[1]))["testsuites"]
         for c in s["testsuite"] if int(c.get("cpu_ms", 0)) > 1000]
for ms, name in sorted(cases, reverse=True)[: int(sys.argv[2])]:
    print(f"   {ms / 1000:6.1f} s  {name}")
PY
}

# dearest FOLDER N: the targets of that build that took longest, by the seconds between start and end.
dearest() {
  [[ -f $1/.ninja_log ]] || return 0
  python3 - "$1/.ninja_log" "$2" <<'PY'
import sys
last = {}
for line in open(sys.argv[1]).read().split("\n")[1:]:
    if line.count("\t") == 4:
        start, end, _, output, command = line.split("\t")
        last[command] = (int(end) - int(start), output)
for ms, output in sorted(last.values(), reverse=True)[: int(sys.argv[2])]:
    print(f"   {ms / 1000:6.1f} s  {output}")
PY
}

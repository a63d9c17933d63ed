# Sourced by scripts/test and scripts/fuzz: runs the fuzz targets, which are in build/asan. Wants weft_root and weft_tmp, a folder
# to write in.

weft_fuzz_build=$weft_root/build/asan/fuzz
weft_fuzz_found=$weft_root/build/fuzz_found  # inputs that end a target stay here

# The targets, which are the files of fuzz/.
fuzz_targets() {
  local file
  for file in "$weft_root"/fuzz/*.cpp; do basename "$file" .cpp; done
}

# fuzz_one TARGET SECONDS SEED CORPUS: runs it on what it makes of CORPUS and of its seeds; new inputs are kept in CORPUS. Its
# last line says what was done; before it stands what went wrong, and the command that repeats it.
fuzz_one() {
  local name=$1 seconds=$2 seed=$3 corpus=$4 program=$weft_fuzz_build/$1 log=$weft_tmp/fuzz_$1.log status=0 input
  local options=(-seed="$seed" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -print_final_stats=1)
  [[ -f $weft_root/fuzz/$name.dict ]] && options+=(-dict="$weft_root/fuzz/$name.dict")
  mkdir -p "$corpus" "$weft_fuzz_found"
  TMPDIR=$weft_tmp "$program" "${options[@]}" -artifact_prefix="$weft_fuzz_found/$name-" "$corpus" \
    "$weft_root/fuzz/corpus/$name" >"$log" 2>&1 || status=$?
  if ((status)); then
    grep -vE '^#[0-9]+\s+(NEW|REDUCE|pulse|RELOAD|INITED)' "$log" | tail -50
    input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
    printf 'repeat it: %s %s\n' "$program" "${input:-(no input was kept)}"
  fi
  awk -v name="$name" -v seed="$seed" -v status="$status" '
    /stat::number_of_executed_units/ { runs = $2 }
    /stat::new_units_added/ { added = $2 }
    match($0, /cov: [0-9]+/) { branches = substr($0, RSTART + 5, RLENGTH - 5) }
    END { printf "   %-18s %9d inputs, %5d of them new ways, %6d branches, seed %s: %s\n", name, runs, added, branches, seed,
            status ? "FAILED" : "ok" }' "$log"
  return "$status"
}

# fuzz_all SECONDS SEED CORPORA TARGET...: two at a time. Sets fuzz_failed to the targets that failed.
fuzz_all() {
  local seconds=$1 seed=$2 corpora=$3 name running=()
  shift 3
  fuzz_failed=()
  fuzz_wait() {
    wait "${running[0]#* }" || fuzz_failed+=("${running[0]% *}")
    running=("${running[@]:1}")
  }
  for name in "$@"; do
    ((${#running[@]} < 2)) || fuzz_wait
    fuzz_one "$name" "$seconds" "$seed" "$corpora/$name" &
    running+=("$name $!")
  done
  while ((${#running[@]})); do fuzz_wait; done
  ((${#fuzz_failed[@]} == 0))
}

# fuzzed SECONDS: a check for each target, that long, from the corpora of the repository. The seed is the same each time;
# scripts/fuzz draws others.
fuzzed() {
  local targets before name
  mapfile -t targets < <(fuzz_targets)
  say "Fuzzing ${#targets[@]} targets, $1 s each, two at a time"
  cpu_mark; before=$cpu
  fuzz_all "$1" 1 "$weft_tmp/fuzz_corpus" "${targets[@]}"
  passed $((${#targets[@]} - ${#fuzz_failed[@]}))
  for name in "${fuzz_failed[@]}"; do failed "fuzzing $name"; done
  cpu_mark
  printf '   %s CPU seconds\n' "$(minus "$cpu" "$before")"
}

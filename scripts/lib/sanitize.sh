# Sourced by scripts/test and scripts/fuzz: the two builds that sanitizers watch. Wants weft_root, weft_tmp, and setup.sh. Each
# has some files of tests/, and the preset leaves out what those and the fuzz targets have no use for. An op is a constant and
# pure functions, which sanitizers have nothing to say of: its object is the release's, where there is one. So are plug-ins, as
# they come from elsewhere, but `far`, which has threads, under ThreadSanitizer.

# What ThreadSanitizer sees: threads, sessions, plan caches, tokenizers.
thread_files='base|c_api|compiled|dlpack|plugin|seam_run|threads'
thread_cases='*Threads*:*ThreadPool*:CallCache*:Training.TwoSessions*:Plugin.ThreeAtOnce*:OneThread*:DeferredError*:*DlPack*'

# What AddressSanitizer and UndefinedBehaviorSanitizer see: everything that reads bytes or pointers of others, the seam, and what
# goes on when memory fails. Not the cases that run `weft`, which is not built there; nor templates that use up all they
# may, which takes a minute there.
memory_files='backend|backend_numbers|backend_seam|base|c_api|chat|choice|dlpack|faults|honesty|ir|plugin|preference|program|program_corrupt|safetensors|seam_run|seam|text|threads|tokenizer'
memory_cases='*-Plugin.TheCommandLine*:Folder.*:ChatTemplates.SayWhat*:ChatTemplates.AreBounded*:FaultsOfPrograms.*'

# sanitized NAME FILES TARGET...: configures build/NAME and builds those targets in it. weft_tests has those files of tests/.
sanitized() {
  local name=$1 files=$2 release=$weft_root/build/release
  shift 2
  (cd "$release" 2>/dev/null && ls CMakeFiles/weft_core.dir/generated/src/ops/*.o 2>/dev/null) >"$weft_tmp/$name.objects"
  cmake -S "$weft_root" --preset "$name" "-DWEFT_TEST_FILES=$files" "-DWEFT_OBJECTS_FROM=$release" \
    "-DWEFT_OBJECTS=$weft_tmp/$name.objects" "-DWEFT_PLUGINS_FROM=$release/plugins" >"$weft_tmp/configure.log" 2>&1 || { cat "$weft_tmp/configure.log"; return 1; }
  cmake --build "$weft_root/build/$name" --target "$@"
}

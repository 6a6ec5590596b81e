#!/usr/bin/env bash
# Builds everything and runs the tests.
#
#   tests/run.sh            what every change must pass
#   tests/run.sh --full     the long forms too: sanitizers, long simulation campaigns, fuzzing, header checks
#
# The last line is "N passed, N failed, N skipped"; skipped are the tests that need what this machine has not: a GPU,
# root, network namespaces, cgroups (each prints NOT RUN and why). One case of many that is skipped counts too.
set -euo pipefail
cd "$(dirname "$0")/.."
full=0
case "${1:-}" in
  "") ;;
  --full) full=1 ;;
  *) echo "tests/run.sh: unknown argument $1 (there is only --full)" >&2; exit 2 ;;
esac
build=${LLM_BUILD_DIR:-build}
passed=0 failed=0 skipped=0

# run_suite NAME BUILD_DIR [ctest argument]...: adds its results to the counts.
run_suite() {
  local name=$1 dir=$2 log status=0
  shift 2
  log="$dir/ctest-$name.log"
  local began=$SECONDS
  ctest --test-dir "$dir" --output-on-failure --no-tests=error "$@" >"$log" 2>&1 || status=$?
  local total bad not_run cases
  total=$(grep -cE '^ *[0-9]+/[0-9]+ Test +#' "$log" || true)
  bad=$(sed -nE 's/.* ([0-9]+) tests? failed out of.*/\1/p' "$log" | tail -n 1)
  not_run=$(grep -cE '\*\*\*(Skipped|Not Run)' "$log" || true)
  bad=${bad:-0}
  if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; total=$((total + 1)); fi
  # CTest knows of whole programs only; what they said is in its own log.
  cases=$(grep -cE "skipped 'NOT RUN" "$dir/Testing/Temporary/LastTest.log" || true)
  passed=$((passed + total - bad - not_run)) failed=$((failed + bad)) skipped=$((skipped + not_run + cases))
  echo "$name: $((total - bad - not_run)) passed, $bad failed, $((not_run + cases)) not run ($((SECONDS - began)) s)"
  grep -hE 'NOT RUN' "$log" "$dir/Testing/Temporary/LastTest.log" | sort -u || true
  if [ "$bad" -ne 0 ]; then cat "$log"; fi
}

deploy/setup.sh --tests
began=$SECONDS
deploy/build.sh all
echo "build: $((SECONDS - began)) s"

run_suite tidy "$build" -L tidy -j 2
run_suite unit "$build" -L unit -j 2
run_suite simulation "$build" -L sim -j 2
run_suite numerics "$build" -L numerics -j 2
run_suite data "$build" -L data -j 2
run_suite integration "$build" -L integration

if [ $full -eq 1 ]; then
  run_suite long "$build" -C full -L full
  # Arrow is where the build under test has it.
  deps=$(sed -n 's/^LLM_DEPS_DIR:PATH=//p' "$build/CMakeCache.txt")
  # Libraries without gRPC and LibTorch, under sanitizers.
  for sanitizer in address,undefined thread; do
    dir="$build-${sanitizer%%,*}"
    cmake -S . -B "$dir" -G Ninja --log-level=WARNING -DLLM_BUILD_TORCH=OFF -DLLM_BUILD_GRPC=OFF \
      -DLLM_DEPS_DIR="$deps" -DLLM_SANITIZE=$sanitizer
    cmake --build "$dir"
    run_suite "${sanitizer%%,*}-sanitizer" "$dir" -L 'unit|sim' -j 2
  done
  # libFuzzer and the proof of the lock annotations (-Werror=thread-safety) come with clang only, which nothing else
  # needs.
  if command -v clang++ >/dev/null; then
    dir="$build-fuzz"
    CC=clang CXX=clang++ cmake -S . -B "$dir" -G Ninja --log-level=WARNING -DLLM_BUILD_TORCH=OFF -DLLM_BUILD_GRPC=OFF \
      -DLLM_DEPS_DIR="$deps" -DLLM_FUZZ=ON -DLLM_SANITIZE=fuzzer-no-link,address,undefined
    cmake --build "$dir" --target libraries fuzz_programs
    run_suite fuzz "$dir" -L fuzz -j 2
  else
    echo "fuzz, lock annotations: NOT RUN, there is no clang++"
    skipped=$((skipped + 1))
  fi
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]

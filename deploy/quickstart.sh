#!/usr/bin/env bash
# From a fresh clone to text out of a model trained here: sets up, builds, prepares real text, starts a cluster of
# a coordinator and two workers on this machine, trains a tiny Llama with two data-parallel ranks, and samples from
# it. Run again, it goes straight to training.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${LLM_BUILD_DIR:-build}
bin=$PWD/$build/bin
work=.llmctl/quickstart
data=$work/data

say() { printf '\n== %s\n' "$*"; }

prepare_text() {
  [ -f "$data/manifest.json" ] && return
  say "Preparing text: Debian's documentation in several languages"
  mkdir -p "$work"
  /usr/bin/python3 deploy/quickstart_corpus.py --fetch "$work/packages" --output "$work/corpus.jsonl"
  "$bin/llm-data" prepare --input "$work/corpus.jsonl" --output "$data" --force
}

show_result() {
  local checkpoint
  say "A sample from the model"
  "$bin/llmctl" generate quickstart --prompt "The package " --tokens 600 --temperature 0.5 --seed 1 |
    tee "$work/sample.txt"
  checkpoint=$("$bin/llmctl" checkpoints quickstart -o json |
    /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["checkpoints"][0]["path"])')
  say "What it has learned"
  /usr/bin/python3 deploy/quickstart_report.py --checkpoint "$checkpoint" --data "$data" --text "$work/corpus.jsonl" \
    --sample "$work/sample.txt"
  cat <<EOF

Checkpoint: $checkpoint
The cluster is still up. Try next:
  $build/bin/llmctl get quickstart
  $build/bin/llmctl generate quickstart --prompt "In Debian, " --tokens 200
  $build/bin/llmctl local down
EOF
}

say "Checking what is installed"
deploy/setup.sh
say "Building"
deploy/build.sh programs
prepare_text
say "Starting a coordinator and two workers"
"$bin/llmctl" local up --workers=2
say "Training"
"$bin/llmctl" submit --follow examples/quickstart.yaml
show_result

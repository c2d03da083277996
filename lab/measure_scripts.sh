#!/bin/sh
# Scripts, operators and the host's pace in one run on a GPU: `sh lab/measure_scripts.sh OUT SECONDS`.
# First the scripts that judge, then single operators and calls, then the recorded scripts. Each writes as it goes.
set -u
out=$1
end=$(($(date +%s) + $2 - 10))
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
mkdir -p "$out"

# Ends what has not ended after $1 seconds or when the time of all is over.
limited() {
    left=$((end - $(date +%s)))
    [ "$left" -gt 15 ] || return 0
    limit=$(($1 < left ? $1 : left))
    shift
    timeout --kill-after=3 "$limit" "$@" 2>&1 | grep -v Warning
}
scripts() {
    [ ! -f "lab/measured/$1.jobs" ] ||
        limited "$2" python3 -m lab.measure_compiled "lab/measured/$1.jobs" "$out/$1.jsonl" \
            --worker lab.measure_foreign --seconds "$(($2 - 5))"
}

nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader
limited 50 python3 -m lab.measure_host lab/measured/pace.jobs "$out/pace.jsonl"
scripts judge_blind 240
limited 85 python3 -m lab.measure_sweep "$out/sweep.jsonl" 62
scripts fit_scripts "$((end - $(date +%s)))"
for each in pace judge_blind sweep fit_scripts; do
    [ ! -s "$out/$each.jsonl" ] || gzip -9 "$out/$each.jsonl"
done

#!/bin/sh
# Scripts and single operators in one run on a GPU: `sh lab/measure_scripts.sh JUDGE FIT OUT SECONDS`.
# First the scripts of JUDGE.jobs, then the trials of `cudnn.benchmark` and the operators that an earlier sweep had no time
# for, then the scripts of FIT.jobs, recorded. Each writes as it goes.
set -u
judge=$1 fit=$2 out=$3
end=$(($(date +%s) + $4 - 10))
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
    limited "$2" python3 -m lab.measure_compiled "lab/measured/$1.jobs" "$out/$1.jsonl" \
        --worker lab.measure_foreign --seconds "$(($2 - 5))"
}

nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader
scripts "$judge" 330
limited 95 python3 -m lab.measure_trials 7401 "$out/fit_trials.jsonl" 75
limited 45 python3 -m lab.measure_sweep "$out/fit_sweep_more.jsonl" 26 recurrent sequences norms optimizers
scripts "$fit" "$((end - $(date +%s)))"
for each in "$out"/*.jsonl; do
    [ ! -s "$each" ] || gzip -9 "$each"
done

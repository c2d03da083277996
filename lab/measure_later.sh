#!/bin/sh
# Scripts of others, 8-bit optimizers, FP8 and more compiled steps in one run on a GPU: `sh lab/measure_later.sh OUT SECONDS`.
# Packages that the machine does not have are read from build/carry.
set -u
out=$1
end=$(($(date +%s) + $2))
export PYTHONPATH=src:build/carry PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
measure() {
    python3 -m lab.measure_compiled "$1" "$out/$2.jsonl" --worker "$3" --seconds $((end - $(date +%s))) 2>&1 | grep -v Warning
}
measure lab/measured/judge_foreign.jobs foreign lab.measure_foreign
measure lab/measured/judge_later.cases later lab.measure_quantized
measure lab/measured/judge_compiled_later.jobs compiled lab.measure_compiled

#!/bin/sh
# Scripts that no one has measured, pieces of steps, and scripts measured before with their operations, in one run on a
# GPU: `sh lab/measure_unseen.sh OUT SECONDS`.
set -u
out=$1
end=$(($(date +%s) + $2))
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
measure() {
    python3 -m lab.measure_compiled "$1" "$out/$2.jsonl" --worker lab.measure_foreign --seconds $((end - $(date +%s))) 2>&1 |
        grep -v Warning
}
measure lab/measured/judge_unseen.jobs judge_unseen
python3 -m lab.measure_pieces "$out/pieces.jsonl" 75 2>&1 | tail -20
measure lab/measured/foreign_again.jobs foreign_again
gzip "$out"/*.jsonl

#!/bin/sh
# Pieces of steps, then scripts that no one has measured, in one run on a GPU: `sh lab/measure_unseen.sh NAME OUT SECONDS`
# for NAME.jobs.
set -u
name=$1
out=$2
end=$(($(date +%s) + $3))
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
timeout -k 5 90 python3 -m lab.measure_pieces "$out/pieces.jsonl" 75 2>&1 | tail -20
gzip "$out/pieces.jsonl"
python3 -m lab.measure_compiled "lab/measured/$name.jobs" "$out/$name.jsonl" --worker lab.measure_foreign \
    --seconds $((end - $(date +%s))) 2>&1 | grep -v Warning
gzip "$out/$name.jsonl"

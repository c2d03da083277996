#!/bin/sh
# Pieces of steps, and scripts measured before with their operations, in one run on a GPU:
# `sh lab/measure_again.sh OUT SECONDS`.
set -u
out=$1
end=$(($(date +%s) + $2))
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
python3 -m lab.measure_pieces "$out/pieces.jsonl" 130 2>&1 | tail -40
python3 -m lab.measure_compiled lab/measured/foreign_again.jobs "$out/foreign_again.jsonl" --worker lab.measure_foreign \
    --seconds $((end - $(date +%s))) 2>&1 | grep -v Warning
gzip "$out"/*.jsonl

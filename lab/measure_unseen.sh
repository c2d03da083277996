#!/bin/sh
# Scripts that no one has measured, in one run on a GPU: `sh lab/measure_unseen.sh NAME OUT SECONDS` for NAME.jobs.
set -u
name=$1
out=$2
export PYTHONPATH=src PYTHONUNBUFFERED=1 OMP_NUM_THREADS=4 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1
python3 -m lab.measure_compiled "lab/measured/$name.jobs" "$out/$name.jsonl" --worker lab.measure_foreign --seconds "$3" 2>&1 |
    grep -v Warning
gzip "$out/$name.jsonl"

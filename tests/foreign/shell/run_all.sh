#!/bin/bash
# Nightly sweep over learning rates; best one wins.
set -euo pipefail

cd "$(dirname "$0")"
OUT=${OUT:-results}
mkdir -p "$OUT" && : > "$OUT/summary.tsv"
trap 'echo "sweep ended with status $?"' EXIT

descend() {  # descend LR: steps towards the minimum of (x - 3)^2
  awk -v lr="$1" 'BEGIN { x = 0; for (i = 0; i < 50; i++) { x -= lr * 2 * (x - 3); print i "\t" (x - 3) ^ 2 } }'
}

for lr in 0.01 0.1 0.4; do
  descend "$lr" > "$OUT/lr_$lr.tsv" &
done
wait
for file in "$OUT"/lr_*.tsv; do
  name=$(basename "$file" .tsv)
  printf '%s\t%s\n' "$name" "$(tail -n 1 "$file" | cut -f 2)" | tee -a "$OUT/summary.tsv"
done
best=$(sort -g -k 2 "$OUT/summary.tsv" | head -n 1 | cut -f 1)
echo "best: $best"
tar -czf "$OUT/all.tgz" -C "$OUT" summary.tsv

#!/usr/bin/env bash
# Reads "item price quantity" lines and prints a receipt.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib/money.sh"

total=0
while read -r item price quantity; do
  cents=$(($(to_cents "$price") * quantity))
  total=$((total + cents))
  printf '%-10s %2d x %-8s %6s\n' "$item" "$quantity" "$price" "$(from_cents "$cents")"
done
printf '%-24s %6s\n' total "$(from_cents "$total")"

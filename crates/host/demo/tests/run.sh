#!/usr/bin/env bash
# Runs all tests; exit code 1 if one fails.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$here/lib/money.sh"
failed=0

check() { # name, expected, actual
  if [[ $2 == "$3" ]]; then
    echo "ok    $1"
  else
    echo "FAIL  $1: expected $2, got $3"
    failed=1
  fi
}

check "whole amount" 300 "$(to_cents 3)"
check "two decimals" 1234 "$(to_cents 12.34)"
check "one decimal" 250 "$(to_cents 2.5)"
check "back to text" 12.05 "$(from_cents 1205)"
receipt=$(printf 'coffee 2.5 2\nbread 3.20 1\n' | bash "$here/till.sh")
check "receipt" 8.20 "${receipt##* }"
exit $failed

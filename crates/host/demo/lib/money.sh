# Money as whole cents.

# to_cents 12.34 -> 1234
to_cents() {
  local whole=${1%%.*} part=
  [[ $1 == *.* ]] && part=${1#*.}
  echo $((whole * 100 + ${part:-0}))
}

# from_cents 1234 -> 12.34
from_cents() {
  printf '%d.%02d\n' $(($1 / 100)) $(($1 % 100))
}

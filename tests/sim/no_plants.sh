#!/bin/sh
# no_plants.sh PLANTED SHIPPED...: PLANTED has the switch of the planted mistakes, no SHIPPED file has it.
# It could only by linking the second build of a core, which needs this symbol.
set -eu
symbols() {
  found=$(nm "$1") && [ -n "$found" ] || { echo "no_plants.sh: $1 has no symbols to look at" >&2; exit 1; }
}
planted=$1
shift
[ $# -gt 0 ] || { echo "usage: no_plants.sh PLANTED SHIPPED..." >&2; exit 2; }
symbols "$planted"
case $found in
  *planted_bug*) ;;
  *) echo "no_plants.sh: $planted has no planted_bug, so that its absence elsewhere shows nothing" >&2; exit 1 ;;
esac
for file; do
  symbols "$file"
  case $found in
    *planted_bug*) echo "no_plants.sh: $file can make planted mistakes" >&2; exit 1 ;;
  esac
done

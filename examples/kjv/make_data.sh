#!/bin/sh
# Writes train.txt and validation.txt beside this file: the verses of the King
# James Bible (public domain), as Debian's bible-kjv prints them, a verse a line
# without its reference, in a fixed random order. validation.txt is a random
# tenth, 3,110 of 31,102 verses; the same on every machine.
set -eu
cd "$(dirname "$0")"

verses=31102
held_out=3110

command -v bible >/dev/null || {
  echo "make_data.sh: no 'bible' here; apt-get install bible-kjv" >&2
  exit 1
}
work=$(mktemp -d ./.make_data.XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# A random key for each verse: the generator of Park and Miller (CACM 1988),
# whose numbers stay small enough for any awk.
bible -f Ge1:1-Re22:21 |
  LC_ALL=C awk -v state=1 '{
    state = (state * 16807) % 2147483647
    sub(/^[^ ]* /, "")
    printf "%010d %s\n", state, $0
  }' | LC_ALL=C sort | cut -d ' ' -f 2- >"$work/all"
found=$(wc -l <"$work/all")
[ "$found" -eq "$verses" ] || {
  echo "make_data.sh: bible printed $found verses, want $verses" >&2
  exit 1
}
head -n "$held_out" "$work/all" >"$work/validation.txt"
tail -n +"$((held_out + 1))" "$work/all" >"$work/train.txt"

# A file that is right already keeps its time, and with it its token cache.
for file in train.txt validation.txt; do
  cmp -s "$work/$file" "$file" || mv "$work/$file" "$file"
done

#!/bin/sh
# The paper as PDF: pandoc makes a page with MathML, headless Chromium prints it. `make paper`
set -eu
out=$(mkdir -p "${1:-build/paper}" && cd "${1:-build/paper}" && pwd)
cd "$(dirname "$0")"
cp paper.css "$out"
authors=$(sed '/^affiliations/q' paper.md | sed -n 's/^  - name: //p' | paste -sd, -)
pandoc paper.md --variable "author=$authors" --citeproc --standalone --mathml --css paper.css --fail-if-warnings --output "$out/paper.html"
# Without a font for mathematics, brackets that may stretch are twice as high as what they hold.
sed -i 's/stretchy="true"/stretchy="false"/g' "$out/paper.html"
chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --user-data-dir="$out/profile" \
    --print-to-pdf="$out/paper.pdf" "$out/paper.html" > "$out/log" 2>&1 || { cat "$out/log"; exit 1; }
rm -rf "$out/profile"

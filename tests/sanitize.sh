#!/bin/sh
# The kernel's own tests on a build with the address and undefined-behaviour sanitizers.
#
# Builds beside the usual kernel, into build/sanitize, and leaves that one alone. Arguments go to
# pytest.
set -eu
cd "$(dirname "$0")/.."
python=$(command -v python || command -v python3)
build=build/sanitize
package=$build/package

cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Debug -DPython_EXECUTABLE="$python" \
    -DGRADSIEVE_SANITIZE=ON > "$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" --parallel 2 >> "$build.log" 2>&1 || { cat "$build.log"; exit 1; }

rm -rf "$package"
mkdir -p "$package"
cp -R src/gradsieve "$package/"
rm -f "$package"/gradsieve/kernel/_native.*.so
cp "$build"/_native.*.so "$package/gradsieve/kernel/"

# The interpreter is not sanitized, so the runtime has to be loaded before it; what Python itself
# leaves allocated at its end is not ours. The C++ library too, for its exceptions.
runtime="$("${CXX:-c++}" -print-file-name=libasan.so) $("${CXX:-c++}" -print-file-name=libstdc++.so)"
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export PYTHONPATH="$PWD/$package:$PWD/tests"
LD_PRELOAD="$runtime" exec "$python" - "$@" <<'PYTHON'
import sys

# An editable install would otherwise come first and test the usual build.
sys.meta_path = [find for find in sys.meta_path if "ScikitBuild" not in type(find).__name__]
import pytest

from gradsieve.kernel import _native

assert "sanitize" in _native.__file__, _native.__file__
tests = [f"tests/test_kernel{part}.py" for part in (
    "", "_followed", "_linearised", "_memory", "_numerics", "_recurrent", "_threads", "_vectors")]
sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", *tests, *sys.argv[1:]]))
PYTHON

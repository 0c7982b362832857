# SPDX-License-Identifier: Apache-2.0
"""Runs mypy over the packages, then over each directory of tests, in one process.

python.py starts it in the Debian root:

    python3 -m nodensdev.checks.mypy_runs CACHE DIRECTORY...
"""
import sys
from pathlib import Path

from mypy import api

PACKAGES = ("-p", "nodensdev", "-p", "nodenstest")
# The packages are checked strictly. Tests may leave out parameters of types and annotations of
# small functions, and have lambdas with defaults ("misc").
FOR_TESTS = ("--allow-any-generics", "--allow-untyped-defs", "--allow-incomplete-defs", "--allow-untyped-calls",
             "--allow-untyped-decorators", "--disable-error-code=misc")


def main(cache: str, *directories: str) -> int:
    runs = [PACKAGES, *((*FOR_TESTS, *(str(path) for path in sorted(Path(name).glob("*.py")))) for name in directories)]
    failed = False
    for arguments in runs:
        # Modules are remembered together with the options that they were checked with.
        memory = f"{cache}/{'packages' if arguments is PACKAGES else 'tests'}"
        output, errors, code = api.run(["--no-error-summary", "--cache-dir", memory, *arguments])
        print(output + errors, end="", flush=True)
        failed = failed or code != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""Runs mypy over the packages, then over each directory of tests, in one process. Started by python.py in the Debian root.

    python3 -m nodensdev.checks.mypy_runs CACHE DIRECTORY...
"""
import sys
from pathlib import Path

from mypy import api

PACKAGES = ("-p", "nodensdev", "-p", "nodenstest")


def main(cache: str, *directories: str) -> int:
    runs = [PACKAGES, *([str(path) for path in sorted(Path(name).glob("*.py"))] for name in directories)]
    failed = False
    for arguments in runs:
        output, errors, code = api.run(["--no-error-summary", "--cache-dir", cache, *arguments])
        print(output + errors, end="", flush=True)
        failed = failed or code != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

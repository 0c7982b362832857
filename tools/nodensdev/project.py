# SPDX-License-Identifier: Apache-2.0
"""Where things are in the source tree, and which commit it is."""
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
TOOLS = TOP / "tools"
BUILD = TOP / "build"
TESTS = TOP / "tests"
INSIDE = Path("/nodens")  # where the tree is seen from within a root


def commit() -> str:
    done = subprocess.run(["git", "-C", str(TOP), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"

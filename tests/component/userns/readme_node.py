# SPDX-License-Identifier: Apache-2.0
"""Makes the node of the example in docs/check-node.md, two pods and a damaged file, with the manager itself, and shows `nodens ids` of it.

    python3 tests/component/userns/readme_node.py build/gcc/src/nodens
            build/gcc/tests/component/userns/driver
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sides import Side

PODS = ["7c1f2f9e-4a55-4c86-9d0e-0d3f6a0f9b11", "b7e1c3d0-6d0e-4b57-8a55-2f3c9d1e7a42"]
DAMAGED = "e2a9d5b8-0c1b-4f0e-93b6-5d7a8c2b1f60"
LOGS = (f"shop_web-7d9f8b-x2k9p_{PODS[0]}", f"shop_db-0_{PODS[1]}")    # by which their names are known
LEFT = 53   # bytes of the damaged file


def main(nodens: str, driver: str) -> int:
    with tempfile.TemporaryDirectory() as top:
        node = Side("node", [driver], Path(top))
        node.clear()
        node.ask(op="open", root=str(node.root), first=65536, count=(1 << 32) - 65536, idsPerPod=65536, maxPods=110)
        for pod in [*PODS, DAMAGED]:
            assert "error" not in node.ask(op="get", pod=pod)
        node.close()
        os.truncate(node.path(DAMAGED), LEFT)
        script = 'mount -t tmpfs tmpfs /var/log && mkdir -p "$1" "$2" && shift 2 && exec "$@"'
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *(f"/var/log/pods/{name}" for name in LOGS), nodens, "ids",
                               "--root-dir", str(node.root)])
        return 0 if done.returncode == 1 else 2  # 1: a pod in quarantine needs attention


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

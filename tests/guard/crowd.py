# SPDX-License-Identifier: Apache-2.0
"""A crowd of two thousand people whose rights a guard has to ask about, of an API server without HTTP/2: prints what that costs, as JSON.

    python3 tests/guard/crowd.py BUILD        in the Debian root
"""
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import bench

SECONDS = 3


def most_sockets(pid: int, over: threading.Event) -> int:
    most = 0
    while not over.wait(0.05):
        links = (os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd"))
        most = max(most, sum(link.startswith("socket:") for link in links))
    return most


def main() -> int:
    build = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        bench.certificate(where)
        bench.write_reviews(where / "reviews", False)
        bench.write_config(where, rbac_only=False)
        with bench.running([sys.executable, "-B", str(bench.TESTS / "fake_api.py"), str(bench.API_PORT), str(where / "crt"), str(where / "key")], bench.all_cpus(), where / "log"):
            time.sleep(1)
            with bench.running([str(build / "src/guard/nodens-guard"), "serve", "--config", str(where / "guard.yaml")], bench.all_cpus(), where / "log") as guard:
                bench.wait_ready(guard, where / "log")
                over, found = threading.Event(), []
                watcher = threading.Thread(target=lambda: found.append(most_sockets(guard.pid, over)))
                watcher.start()
                told = bench.load(build, "/mutate", where / "reviews", SECONDS)
                over.set()
                watcher.join()
    print(json.dumps({"reviews": told["reviews"], "allowed": told["allowed"], "sockets": found[0]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

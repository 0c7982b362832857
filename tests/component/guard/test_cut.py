# SPDX-License-Identifier: Apache-2.0
"""A grant is revoked while the guard's connections are silently dead.

It must not apply for longer than 90 seconds.
"""
import json
import subprocess
import time

import pytest
from conftest import Plane, guard_config, guard_running, wait_until

PORT, PROXY = 9463, 9464
LIMIT = 90


@pytest.mark.slow
def test_a_deleted_grant_ends_within_90_seconds_while_the_watch_is_cut(plane: Plane) -> None:
    state = plane.one.state
    flag = state / "cut"
    flag.unlink(missing_ok=True)
    config = json.loads((state / "guard.kubeconfig").read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{PROXY}"
    (state / "cut.kubeconfig").write_text(json.dumps(config))
    guard_config(state, "cut", port=PORT, allocateRanges=False, kubeconfig="/run/cluster/cut.kubeconfig")
    ns = plane.namespace("cut-off")
    plane.grant(ns, "nodens:scc:privileged", "alice")
    proxy = subprocess.Popen(plane.one.command(["python3", "-B", "/nodens/tests/component/guard/cut_proxy.py", str(PROXY), "6443",
                                                "/run/cluster/cut"]))
    try:
        time.sleep(1)
        with guard_running(plane, state, "cut", PORT):
            ask = ["python3", "-B", "/nodens/tests/component/guard/talk.py", "privileged", str(PORT)]

            def answer() -> dict[str, object]:
                done = plane.one.run(ask, timeout=60)
                assert done.returncode == 0, done.stderr
                return json.loads(done.stdout)

            wait_until(lambda: answer()["allowed"] is True, "the grant")
            flag.touch()
            plane.kubectl("delete", "rolebinding", "-n", ns, "alice-nodens-scc-privileged")
            deleted = time.monotonic()
            while answer()["allowed"]:
                assert time.monotonic() - deleted < LIMIT, f"the grant still applies after {LIMIT} s"
                time.sleep(1)
            took = time.monotonic() - deleted
            # and the guard recovers by itself, over new connections
            wait_until(lambda: answer()["code"] == 403, "a proper denial", 60)
            print(f"gone after {took:.0f} s, a denial by the API server after {time.monotonic() - deleted:.0f} s")
    finally:
        proxy.terminate()
        proxy.wait(timeout=20)
        flag.unlink(missing_ok=True)

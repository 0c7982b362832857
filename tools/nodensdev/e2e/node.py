# SPDX-License-Identifier: Apache-2.0
"""The node as upstream's own test machines are set up: a `kubelet` user with IDs for the pods that a kubelet may have."""
import time

from ..cluster import Cluster
from ..command import Failure

# 110 pods, the kubelet's default maximum, from the first block on.
SETUP = """set -e
id kubelet >/dev/null 2>&1 || useradd --system --no-create-home --shell /usr/sbin/nologin kubelet
sed -i /^kubelet:/d /etc/subuid /etc/subgid
echo kubelet:65536:$((110 * 65536)) | tee -a /etc/subuid >>/etc/subgid
systemctl restart kubelet
"""
PATIENCE = 60.0


def prepare(cluster: Cluster) -> None:
    done = cluster.node_exec(["sh", "-c", SETUP])
    if done.returncode != 0:
        raise Failure(f"cannot give the node a kubelet user: {done.stderr.strip()}")
    deadline = time.monotonic() + PATIENCE
    while cluster.node_exec(["curl", "-sf", "http://127.0.0.1:10248/healthz"]).stdout != "ok" or not cluster.ready_nodes():
        if time.monotonic() > deadline:
            raise Failure("the kubelet did not come back after a restart")
        time.sleep(1)

# SPDX-License-Identifier: Apache-2.0
"""Upstream's suites as programs: listing their tests and running some of them.

There are two. The end-to-end suite (`ClusterSuite`) runs on the machine, in the network namespace of the cluster's control
plane, from which the API server, the node and the pods can be reached; ginkgo spreads its tests over processes. The node
suite (`NodeSuite`) runs on the node itself, against the kubelet and the API server that are there, one test at a time.
"""
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..cluster import Cluster
from ..cluster.addresses import CONTROL_PLANE, node_name
from ..cluster.runtime import find as find_runtime
from ..command import Failure
from ..env import cache, goprograms
from .outcome import Outcome, exactly, read_list, read_report

TIMEOUT = "4h"
E2E_ARGUMENTS = ["--provider=skeleton", "--num-nodes=1", "--minStartupPods=0", "--allowed-not-ready-nodes=0",
                 "--disable-log-dump=true"]
ON_NODE = "/var/tmp/e2e-node"
# The same for a rootless node: its directory, and what the host calls it.
IN_ROOTLESS, OF_ROOTLESS = "/var/lib/e2e-node", "/home/alice/.local/share/nodens/default/lib/e2e-node"
# The node suite would check the host first; its tests find out the same.
SYSTEM_SPEC = 'os: Linux\nkernelSpec:\n  versions: [".*"]\n'
ACCOUNT = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: e2e-node, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-node}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: e2e-node, namespace: kube-system}]
"""


class Suite(Protocol):
    """Something that runs tests by their names; logs, ginkgo's report and JUnit stay in the directory."""

    def run(self, names: list[str], processes: int, directory: Path) -> list[Outcome]: ...


def list_tests(suite: str, focus: str) -> list[str]:
    """The full names of the tests of a suite (`e2e` or `e2e-node`) that an expression selects."""
    program = {"e2e": "e2e.test", "e2e-node": "e2e_node.test"}[suite]
    arguments = E2E_ARGUMENTS if suite == "e2e" else []
    with cache.scratch("e2e") as work:
        command = [str(goprograms.ensure(suite) / program), *arguments, "--ginkgo.dry-run", "--ginkgo.no-color",
                   f"--ginkgo.focus={focus}", f"--ginkgo.json-report={work}/list.json"]
        done = subprocess.run(command, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"the suite cannot list its tests:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return read_list(work / "list.json")


def begin(directory: Path, names: list[str]) -> None:
    directory.mkdir(parents=True)
    (directory / "names").write_text("".join(f"{name}\n" for name in names))


def outcomes_in(directory: Path) -> list[Outcome]:
    found = read_report(directory / "report.json")
    if not found:
        log = directory / "log"
        raise Failure(f"the suite ran no test; the end of its log {log}:\n{log.read_text(errors='replace')[-2000:]}")
    return found


@dataclass(frozen=True)
class ClusterSuite:
    """The end-to-end suite against a cluster."""

    cluster: Cluster

    def run(self, names: list[str], processes: int, directory: Path) -> list[Outcome]:
        begin(directory, names)
        programs = goprograms.ensure("e2e")
        command = ["nsenter", f"--net={self.cluster.netns}", "--", str(programs / "ginkgo"), "run", "--no-color",
                   f"--procs={processes}", f"--timeout={TIMEOUT}", f"--focus={exactly(names)}", f"--output-dir={directory}",
                   "--json-report=report.json", "--junit-report=junit.xml", str(programs / "e2e.test"), "--", *E2E_ARGUMENTS,
                   f"--kubeconfig={self.cluster.kubeconfig}", f"--kubectl-path={goprograms.ensure('kubernetes') / 'kubectl'}",
                   f"--report-dir={directory}"]
        self.write_getsubids(directory / "bin" / "getsubids")
        environment = os.environ | {"PATH": f"{directory / 'bin'}:{os.environ['PATH']}"}
        with open(directory / "log", "wb") as log, \
                subprocess.Popen(command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=subprocess.STDOUT) as process:
            try:
                process.wait()
            except BaseException:
                process.terminate()
                raise
        return outcomes_in(directory)

    def write_getsubids(self, path: Path) -> None:
        """Makes a `getsubids` that asks the node.

        One test asks for the kubelet's range, and takes the host for the node.
        """
        path.parent.mkdir()
        rootless = bool(self.cluster.record.get("rootless"))
        remote = [*self.cluster.ssh_command(1, "alice" if rootless else "root"), "--",
                  *(["nodens-rootless", "shell", "--"] if rootless else []), "getsubids"]
        words = " ".join(f"'{word}'" for word in self.cluster.command(remote))
        path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        path.chmod(0o755)


@dataclass(frozen=True)
class NodeSuite:
    """The node suite on the cluster's first node."""

    cluster: Cluster

    def run(self, names: list[str], processes: int, directory: Path) -> list[Outcome]:
        begin(directory, names)
        self.install()
        endpoint, place = find_runtime(self.cluster.record["runtime"]).socket, IN_ROOTLESS if self.rootless else ON_NODE
        command = [f"{place}/e2e_node.test", "--ginkgo.no-color", "--ginkgo.v", f"--ginkgo.focus={exactly(names)}",
                   f"--ginkgo.timeout={TIMEOUT}", f"--ginkgo.json-report={place}/report.json",
                   f"--ginkgo.junit-report={place}/junit.xml", "--start-services=false", "--prepull-images=false",
                   f"--system-spec-file={place}/system.yaml", f"--host=https://{CONTROL_PLANE}:6443",
                   f"--bearer-token={self.token()}", f"--node-name={node_name(1)}", f"--container-runtime-endpoint={endpoint}"]
        run = self.cluster.rootless_exec if self.rootless else self.cluster.node_exec
        done = run(command, timeout=None)
        (directory / "log").write_text(done.stdout + done.stderr)
        for name in ("report.json", "junit.xml"):
            (directory / name).write_text(self.cluster.node_exec(["cat", f"{self.on_host}/{name}"]).stdout or "[]")
        return outcomes_in(directory)

    @property
    def rootless(self) -> bool:
        return bool(self.cluster.record.get("rootless"))

    @property
    def on_host(self) -> str:
        return OF_ROOTLESS if self.rootless else ON_NODE

    def install(self) -> None:
        """Copies the suite to the node, once; each run begins without the last one's report."""
        place, user = self.on_host, "alice" if self.rootless else "root"
        clean = f"mkdir -p {place}; rm -f {place}/*.json {place}/*.xml; cat >{place}/system.yaml"
        self.cluster.node_exec(["sh", "-c", clean], stdin=SYSTEM_SPEC, user=user)
        if self.cluster.node_exec(["test", "-x", f"{place}/e2e_node.test"]).returncode == 0:
            return
        receive = f"cat >{place}/copy && chmod 755 {place}/copy && mv {place}/copy {place}/e2e_node.test"
        with open(goprograms.ensure("e2e-node") / "e2e_node.test", "rb") as program:
            command = self.cluster.command([*self.cluster.ssh_command(1, user), "--", receive])
            done = subprocess.run(command, stdin=program, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"cannot copy the node suite to the node: {done.stderr.strip()}")

    def token(self) -> str:
        """Credentials for the suite, which speaks to the API server and to the kubelet."""
        self.cluster.kubectl("apply", "-f", "-", stdin=ACCOUNT)
        done = self.cluster.kubectl("create", "token", "e2e-node", "--namespace=kube-system", "--duration=8h")
        if done.returncode != 0:
            raise Failure(f"cannot make a token for the node suite: {done.stderr.strip()}")
        return done.stdout.strip()

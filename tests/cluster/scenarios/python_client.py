# SPDX-License-Identifier: Apache-2.0
"""Runs a command in a pod with the Python client of Kubernetes, and prints the result as JSON.

It runs beside the cluster, with the pod's namespace and name as arguments.
"""
import json
import sys
from typing import Any

from kubernetes import client, config
from kubernetes.stream import stream

LONG = 1 << 20


def execute(api: client.CoreV1Api, namespace: str, pod: str, command: str, **more: Any) -> Any:
    streams = {"stdin": False, "stdout": True, "stderr": True, "tty": False} | more
    return stream(api.connect_get_namespaced_pod_exec, pod, namespace, command=["sh", "-c", command], **streams)


def talk(api: client.CoreV1Api, namespace: str, pod: str) -> dict[str, Any]:
    """A command with input, as the client's own example has it."""
    one = execute(api, namespace, pod, "while read x; do echo got $x; echo also $x >&2; [ $x = end ] && exit 7; done", stdin=True,
                  _preload_content=False)
    for word in ("hello", "end"):
        one.write_stdin(word + "\n")
    one.run_forever(timeout=30)
    return {"stdout": one.read_stdout(), "stderr": one.read_stderr(), "code": one.returncode}


def main() -> None:
    namespace, pod = sys.argv[1:]
    config.load_kube_config()
    api = client.CoreV1Api()
    seen = {"both": execute(api, namespace, pod, "echo out; echo err >&2"),
            "long": len(execute(api, namespace, pod, f"head -c {LONG} /dev/zero | tr '\\0' x")) == LONG,
            "terminal": execute(api, namespace, pod, "test -t 0 && echo is one", stdin=True, tty=True, stderr=False).strip(),
            "talk": talk(api, namespace, pod)}
    print(json.dumps(seen))


main()

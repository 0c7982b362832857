# SPDX-License-Identifier: Apache-2.0
"""Many requests to an API server over a few keep-alive connections, where kubectl is too slow.

As a program it runs in the cluster's namespaces, takes requests as JSON lines ({"method", "path",
"body", "user", "groups"}) and prints an answer for each, in their order: [status, body, warnings,
audit id].
"""
import base64
import concurrent.futures
import http.client
import json
import os
import re
import ssl
import sys
import tempfile
import threading
import urllib.parse
from typing import Any

THREADS = 6
PROGRAM = "/nodens/tests/component/guard/batch.py"
WARNING = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')

Answer = tuple[int, Any, list[str], str]


def run(one: Any, requests: list[dict[str, Any]], timeout: float = 500) -> list[Answer]:
    """Sends all of them, as the cluster's administrator or as the user that a request names."""
    done = one.run(["python3", "-B", PROGRAM], stdin="\n".join(json.dumps(request) for request in requests), timeout=timeout)
    assert done.returncode == 0, done.stderr
    answers = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests)
    return answers


class Client:
    """Connections to one API server, one for each thread."""

    def __init__(self, kubeconfig: dict[str, Any]) -> None:
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        self.address = urllib.parse.urlsplit(cluster["server"])
        self.context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
            file.flush()
            self.context.load_cert_chain(file.name)
        self.mine = threading.local()

    def ask(self, request: dict[str, Any]) -> Answer:
        if not hasattr(self.mine, "connection"):
            self.mine.connection = http.client.HTTPSConnection(self.address.hostname or "", self.address.port, context=self.context,
                                                               timeout=60)
        headers = {"Content-Type": request.get("type", "application/json"), "Accept": "application/json"}
        lines = list(headers.items())
        if request.get("user"):
            lines += [("Impersonate-User", request["user"]), *[("Impersonate-Group", group) for group in request.get("groups", [])]]
        connection = self.mine.connection
        body = json.dumps(request["body"]).encode() if "body" in request else b""
        connection.putrequest(request["method"], request["path"])
        for name, value in lines:
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        warnings = [re.sub(r"\\(.)", r"\1", text) for line in answer.headers.get_all("Warning", []) for text in WARNING.findall(line)]
        return answer.status, json.loads(answer.read() or b"null"), warnings, answer.headers.get("Audit-Id", "")


def main() -> int:
    with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
        client = Client(json.load(file))
    requests = [json.loads(line) for line in sys.stdin]
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for answer in pool.map(client.ask, requests):
            print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())

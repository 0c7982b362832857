# SPDX-License-Identifier: Apache-2.0
"""Creates pods in a dry run, as fast as the API server allows, until standard input ends; prints what came back as JSON.

    python3 creates.py KUBECONFIG NAMESPACE CONNECTIONS
"""
import base64
import collections
import http.client
import json
import ssl
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any


def certificates(path: str) -> tuple[str, ssl.SSLContext]:
    """Address and credentials of a kubeconfig of the testbed, with data or files."""
    config = json.loads(Path(path).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]

    def file(entry: dict[str, Any], key: str) -> str:
        if key in entry:
            return str((Path(path).parent / entry[key]).resolve())
        with tempfile.NamedTemporaryFile(delete=False) as made:
            made.write(base64.b64decode(entry[f"{key}-data"]))
        return made.name

    context = ssl.create_default_context(cafile=file(cluster, "certificate-authority"))
    context.load_cert_chain(file(user, "client-certificate"), file(user, "client-key"))
    return cluster["server"], context


class Load:
    """Connections that each send one request after the other."""

    def __init__(self, server: str, context: ssl.SSLContext, namespace: str) -> None:
        self.address, self.context = urllib.parse.urlsplit(server).netloc, context
        self.path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
        self.results: collections.Counter[str] = collections.Counter()
        self.over = threading.Event()

    def one(self, connection: http.client.HTTPSConnection, name: str) -> str:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        connection.request("POST", self.path, json.dumps(pod), {"Content-Type": "application/json"})
        response = connection.getresponse()
        body = response.read().decode()
        return "admitted" if response.status == 201 else f"{response.status} {json.loads(body).get('message', body)[:400]}"

    def run(self, number: int) -> None:
        connection = http.client.HTTPSConnection(self.address, context=self.context, timeout=30)
        count = 0
        while not self.over.is_set():
            count += 1
            try:
                self.results[self.one(connection, f"p-{number}-{count}")] += 1
            except OSError as error:
                self.results[f"no answer: {error}"] += 1
                connection.close()


def main() -> None:
    path, namespace, connections = sys.argv[1], sys.argv[2], int(sys.argv[3])
    load = Load(*certificates(path), namespace)
    threads = [threading.Thread(target=load.run, args=(number,)) for number in range(connections)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    sys.stdin.read()
    load.over.set()
    for thread in threads:
        thread.join()
    print(json.dumps({"seconds": time.monotonic() - began, "results": load.results}))


if __name__ == "__main__":
    main()

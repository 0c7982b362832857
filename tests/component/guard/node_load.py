# SPDX-License-Identifier: Apache-2.0
"""Requests of a node, one after the other: `node_load.py SERVER PKI NAME FILE`.

Lists the node's pods with the certificate PKI/NAME.crt. For each request the file gets a line: when it began and ended, by the
monotonic clock, and the status of the answer; 0 if there was none. Ends when it is killed.
"""
import contextlib
import http.client
import ssl
import sys
import time
import urllib.parse

PAUSE = 0.02


def status_of(connection: http.client.HTTPSConnection, path: str) -> int:
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        connection.close()      # the next request opens it again
        return 0


def main() -> None:
    server, pki, name, output = sys.argv[1:]
    context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
    context.load_cert_chain(f"{pki}/{name}.crt", f"{pki}/{name}.key")
    connection = http.client.HTTPSConnection(urllib.parse.urlsplit(server).netloc, context=context, timeout=10)
    path = f"/api/v1/pods?limit=1&fieldSelector=spec.nodeName%3D{name.removeprefix('node-')}"
    with open(output, "a", encoding="utf-8") as file, contextlib.suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            status = status_of(connection, path)
            print(began, time.monotonic(), status, file=file, flush=True)
            time.sleep(PAUSE)


if __name__ == "__main__":
    main()

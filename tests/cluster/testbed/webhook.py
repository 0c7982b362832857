# SPDX-License-Identifier: Apache-2.0
"""A minimal validating webhook and authorizer.

It refuses pods with the label refuse=yes, and lets `reader` list config maps. TLS_CERT and TLS_KEY
name its certificate; it listens on 127.0.0.1:8443.
"""
import http.server
import json
import os
import ssl
from typing import Any


def review_admission(review: dict[str, Any]) -> dict[str, Any]:
    request = review["request"]
    labels = request["object"]["metadata"].get("labels", {})
    answer: dict[str, Any] = {"uid": request["uid"], "allowed": labels.get("refuse") != "yes"}
    if not answer["allowed"]:
        answer["status"] = {"code": 403, "message": "the testbed's webhook says no"}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}


def review_access(review: dict[str, Any]) -> dict[str, Any]:
    spec = review["spec"]
    asked = spec.get("resourceAttributes", {})
    allowed = spec.get("user") == "reader" and (asked.get("verb"), asked.get("resource")) == ("list", "configmaps")
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "status": {"allowed": allowed}}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = review_access(review) if self.path.startswith("/authorize") else review_admission(review)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 8443), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["TLS_CERT"], os.environ["TLS_KEY"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

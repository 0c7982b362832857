# SPDX-License-Identifier: Apache-2.0
"""A webhook that adds a sidecar to every pod, as service meshes do.

It runs after the guard, which must then be called again.
"""
import base64
import http.server
import json
import os
import ssl

PORT = 9444
SIDECAR = {"name": "sidecar", "image": "proxy"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        response = {"uid": request["uid"], "allowed": True}
        if all(one["name"] != SIDECAR["name"] for one in request["object"]["spec"]["containers"]):
            patch = [{"op": "add", "path": "/spec/containers/-", "value": SIDECAR}]
            response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
        data = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["TLS_CERT"], os.environ["TLS_KEY"])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

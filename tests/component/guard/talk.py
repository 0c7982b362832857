# SPDX-License-Identifier: Apache-2.0
"""A client of the guard's port: `talk.py WHAT PORT` prints its result as JSON.

test_serving.py runs it in the cluster's network.
"""
import hashlib
import http.client
import json
import socket
import ssl
import sys
import time
from typing import Any

CONTEXT = ssl._create_unverified_context()
# the API server's certificate
CONTEXT.load_cert_chain("/run/cluster/pki/apiserver-kubelet.crt", "/run/cluster/pki/apiserver-kubelet.key")
HEAD = {"Content-Type": "application/json"}


def connect(port: int) -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection("127.0.0.1", port, context=CONTEXT, timeout=100)


def review(pod: dict[str, Any], old: dict[str, Any] | None = None) -> bytes:
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "UPDATE" if old else "CREATE", "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "large",
        "name": "p", "userInfo": {"username": "alice", "groups": ["system:authenticated"]}, "object": pod, "oldObject": old}}).encode()


def ask(port: int, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = connect(port)
    try:
        connection.request(method, path, body, HEAD)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (ConnectionError, ssl.SSLError):
        return 0, b""
    finally:
        connection.close()


def large(port: int) -> dict[str, Any]:
    """An update of an object of etcd's maximum size, twice in one review."""
    pod = {"kind": "Pod", "metadata": {"name": "p", "annotations": {"a": "x" * (3 << 20)}},
           "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = review(pod, pod)
    status, answer = ask(port, "POST", "/validate", body)
    return {"status": status, "bytes": len(body), "allowed": json.loads(answer)["response"]["allowed"] if status == 200
            else answer.decode()}


def refused(port: int) -> dict[str, int]:
    deep = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    return {"too large": ask(port, "POST", "/validate", b" " * (17 << 20))[0], "too deep": ask(port, "POST", "/validate", deep)[0],
            "no json": ask(port, "POST", "/mutate", b"{")[0], "no review": ask(port, "POST", "/pod-security", b"{}")[0],
            "empty": ask(port, "POST", "/validate")[0], "GET": ask(port, "GET", "/validate")[0],
            "elsewhere": ask(port, "POST", "/other")[0]}


def waits(one: socket.socket) -> bool:
    """Whether the guard has not closed the connection."""
    one.setblocking(False)
    try:
        one.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        pass
    return False


def unauthenticated(port: int) -> dict[str, int]:
    """The guard's responses to a client without a certificate, by path."""
    found = {}
    for path in ("/mutate/enforce", "/validate/enforce", "/validate/warn", "/pod-security/enforce", "/metrics"):
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context(), timeout=30)
        connection.request("GET" if path == "/metrics" else "POST", path, review({"kind": "Pod"}), HEAD)
        found[path] = connection.getresponse().status
        connection.close()
    return found


def slow(port: int) -> dict[str, Any]:
    """Two hundred clients stop in the middle of the handshake, of the head, or of the body.

    Others are answered meanwhile.
    """
    held = []
    # with a certificate: an address that has shown none gets fewer connections
    ask(port, "GET", "/metrics")
    for number in range(200):
        plain = socket.create_connection(("127.0.0.1", port), timeout=30)
        if number % 4 == 0:
            plain.sendall(b"\x16\x03\x01\x02\x00")
            held.append(plain)
            continue
        secure = CONTEXT.wrap_socket(plain)
        if number % 4 > 1:
            secure.sendall(b"POST /validate HTTP/1.1\r\nHost: guard\r\nContent-Length: 100000\r\n" + (b"\r\n{" if number % 4 == 3 else b""))
        held.append(secure)
    slowest, answered = 0.0, 0
    for _ in range(50):
        began = time.monotonic()
        answered += ask(port, "POST", "/validate",
                        review({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}))[0] == 200
        slowest = max(slowest, time.monotonic() - began)
    return {"opened": len(held), "slowest": slowest, "answered": answered, "waiting": sum(waits(one) for one in held)}


def privileged(port: int) -> dict[str, Any]:
    """May alice have a privileged pod?"""
    pod = {"kind": "Pod", "metadata": {"name": "p"},
           "spec": {"hostPID": True, "containers": [{"name": "c", "securityContext": {"privileged": True}}]}}
    status, answer = ask(port, "POST", "/validate", review(pod).replace(b'"large"', b'"cut-off"'))
    response = json.loads(answer)["response"] if status == 200 else {"allowed": False, "status": {"code": status}}
    return {"allowed": response["allowed"], "code": response.get("status", {}).get("code", 200),
            "message": response.get("status", {}).get("message", "")}


def metrics(port: int) -> dict[str, float]:
    lines = ask(port, "GET", "/metrics")[1].decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def leaders(port: int) -> None:
    """Prints the number of each of three guards when it becomes the leader."""
    connections, led = [connect(port + number) for number in range(3)], [False] * 3
    while True:
        for number, connection in enumerate(connections):
            try:
                connection.request("GET", "/metrics")
                leads = b"nodens_guard_leads 1" in connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                connection.close()
                leads = False
            if leads and not led[number]:
                print(number, flush=True)
            led[number] = leads
        time.sleep(0.03)


def serial(port: int) -> dict[str, str]:
    with CONTEXT.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=30)) as secure:
        return {"serial": hashlib.sha256(secure.getpeercert(binary_form=True) or b"").hexdigest()}


def kept(port: int) -> dict[str, int]:
    """Twenty seconds on one connection."""
    connection, answers, broken = connect(port), 0, 0
    connection.auto_open = True
    connection.connect()
    first = connection.sock
    for _ in range(20):
        connection.request("GET", "/healthz")
        answers += connection.getresponse().read() == b"ok\n"
        broken += connection.sock is not first
        time.sleep(1)
    return {"answers": answers, "broken": broken}


if __name__ == "__main__":
    if sys.argv[1] == "leaders":
        leaders(int(sys.argv[2]))
    print(json.dumps({"large": large, "refused": refused, "slow": slow, "unauthenticated": unauthenticated, "privileged": privileged,
                      "metrics": metrics, "serial": serial, "kept": kept}[sys.argv[1]](int(sys.argv[2]))))

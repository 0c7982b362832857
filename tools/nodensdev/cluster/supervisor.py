# SPDX-License-Identifier: Apache-2.0
"""supervisor.py - keeps the processes of one cluster, inside its namespaces

Theory of operation
  Reads plan.json in the current directory: commands that configure the network, then services,
  started in order, each when the one before it is ready. status.json has the state: `starting`,
  then `up`, with the names of the services that have ended since. Until the caller writes `keep` to
  standard input, the cluster is on trial: when a service ends, or the caller does (end of file),
  the supervisor ends, and the pid namespace with everything in it. Afterwards it stays until the
  namespace is killed, so that the logs and the rest of a broken cluster can be inspected. A service
  is started again, as the plan then says, when a file again-NAME is created beside the plan; if it
  still runs, it is ended first. So a node that was powered off comes back with its disk, and a
  component gets other flags.
"""
import contextlib
import json
import os
import select
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from typing import IO, Any

POLL = 0.1
END_TIMEOUT = 5     # the API server would wait a minute for open watches
LOGS = "logs"


class Ended(Exception):
    """The cluster cannot come up."""


def write_status(state: str, ended: dict[str, int]) -> None:
    with open("status.json.new", "w") as stream:
        json.dump({"state": state, "ended": ended}, stream)
    os.replace("status.json.new", "status.json")


def start(service: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Starts a service; a guest's console is kept apart from its job's output."""
    with open(f"{LOGS}/{service['name']}.log", "ab") as output, contextlib.ExitStack() as stack:
        errors: IO[bytes] | int = subprocess.STDOUT
        if service["console"]:
            errors = stack.enter_context(open(f"{LOGS}/{service['name']}-console.log", "ab"))
        return subprocess.Popen([*service["argv"], *service.get("more", [])], stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                cwd=service["cwd"], env=os.environ | service["env"])


def is_ready(check: str) -> bool:
    if not check:
        return True
    try:
        if check.startswith("tcp:"):
            _, host, port = check.split(":")
            socket.create_connection((host, int(port)), timeout=1).close()
        else:
            context = ssl.create_default_context(cafile="pki/ca.crt")
            context.load_cert_chain("pki/admin.crt", "pki/admin.key")
            urllib.request.urlopen(check, context=context, timeout=2).close()
        return True
    except OSError:
        return False


def look_after(running: dict[str, subprocess.Popen[bytes]], ended: dict[str, int], on_trial: bool) -> bool:
    """Records services that have ended; returns whether the cluster is still on trial."""
    for name, process in running.items():
        code = process.poll()
        if code is not None and name not in ended:
            ended[name] = code
            if on_trial:
                raise Ended(f"{name} ended with {code}")
            write_status("up", ended)
    if on_trial and select.select([0], [], [], 0)[0]:
        if os.read(0, 16).strip() != b"keep":
            raise Ended("the caller is gone")
        return False
    return on_trial


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start_again(running: dict[str, subprocess.Popen[bytes]], ended: dict[str, int]) -> None:
    """Those that are asked for."""
    wanted = [name for name in running if os.path.exists(f"again-{name}")]
    if not wanted:
        return
    services = {service["name"]: service for service in read_plan()["services"]}
    for name in wanted:
        end(running[name])
        running[name] = start(services[name])
        ended.pop(name, None)
        write_status("up", ended)
        os.unlink(f"again-{name}")


def read_plan() -> dict[str, Any]:
    with open("plan.json") as stream:
        return json.load(stream)


def supervise(plan: dict[str, Any]) -> None:
    for command in plan["setup"]:
        subprocess.run(command, check=True)
    running: dict[str, subprocess.Popen[bytes]] = {}
    ended: dict[str, int] = {}
    on_trial = True
    for service in plan["services"]:
        running[service["name"]] = start(service)
        while not is_ready(service["ready"]):
            on_trial = look_after(running, ended, on_trial)
            time.sleep(POLL)
    write_status("up", ended)
    while True:
        on_trial = look_after(running, ended, on_trial)
        start_again(running, ended)
        time.sleep(POLL if on_trial else 1)


def main() -> int:
    os.makedirs(LOGS, exist_ok=True)
    write_status("starting", {})
    try:
        supervise(read_plan())
    except (Ended, subprocess.CalledProcessError) as error:
        print(f"supervisor: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

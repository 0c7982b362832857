# SPDX-License-Identifier: Apache-2.0
"""The guard as a server: large bodies, bad clients, certificate renewal, metrics."""
import json
import shutil
import subprocess
import time
from typing import Any

import batch
import pytest
from conftest import BUILD, GUARD, PORT, SANITIZED, Plane, guard_config, guard_running, scc, wait_until

MIB = 1 << 20
TALK = "/nodens/tests/component/guard/talk.py"


def talk(plane: Plane, what: str, port: int = PORT, timeout: float = 300) -> dict[str, Any]:
    """The result of talk.py in the cluster's network."""
    done = plane.one.run(["python3", "-B", TALK, what, str(port)], timeout=timeout)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_objects_of_3_mib_are_reviewed(plane: Plane) -> None:
    ns = plane.namespace("large")
    found = talk(plane, "large")
    assert found["status"] == 200 and found["allowed"] is True and found["bytes"] > 6 * MIB, found
    pod = plane.create(ns, {}, annotations={"note": "x" * 200_000})
    assert pod["metadata"]["annotations"]["security.nodens.io/scc"] == "restricted-v2"


def test_only_the_api_servers_certificate_is_accepted(plane: Plane) -> None:
    before = talk(plane, "metrics")
    # with the API server's own client certificate
    assert scc(plane.create(plane.namespace("certified"), {})) == "restricted-v2"
    others = talk(plane, "unauthenticated")
    assert set(others.values()) == {401} and others, others
    after = talk(plane, "metrics")
    assert after["nodens_guard_clients_refused_total"] - before["nodens_guard_clients_refused_total"] == len(others)
    assert "clients are not authenticated" not in (plane.one.state / "logs/guard.log").read_text()


def test_the_network_policy_names_the_api_servers(plane: Plane) -> None:
    plane.kubectl("apply", "-f", "-", stdin=plane.guard_output("manifest", "network", "--api-servers", "10.0.0.1/32,10.0.0.2/32"))
    spec = json.loads(plane.kubectl("get", "networkpolicy", "nodens-guard", "-n", "nodens-system", "-o", "json"))["spec"]
    assert [one["ipBlock"]["cidr"] for one in spec["ingress"][0]["from"]] == ["10.0.0.1/32", "10.0.0.2/32"]
    assert spec["ingress"][0]["ports"] == [{"port": PORT, "protocol": "TCP"}] and spec["policyTypes"] == ["Ingress"]
    assert "--api-servers" in plane.inside.capture([GUARD, "manifest", "network"]).stderr


def test_bodies_that_are_too_large_too_deep_or_invalid_are_refused(plane: Plane) -> None:
    found = talk(plane, "refused")
    assert found["too large"] in (413, 0) and found["too deep"] == 400 and found["no json"] == 400 and found["no review"] == 400
    assert found["empty"] == 400 and found["GET"] == 405 and found["elsewhere"] == 404, found


def test_slow_and_half_open_clients_do_not_delay_others(plane: Plane) -> None:
    found = talk(plane, "slow")
    assert found["opened"] == 200 and found["answered"] == 50 and found["waiting"] == 200, found


@pytest.mark.nightly
def test_slow_and_half_open_clients_cost_others_less_than_a_second(plane: Plane) -> None:
    assert talk(plane, "slow")["slowest"] < 1.0


def test_metrics_follow_reviews(plane: Plane) -> None:
    before = talk(plane, "metrics")
    plane.create(plane.namespace("counted"), {})
    after = talk(plane, "metrics")
    for flow in ("mutate", "validate"):
        key = f'nodens_guard_reviews_total{{flow="{flow}",verdict="allowed"}}'
        assert after[key] > before[key]
    assert after["nodens_guard_ready"] == 1 and after["nodens_guard_rbac_fresh"] == 1 and after["nodens_guard_constraints"] >= 14
    assert after["nodens_guard_review_duration_seconds_count"] > before["nodens_guard_review_duration_seconds_count"]


def test_many_pods_cost_one_query_for_each_constraint(plane: Plane) -> None:
    """No user here may use anyuid, which comes first and fits.

    The RBAC index cannot deny for other authorizers, so the API server is queried.
    """
    ns = plane.namespace("crowd")
    for user, role in (("bertha", "edit"), ("carla", "edit"), ("carla", "nodens:scc:anyuid")):
        plane.grant(ns, role, user)
    # A binding that the watch reports clears the guard's cache of results: once it has seen the
    # last one, it has seen all.
    plane.eventually(lambda pod: scc(pod) == "anyuid", "the grants", ns, {}, user="carla", context={"runAsUser": 0})
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    asked = [{"method": "POST", "path": f"/api/v1/namespaces/{ns}/pods?dryRun=All", "body": pod, "user": "bertha",
              "groups": ["system:authenticated"]}] * 60
    before, began = talk(plane, "metrics")["nodens_guard_access_reviews_total"], time.monotonic()
    answers = batch.run(plane.one, asked)
    after = talk(plane, "metrics")["nodens_guard_access_reviews_total"]
    assert {(status, scc(body)) for status, body, _, _ in answers} == {(201, "restricted-v2")}
    times = 1 + int((time.monotonic() - began) / 30)  # a denial is cached for so long
    assert 1 <= after - before <= 4 * times, "for bertha and for the pods' service account, in the mutating and the validating webhook"


def crowd(plane: Plane, manners: str) -> dict[str, Any]:
    done = plane.inside.capture(["python3", "-B", "tests/component/guard/crowd.py", BUILD, manners])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_many_users_are_answered_over_few_connections(plane: Plane) -> None:
    """Without HTTP/2 each query in flight has its own connection.

    A pod here needs twenty, and 25 are created at a time.
    """
    found = crowd(plane, "patient")
    assert found["reviews"] == found["allowed"] > 100, found
    assert found["sockets"] < 25 + 2 * 32, found


def test_clients_that_disconnect_cost_little(plane: Plane) -> None:
    """Nor do their leftovers delay the guard's exit."""
    found = crowd(plane, "rude")
    assert found["connections"] > 100, found
    assert found["peak_mb"] < (2000 if SANITIZED else 64), found


def test_a_new_certificate_is_loaded_without_a_restart(plane: Plane) -> None:
    state, port = plane.one.state, 9462
    for end in ("crt", "key"):
        shutil.copy(state / f"pki/webhook-guard.{end}", state / f"served.{end}")
    guard_config(state, "served", port=port, allocateRanges=False, certificate="/run/cluster/served.crt", key="/run/cluster/served.key")
    with guard_running(plane, state, "served", port):
        first = talk(plane, "serial", port)["serial"]
        kept = subprocess.Popen(plane.one.command(["python3", "-B", TALK, "kept", str(port)]), stdout=subprocess.PIPE, text=True)
        # half of a pair is not loaded
        shutil.copy(state / "pki/webhook-injector.crt", state / "served.crt")
        log = state / "logs/served.log"
        wait_until(lambda: "cannot use the new certificate" in log.read_text(), "an attempt to load the half")
        assert talk(plane, "serial", port)["serial"] == first
        shutil.copy(state / "pki/webhook-injector.key", state / "served.key")
        wait_until(lambda: talk(plane, "serial", port)["serial"] != first, "the new certificate")
        words = kept.communicate(timeout=300)[0]
        assert json.loads(words) == {"answers": 20, "broken": 0}, "an open connection continues"
    assert "loaded a new certificate" in log.read_text()

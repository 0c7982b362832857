# SPDX-License-Identifier: Apache-2.0
"""Client certificates: which requests each one allows, and the responses without one.

`tools/dev test guard` runs it, without a cluster.
"""
from pathlib import Path

import pytest
from alone import CLIENT, review, running

NAMESPACE = {"group": "", "version": "v1", "resource": "namespaces"}


def test_a_peer_without_a_certificate_learns_nothing_and_costs_the_api_server_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as alone:
        alone.api.items["/api/v1/namespaces/n/pods"] = [{"kind": "Pod", "metadata": {"name": "payroll-db-0"}, "spec": {"containers": [
            {"name": "c", "image": "i", "securityContext": {"privileged": True}}]}}]
        alone.api.pods["/api/v1/namespaces/n/pods/payroll-db-0"] = alone.api.items["/api/v1/namespaces/n/pods"][0]
        stricter = review(operation="UPDATE", resource=NAMESPACE, name="n", object={"metadata": {"name": "n", "labels": {
            "pod-security.nodens.io/enforce": "restricted"}}}, oldObject={"metadata": {"name": "n"}})
        command = review(operation="CONNECT", subResource="exec", name="payroll-db-0", object={"kind": "PodExecOptions"})
        create = review(object={"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
        for path, body in (("/pod-security", stricter), ("/validate", command), ("/validate", create), ("/mutate", create)):
            status, text = alone.ask("POST", path, body, client=None)
            assert status == 401 and "payroll" not in text and "restricted" not in text, (path, status, text)
        assert alone.ask("GET", "/metrics", client=None)[0] == 401
        assert alone.ask("GET", "/anything", client=None)[0] == 401
        assert alone.api.count["reviews"] == 0 and not any("/pods" in one for one in alone.api.count), alone.api.count
        # the API server gets it
        assert "payroll-db-0" in alone.ask("POST", "/pod-security", stricter)[1]


def test_probes_need_no_certificate_and_reveal_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as alone:
        for path in ("/healthz", "/livez", "/readyz"):
            assert alone.ask("GET", path, client=None) == (200, "ok\n")
            assert alone.ask("POST", path, {}, client=None)[0] == 401


def test_the_names_of_a_certificate_decide_its_rights(tmp_path: Path) -> None:
    with running(tmp_path, clientNames=[CLIENT, "api.example", "spiffe://cluster/api"], metricsNames=["prometheus"]) as alone:
        alone.pki.authority("other")
        alone.pki.leaf("stranger", "/CN=admin")
        alone.pki.leaf("forged", f"/CN={CLIENT}", ca="other")
        alone.pki.leaf("dns", "/CN=x", san="DNS:api.example")
        alone.pki.leaf("uri", "/CN=x", san="URI:spiffe://cluster/api")
        alone.pki.leaf("prometheus", "/CN=prometheus")
        pod = review(object={"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
        said = {who: (alone.ask("POST", "/mutate", pod, client=who)[0], alone.ask("GET", "/metrics", client=who)[0])
                for who in ("client", "dns", "uri", "prometheus", "stranger", "forged")}
        assert said == {"client": (200, 200), "dns": (200, 200), "uri": (200, 200), "prometheus": (403, 200), "stranger": (403, 403),
                        "forged": (401, 401)}
        assert "refused a client" in alone.log()
        assert alone.metric("nodens_guard_clients_refused_total") == 5


def test_the_guard_does_not_start_without_a_client_ca(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="clientCA is not set"), running(tmp_path, clientCA=None):
        pass


def test_the_guard_warns_at_start_without_client_certificates(tmp_path: Path) -> None:
    with running(tmp_path, clientCA="none") as alone:
        assert "clients are not authenticated (no clientCA)" in alone.log()
        assert alone.ask("GET", "/metrics", client=None)[0] == 200

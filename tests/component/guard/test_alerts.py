# SPDX-License-Identifier: Apache-2.0
"""The Prometheus rules of deploy/, checked and tried by Debian's promtool; metrics that they name exist."""
import re
import subprocess
from pathlib import Path

from conftest import Plane
from nodensdev.env import chroot, debpackage
from nodensdev.project import TOP

RULES = TOP / "deploy/alerts.yaml"


def promtool(*words: str) -> subprocess.CompletedProcess[str]:
    unpacked = chroot.seen_inside(debpackage.unpacked(*debpackage.PROMTOOL))
    with chroot.prepared(chroot.Chroot()) as inside:
        return inside.capture([str(Path(unpacked) / "usr/bin/promtool"), *words])


def test_promtool_accepts_the_rules() -> None:
    done = promtool("check", "rules", "/nodens/deploy/alerts.yaml")
    assert done.returncode == 0 and "SUCCESS: 12 rules found" in done.stdout, done.stdout + done.stderr


def test_alerts_fire_when_they_should_and_only_then() -> None:
    done = promtool("test", "rules", "/nodens/tests/component/guard/alerts.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_of_the_rules_is_one_of_the_guard(plane: Plane) -> None:
    named = set(re.findall(r"\bnodens_guard_[a-z_]+", RULES.read_text()))
    served = {re.sub(r"\{.*", "", name) for name in plane.metrics()}
    assert named - served == set()
    found = plane.kubectl("get", "--raw", "/metrics")
    assert "apiserver_admission_webhook_request_total{" in found

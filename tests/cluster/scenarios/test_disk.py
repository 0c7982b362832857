# SPDX-License-Identifier: Apache-2.0
"""A disk that is nearly full: the kubelet removes unused images, and that is enough; no pod is evicted."""
from collections.abc import Iterator

import pytest
from nodenstest.people import BUSYBOX, FOREVER, Person, container, pod_spec

NGINX = "registry.k8s.io/e2e-test-images/nginx:1.27.0-2"
FILLER = "/var/lib/story-filler"
THRESHOLD = 1 << 30     # nodefs.available in conftest.py
SHORT = 24 << 20        # missing free space: less than the unused images take


def available(person: Person) -> int:
    return int(person.on_node("df --output=avail -B1 /var/lib/nodens /var/lib/kubelet 2>/dev/null | tail -1"))


def pressed(person: Person) -> bool:
    return any(one["type"] == "DiskPressure" and one["status"] == "True" for one in person.get("node", "node1")["status"]["conditions"])


@pytest.fixture
def nearly_full(person: Person) -> Iterator[None]:
    """Makes the disk full when asked to, and gives the room back."""
    yield
    person.on_node(f"rm -f {FILLER}")
    person.until(lambda: not pressed(person), "the end of the pressure", 90)


def test_unused_images_are_removed_before_pods_are_evicted(person: Person, nearly_full: None) -> None:
    person.pod("bystander", container(FOREVER), hostUsers=False)
    person.pod("visitor", container("true", image=NGINX), restartPolicy="Never")
    person.ready("bystander")
    person.phase("visitor", "Succeeded", 120)
    person.kubectl("delete", "pod", "visitor")
    name = NGINX.rpartition(":")[0]
    assert name in person.images()
    person.on_node(f"fallocate -l {available(person) - THRESHOLD + SHORT} {FILLER}")
    person.until(lambda: name not in person.images(), "the removal of an unused image", 60)
    person.until(lambda: available(person) > THRESHOLD, "room", 20)
    assert BUSYBOX.rpartition(":")[0] in person.images(), "an image in use went"
    # The kubelet admits no new pod until the pressure is over: a job retries. The image is pulled
    # again.
    person.apply("Job", "again", "batch/v1",
                 spec={"backoffLimit": 10, "template": {"spec": pod_spec(container("true", image=NGINX), restartPolicy="Never")}})
    person.kubectl("wait", "--for=condition=complete", "job/again", "--timeout=300s", timeout=330)
    status = person.status("bystander")
    assert status["phase"] == "Running" and status["containerStatuses"][0]["restartCount"] == 0

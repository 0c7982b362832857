# SPDX-License-Identifier: Apache-2.0
"""`nodens-guard import`: OpenShift's constraints, taken by a stock API server and used by the guard."""
from conftest import GUARD, Plane, scc

SOURCE = "/nodens/docs/examples/openshift-sccs.yaml"


def test_imported_constraints_admit_pods(plane: Plane) -> None:
    done = plane.inside.capture([GUARD, "import", SOURCE])
    assert done.returncode == 0 and "1 constraints imported, 1 objects left out, 0 invalid" in done.stderr, done.stderr
    assert "unknown field 'allowedFancyDevices' was left out" in done.stderr
    assert "openshift.io/v1" not in done.stdout and "resourceVersion" not in done.stdout
    plane.kubectl("apply", "--server-side", "--field-manager=import", "-f", "-", stdin=done.stdout)
    name = plane.namespace("imported")
    plane.grant(name, "nodens:scc:build-agent", "alice")
    pod = plane.eventually(lambda one: scc(one) == "build-agent", "the imported constraint", name, {},
                           annotations={"security.nodens.io/required-scc": "build-agent"})
    assert pod["spec"]["containers"][0]["securityContext"]["runAsUser"] == 1000
    plane.kubectl("delete", "-f", "-", stdin=done.stdout)


def test_all_constraints_of_openshift_are_imported_on_request(plane: Plane) -> None:
    done = plane.inside.capture([GUARD, "import", "--all", "--json", SOURCE])
    assert done.returncode == 0 and "2 constraints imported" in done.stderr
    plane.kubectl("apply", "--dry-run=server", "--server-side", "--force-conflicts", "-f", "-", stdin=done.stdout)


def test_a_file_that_is_not_yaml_is_an_error(plane: Plane) -> None:
    done = plane.inside.capture(["sh", "-c", f"printf 'a: [' | {GUARD} import -"])
    assert done.returncode == 1 and not done.stdout and "-: " in done.stderr
    assert plane.inside.capture([GUARD, "import"]).returncode == 64

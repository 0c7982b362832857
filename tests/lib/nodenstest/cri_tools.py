# SPDX-License-Identifier: Apache-2.0
"""crictl and critest, and the images that critest pulls, made here and served under the names that it has compiled in.

critest pulls from public registries. A runtime finds our registry under their names by hosts.toml (trust()), and there images with
the properties that the tests look at (publish()). One cannot be made: test-image-digest, which critest names by the digest of
upstream's bytes.
"""
import json
import subprocess
from pathlib import Path

from nodensdev.critools import Outcome

from . import images as make
from . import registry_server, runtimes, validation

PUBLIC = ("gcr.io", "registry.k8s.io", "k8s.gcr.io")        # the registries that critest pulls from
STAGING, E2E = "k8s-staging-cri-tools", "e2e-test-images"
SHELL = f"registry.k8s.io/{E2E}/busybox:1.29-2"             # critest's default image, which the tests of crictl use as well
NGINX = f"{E2E}/nginx:1.27.0-2"
HOST_PORT = 12003                                           # of hostnet-nginx
USERS = {"uid": "1002", "uid-group": "1003:1004", "username": "www-data", "username-group": "www-data:1004"}
TIMEOUT = 2700.0        # seconds for all tests of critest on one runtime, on a loaded machine


def labelled(site: registry_server.Site, source: str, label: str) -> make.Image:
    """An image of the testbed under another name: the label makes it another image."""
    made = validation.stored(site, source)
    made.config.setdefault("config", {})["Labels"] = {"io.nodens.test": label}
    return made


def shell(site: registry_server.Site, label: str, user: str = "") -> make.Image:
    made = labelled(site, validation.SHELL, label)
    made.config["config"]["User"] = user
    return made


def predefined_group(site: registry_server.Site) -> make.Image:
    """User 1000, whom the image has in a group."""
    return shell(site, "predefined-group", "1000").layer(make.tar(
        make.entry("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\ndefault-user:x:1000:1000::/home/default-user:/bin/sh\n"),
        make.entry("etc/group", b"root:x:0:\ndefault-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\n")))


def nginx(site: registry_server.Site, label: str, port: int) -> make.Image:
    """Debian's nginx with a page, and what Debian's scripts and upstream's base image would have added."""
    text = f"server {{ listen {port}; root /www; }}\n"
    return labelled(site, NGINX, label).layer(make.tar(
        make.entry("etc/nginx/sites-available/default", text.encode()), make.directory("www"), make.entry("www/index.html", b"It works!\n"),
        make.symlink("var/run", "/run"),                # critest looks for nginx's PID file there
        make.symlink("usr/bin/grep", "busybox")))       # critest greps in a binary file; GNU's grep writes a remark to stderr


def httpd(site: registry_server.Site) -> make.Image:
    """A web server whose log has its name, in the place of Apache's."""
    made = shell(site, "httpd").layer(make.tar(make.directory("www"), make.entry("www/index.html", b"It works!\n")))
    made.config["config"]["Cmd"] = ["sh", "-c", "echo httpd: starts; exec httpd -f -v -p 80 -h /www"]
    return made


def critest_images(site: registry_server.Site) -> dict[str, make.Image]:
    found = {f"{STAGING}/test-image-{name}:latest": shell(site, name) for name in ("1", "2", "3", "latest")}
    found |= {f"{STAGING}/test-image-tag:{tag}": shell(site, f"tag-{tag}") for tag in ("test", "all")}
    found |= {f"{STAGING}/test-image-tags:{tag}": shell(site, "tags") for tag in ("1", "2", "3")}
    found |= {f"{STAGING}/test-image-user-{name}:latest": shell(site, name, user) for name, user in USERS.items()}
    return found | {
        f"{STAGING}/test-image-predefined-group:latest": predefined_group(site),
        f"{STAGING}/hostnet-nginx-amd64:latest": nginx(site, "hostnet-nginx", HOST_PORT),
        f"{E2E}/busybox:1.29-2": shell(site, "busybox"),
        f"{E2E}/nginx:1.14-2": nginx(site, "nginx", 80),
        f"{E2E}/httpd:2.4.39-4": httpd(site),
        f"{E2E}/nonewprivs:1.3": labelled(site, validation.NEW_PRIVILEGES, "nonewprivs"),
        "pause:3.9": labelled(site, "pause:3.10.2", "pause"),
    }


def publish(site: registry_server.Site) -> None:
    for name, made in critest_images(site).items():
        site.publish(made, name)


def trust(site: registry_server.Site, certificates: Path) -> None:
    """A runtime gets critest's images from our registry."""
    runtimes.trust(site, certificates, names=PUBLIC)


def program(name: str) -> str:
    return str(registry_server.program("cri-tools", name))


def crictl_words(socket: Path) -> list[str]:
    """crictl and a configuration file for it, as operators have in /etc."""
    config = socket.with_name("crictl.yaml")
    config.write_text(f"runtime-endpoint: unix://{socket}\nimage-endpoint: unix://{socket}\ntimeout: 120\n")
    return [program("crictl"), "--config", str(config)]


def crictl(socket: Path, *arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    options: dict[str, object] = {"capture_output": True, "text": True, "timeout": 180, "stdin": subprocess.DEVNULL}
    return subprocess.run([*crictl_words(socket), *arguments], **(options | more))  # type: ignore[call-overload]


def critest(socket: Path, directory: Path, focus: str = "") -> list[Outcome]:
    """Runs critest and returns what became of each test."""
    report, tools = directory / "critest.json", directory / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "sudo").write_text('#!/bin/sh\nexec "$@"\n')       # critest loads AppArmor profiles with sudo; we are root
    (tools / "sudo").chmod(0o755)
    command = [program("critest"), f"-runtime-endpoint=unix://{socket}", f"-config={directory}/none", "-ginkgo.seed=1",
               f"-ginkgo.json-report={report}", "-ginkgo.no-color", *([f"-ginkgo.focus={focus}"] if focus else [])]
    report.unlink(missing_ok=True)
    with (directory / "critest.log").open("wb") as log:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=TIMEOUT, cwd=directory,
                       env={"PATH": f"{tools}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"})
    assert report.exists(), f"critest ended without a report:\n{(directory / 'critest.log').read_text(errors='replace')[-3000:]}"
    return outcomes(json.loads(report.read_text()))


def outcomes(report: list[dict[str, object]]) -> list[Outcome]:
    """Of ginkgo's report the tests that ran or said why not; benchmarks are another mode of critest."""
    found = []
    for spec in (spec for suite in report for spec in suite["SpecReports"]):  # type: ignore[attr-defined]
        words = [*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]]
        message = spec.get("Failure", {}).get("Message", "")
        if spec["LeafNodeType"] != "It" or (spec["State"] == "skipped" and not message):
            continue
        found.append(Outcome(" ".join(words).removeprefix("[k8s.io] "), spec["State"], " ".join(message.split())))
    return found

# SPDX-License-Identifier: Apache-2.0
"""The first start of nodens-cri on a host, by hand and without the directories that the package and systemd create."""
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodenstest import runtimes

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.fixture
def directory() -> Iterator[Path]:
    with runtimes.scratch() as path:
        path.chmod(0o755)
        yield path


def test_the_daemon_of_an_ordinary_user_says_that_it_must_be_root(directory: Path, messages: runtimes.Messages) -> None:
    runtime = runtimes.NodensCri(directory / "n", messages)
    command = runtime.command()
    Path(command[0]).parent.chmod(0o755)
    done = subprocess.run([*NOBODY, *command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "nodens-cri must be root; use sudo, or 'systemctl start nodens-cri'" in done.stderr


def test_the_directories_of_a_new_host_are_created(directory: Path, messages: runtimes.Messages) -> None:
    """As with the defaults: /var/lib/nodens does not exist, and the images are below it."""
    new = directory / "var-lib-nodens"
    runtime = runtimes.NodensCri(directory / "n", messages, store=new / "images", settings={"state": new})
    runtime.start().close()
    runtime.stop()
    assert (new / "images").is_dir() and new.stat().st_mode & 0o777 == 0o711


@pytest.mark.parametrize("key", ["state", "images"])
def test_a_path_whose_parent_is_missing_is_an_error_with_a_remedy(directory: Path, messages: runtimes.Messages, key: str) -> None:
    missing = directory / "not-mounted" / key
    runtime = runtimes.NodensCri(directory / "n", messages, settings={key: missing})
    done = subprocess.run(runtime.command(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert (f"make directory '{missing}': No such file or directory; create the directory above it, or set '{key}' in "
            "/etc/nodens/cri.yaml") in done.stderr
    assert not missing.parent.exists()

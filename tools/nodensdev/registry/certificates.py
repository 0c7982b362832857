# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for one run, and the registry's certificate from it. Keys live as long as the run's directory."""
import subprocess
from pathlib import Path

from ..command import Failure

DAYS = "30"


def openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"`openssl {arguments[0]}` failed (Debian package openssl):\n{done.stderr[-1000:]}")


def make_authority(directory: Path) -> None:
    """ca.key and ca.pem."""
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", DAYS, "-subj", "/CN=nodens test authority",
            "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature",
            "-keyout", str(directory / "ca.key"), "-out", str(directory / "ca.pem"))


def issue(directory: Path, name: str, hosts: list[str], addresses: list[str]) -> None:
    """NAME.key and NAME.pem, signed by the authority in the same directory."""
    request, extensions = directory / f"{name}.csr", directory / f"{name}.ext"
    names = [f"DNS:{host}" for host in hosts] + [f"IP:{address}" for address in addresses]
    extensions.write_text(f"subjectAltName={','.join(names)}\nextendedKeyUsage=serverAuth\n")
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={hosts[0]}",
            "-keyout", str(directory / f"{name}.key"), "-out", str(request))
    openssl("x509", "-req", "-days", DAYS, "-in", str(request), "-CA", str(directory / "ca.pem"),
            "-CAkey", str(directory / "ca.key"), "-CAcreateserial", "-extfile", str(extensions),
            "-out", str(directory / f"{name}.pem"))

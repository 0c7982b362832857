#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A compromised nodens-fetch, started by nodens-cri.

It can write to blobs/ (descriptor 4) and partial/ (6), send messages to the unpacker (3) and lines
to the daemon (1). The name of the requested image selects the attack. plan.json beside its link
names victims.
"""
import hashlib
import io
import json
import os
import socket
import struct
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

LOOK, UNPACK, PLACE, CANCEL, FINISH = 1, 2, 3, 4, 5
JOB = struct.Struct("<IIIIQQ32s1024s")
ANSWER = struct.Struct("<IIiiIIQQQ32s1024s")
PLAIN = 1       # enum nd_oci_compression


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def archive(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name.replace("_", "/"))
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


class Fetcher:
    def __init__(self) -> None:
        self.request = json.loads(sys.stdin.read())
        self.what = self.request["reference"].split("/")[1].split(":")[0]
        self.plan = json.loads((Path(sys.argv[0]).parent / "plan.json").read_text())
        self.blobs = "/proc/self/fd/4"
        self.channel = socket.socket(fileno=3)
        self.receive()      # the unpacker is ready

    def receive(self) -> tuple[Any, ...]:
        return ANSWER.unpack(self.channel.recv(8192))

    def send(self, kind: int, job: int = 0, compression: int = 0, parent: str | None = None, size: int = 0, ceiling: int = 1 << 30,
             file: bytes = b"", fds: tuple[int, ...] = ()) -> None:
        message = JOB.pack(kind, job, compression, parent is not None, size, ceiling, bytes.fromhex(parent or ""), file)
        socket.send_fds(self.channel, [message], list(fds))

    def ask(self, *arguments: Any, **more: Any) -> tuple[int, str, str]:
        """Returns code, digest and text of a reply."""
        self.send(*arguments, **more)
        answer = self.receive()
        return answer[2], answer[9].hex(), answer[10].split(b"\0")[0].decode()

    def unpack(self, job: int, data: bytes, parent: str | None = None, file: bytes = b"") -> tuple[int, str, str]:
        Path(f"{self.blobs}/data-{job}").write_bytes(data)
        blob, counter = os.open(f"{self.blobs}/data-{job}", os.O_RDONLY), os.eventfd(len(data))
        return self.ask(UNPACK, job, PLAIN, parent, len(data), file=file, fds=(blob, counter))

    def offer(self, *diff_ids: str) -> None:
        """Offers an image whose config lists these diff IDs."""
        config = json.dumps({"architecture": "amd64", "os": "linux", "config": {},
                             "rootfs": {"type": "layers", "diff_ids": [f"sha256:{one}" for one in diff_ids]}})
        layers = [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{one}", "size": 1024} for one in diff_ids]
        manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": layers, "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json", "digest": "sha256:" + sha(config.encode()), "size": len(config)}})
        for text in (config, manifest):
            Path(self.blobs, sha(text.encode())).write_text(text)
        self.line(event="done", images=[{"manifestDigest": "sha256:" + sha(manifest.encode()),
                                         "configDigest": "sha256:" + sha(config.encode()), "names": []}])

    def line(self, **event: Any) -> None:
        print(json.dumps(event), flush=True)

    # ---- attacks

    def plant(self) -> None:
        """Plants trees under the victim's chain in all writable places."""
        for top in ("layers", "unpack/layers"):
            tree = Path(self.blobs, top, self.plan["victim"], "fs/etc")
            tree.mkdir(parents=True, exist_ok=True)
            (tree / "passwd").write_text("PLANTED")
            (tree.parents[1] / "layer.json").write_text(json.dumps({"diffId": "sha256:" + self.plan["victim"], "parent": "", "size": 1,
                                                                    "inodes": 1}))
        self.send(FINISH)
        self.offer(self.plan["victim"])

    def say(self) -> None:
        """Forges an event of the unpacker."""
        self.line(event="unpacked", chain="sha256:" + self.plan["victim"], diffId="sha256:" + self.plan["victim"], parent="", size=1,
                  inodes=1)
        self.send(FINISH)
        self.offer(self.plan["victim"])

    def exchange(self) -> None:
        """Sends another archive than the one with the diff ID in the config."""
        code, digest, text = self.unpack(1, archive(etc_passwd=b"PLANTED"))
        assert code == 0, text
        assert self.ask(PLACE, 1)[0] == 0
        self.send(FINISH)
        self.offer(self.plan["victim"])

    def rebase(self) -> None:
        """Places a layer on a missing parent, and a layer twice."""
        code, digest, text = self.unpack(1, archive(a=b"x"), parent="77" * 32)
        assert code == 0, text
        placed, _, text = self.ask(PLACE, 1)
        assert placed != 0 and "does not exist" in text, text
        again = self.ask(PLACE, 1)
        assert again[0] != 0, again
        self.send(FINISH)
        self.offer(digest)

    def unsynced(self) -> None:
        """Places a layer without a sync."""
        data = archive(a=b"x")
        assert self.unpack(1, data)[0] == 0 and self.ask(PLACE, 1)[0] == 0
        self.offer(sha(data))

    def linger(self) -> None:
        """Leaves a process that keeps the channel open after the fetcher's exit."""
        if os.fork() == 0:
            os.setsid()
            for stream in (0, 1, 2):
                os.close(stream)
            time.sleep(60)
            os._exit(0)
        self.offer(self.plan["victim"])

    def directory(self) -> None:
        """Passes wrong descriptors: a directory of its own, and a socket."""
        place = os.open(self.blobs, os.O_RDONLY | os.O_DIRECTORY)
        code, _, _ = self.ask(UNPACK, 1, PLAIN, None, 4096, fds=(place, os.eventfd(4096)))
        assert code != 0
        left, _ = socket.socketpair()
        code, _, _ = self.ask(UNPACK, 2, PLAIN, None, 4096, fds=(left.fileno(), os.eventfd(4096)))
        assert code != 0
        code, _, _ = self.ask(UNPACK, 3, PLAIN, None, 4096)
        assert code != 0
        self.send(FINISH)
        self.offer(self.plan["victim"])

    def swap(self) -> None:
        """Sends the victim's archive and replaces half of it while the unpacker reads."""
        honest, evil = bytes.fromhex(self.plan["archive"]), archive(etc_passwd=b"PLANTED PLANTED")
        path = Path(self.blobs, "data")
        path.write_bytes(honest)
        counter = os.eventfd(512)
        self.send(UNPACK, 1, PLAIN, None, len(honest), fds=(os.open(path, os.O_RDONLY), counter))
        with path.open("r+b") as file:
            file.seek(512)
            file.write(evil[512:len(honest)])
        os.eventfd_write(counter, len(honest) - 512)
        answer = self.receive()
        if answer[2] == 0:
            self.ask(PLACE, 1)
        self.send(FINISH)
        self.offer(self.plan["victim"])

    def offer_artifact(self, title: str, data: bytes) -> None:
        """Offers an artifact of one file."""
        empty = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": "sha256:" + sha(b"{}"), "size": 2}
        layer = {"mediaType": "text/plain", "digest": "sha256:" + sha(data), "size": len(data),
                 "annotations": {"org.opencontainers.image.title": title}}
        manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": "a/b",
                               "config": empty, "layers": [layer]})
        Path(self.blobs, sha(manifest.encode())).write_text(manifest)
        named = "sha256:" + sha(manifest.encode())
        self.line(event="done", images=[{"manifestDigest": named, "configDigest": named, "names": []}])

    def retitle(self) -> None:
        """Has a file made under another path than the one in the manifest."""
        code, _, text = self.unpack(1, b"data", file=b"etc/passwd")
        assert code == 0, text
        assert self.ask(PLACE, 1)[0] == 0
        self.send(FINISH)
        self.offer_artifact("model", b"data")

    def recontent(self) -> None:
        """Has a file made with other content than the one in the manifest."""
        code, _, text = self.unpack(1, b"PLANTED", file=b"model")
        assert code == 0, text
        assert self.ask(PLACE, 1)[0] == 0
        self.send(FINISH)
        self.offer_artifact("model", b"data")

    def archived(self) -> None:
        """Has an archive unpacked whose bytes are what the diff ID of a file hashes."""
        text = f"file of an artifact\nsha256:{sha(b'data')}\nsha256:{sha(b'model')}\n".encode()
        for data in (text, text.ljust(512, b"\0"), text.ljust(1024, b"\0")):
            code, _, words = self.unpack(len(data), data)
            assert code != 0, words
        self.send(FINISH)
        self.offer_artifact("model", b"data")

    def climb(self) -> None:
        """Sends paths that are not below the tree, or no text."""
        for job, path in enumerate((b"../x", b"/etc/passwd", b"a/../../b", b".", b"a//b", b".wh.x", b"a\nb", b"x" * 1024, b"\xff" * 1024)):
            code, _, _ = self.unpack(job, b"data", file=path)
            assert code != 0, path
        self.send(FINISH)
        self.offer(self.plan["victim"])

    def double(self) -> None:
        """Offers the artifact as an image with the same manifest."""
        assert self.unpack(1, b"data", file=b"model")[0] == 0 and self.ask(PLACE, 1)[0] == 0
        self.send(FINISH)
        Path(self.blobs, sha(b"{}")).write_text("{}")
        empty = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": "sha256:" + sha(b"{}"), "size": 2}
        manifest = json.dumps({"schemaVersion": 2, "artifactType": "a/b", "config": empty, "layers": []})
        Path(self.blobs, sha(manifest.encode())).write_text(manifest)
        self.line(event="done", images=[{"manifestDigest": "sha256:" + sha(manifest.encode()), "configDigest": "sha256:" + sha(b"{}"),
                                         "names": []}])

    def nonsense(self) -> None:
        """Sends invalid messages."""
        self.channel.send(b"x" * 7)
        self.offer(self.plan["victim"])

    def flood(self) -> None:
        """Starts more jobs than allowed; none of them gets any data."""
        Path(self.blobs, "data").write_bytes(b"")
        blob = os.open(f"{self.blobs}/data", os.O_RDONLY)
        for job in range(40):
            self.send(UNPACK, job, PLAIN, None, 4096, fds=(blob, os.eventfd(0)))
        refused = [self.receive() for _ in range(24)]
        assert all(answer[2] != 0 for answer in refused), refused
        self.send(FINISH)       # while sixteen of them still wait
        self.offer(self.plan["victim"])


if __name__ == "__main__":
    fetcher = Fetcher()
    getattr(fetcher, fetcher.what)()

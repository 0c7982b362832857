#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A fully compromised nodens-unpack, its supervisor included.

Its events are trusted, but the store accepts only directories, and only those that it sees.
plan.json beside its link names the replacement of layers/<chain>.
"""
import json
import os
import socket
import sys
from pathlib import Path

plan = json.loads((Path(sys.argv[0]).parent / "plan.json").read_text())
layers = Path("/proc/self/fd/4/layers")
layers.mkdir()
chain, elsewhere = plan["chain"], Path(plan["elsewhere"])
file = json.dumps({"diffId": "sha256:" + chain, "parent": "", "size": 1, "inodes": 1}) + "\n"
if plan["trick"] == "link":                  # the directory is a link to one outside
    (elsewhere / "fs").mkdir(parents=True)
    (elsewhere / "layer.json").write_text(file)
    (layers / chain).symlink_to(elsewhere)
elif plan["trick"] == "tree":                # its tree is a link
    (layers / chain).mkdir()
    (layers / chain / "layer.json").write_text(file)
    (layers / chain / "fs").symlink_to("/")
elif plan["trick"] == "file":                # its description is a link to a file of the host
    (layers / chain / "fs").mkdir(parents=True)
    elsewhere.write_text(file)
    (layers / chain / "layer.json").symlink_to(elsewhere)
elif plan["trick"] == "fifo":                # its description never ends
    (layers / chain / "fs").mkdir(parents=True)
    os.mkfifo(layers / chain / "layer.json")
channel = socket.socket(fileno=3)
channel.send(bytes(1104))                    # ready
while channel.recv(4096):
    pass
print(json.dumps({"event": "unpacked", "chain": "sha256:" + chain, "diffId": "sha256:" + chain, "parent": "", "size": 1, "inodes": 1}))
print(json.dumps({"event": "synced"}), flush=True)

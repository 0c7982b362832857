# SPDX-License-Identifier: Apache-2.0
"""A FUSE filesystem with one file: fuse_file.py DIRECTORY TEXT mounts it, serves it and never ends.

It speaks the kernel's protocol itself, so that a pod needs nothing but Python, /dev/fuse and CAP_SYS_ADMIN in its user namespace.
"""
import ctypes
import errno
import os
import struct
import sys

LOOKUP, GETATTR, OPEN, READ, INIT, OPENDIR, FORGET, BATCH_FORGET = 1, 3, 14, 15, 26, 27, 2, 42
EMPTY = (18, 25, 29, 34)        # RELEASE, FLUSH, RELEASEDIR, ACCESS: success without data
ROOT, FILE, NAME = 1, 2, b"greeting"


def attributes(node: int, text: bytes) -> bytes:
    mode, size = (0o040755, 0) if node == ROOT else (0o100444, len(text))
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode: int, node: int, body: bytes, text: bytes) -> bytes | int:
    if opcode == INIT:
        return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 12, 10, 65536, 1, 0, 0, 0)
    if opcode == LOOKUP:
        if body.rstrip(b"\0") != NAME:
            return -errno.ENOENT
        return struct.pack("<QQQQII", FILE, 0, 1, 1, 0, 0) + attributes(FILE, text)
    if opcode == GETATTR:
        return struct.pack("<QII", 1, 0, 0) + attributes(node, text)
    if opcode in (OPEN, OPENDIR):
        return struct.pack("<QII", 0, 0, 0)
    if opcode == READ:
        offset, size = struct.unpack_from("<QI", body, 8)
        return text[offset:offset + size]
    return b"" if opcode in EMPTY else -errno.ENOSYS


def main(directory: str, text: bytes) -> None:
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"greeting", directory.encode(), b"fuse", 6, options.encode()) != 0:     # nosuid, nodev
        raise OSError(ctypes.get_errno(), f"mount a FUSE filesystem at {directory}")
    print("mounted", flush=True)
    while True:
        request = os.read(device, 1 << 20)
        _length, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        if opcode in (FORGET, BATCH_FORGET):
            continue
        found = answer(opcode, node, request[40:], text)
        error, data = (found, b"") if isinstance(found, int) else (0, found)
        os.write(device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2].encode())

# SPDX-License-Identifier: Apache-2.0
"""A device plugin that offers a device four times, run on the node: device_plugin.py RESOURCE [NAME|PERMISSIONS [DEVICE]].

With NAME, which has a '=', it answers with this CDI device instead; PERMISSIONS of the device are rw otherwise. DEVICE is /dev/fuse
unless another one is given.

The kubelet's device plugin API (v1beta1) has four small messages here, which are written by hand: a program without generated code.
"""
import sys
import time
from concurrent import futures
from pathlib import Path

import grpc

DIRECTORY = "/var/lib/kubelet/device-plugins"
SOCKET = f"{DIRECTORY}/story-device.sock"
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "/dev/fuse"
ANSWER = sys.argv[2] if len(sys.argv) > 2 else "rw"


def field(number: int, data: bytes | str) -> bytes:
    """A field of a message: text, or another message. Nothing here is longer than one byte's length."""
    data = data.encode() if isinstance(data, str) else data
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def list_and_watch(_request: bytes, context: grpc.ServicerContext):
    yield b"".join(field(1, field(1, f"device-{number}") + field(2, "Healthy")) for number in range(4))
    while context.is_active():
        time.sleep(1)


def allocate(request: bytes, _context: grpc.ServicerContext) -> bytes:
    """One answer per container of the request, which is a list of them and nothing else."""
    answer, at = b"", 0
    while at < len(request):
        device = field(3, field(1, DEVICE) + field(2, DEVICE) + field(3, ANSWER))
        answer += field(1, field(5, field(1, ANSWER)) if "=" in ANSWER else device)
        at += 2 + request[at + 1]
    return answer


def main() -> None:
    Path(SOCKET).unlink(missing_ok=True)
    handlers = {"GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(lambda _request, _context: b""),
                "ListAndWatch": grpc.unary_stream_rpc_method_handler(list_and_watch),
                "Allocate": grpc.unary_unary_rpc_method_handler(allocate)}
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers),))
    server.add_insecure_port(f"unix://{SOCKET}")
    server.start()
    with grpc.insecure_channel(f"unix://{DIRECTORY}/kubelet.sock") as channel:
        register = channel.unary_unary("/v1beta1.Registration/Register")
        register(field(1, "v1beta1") + field(2, Path(SOCKET).name) + field(3, sys.argv[1]))
    server.wait_for_termination()


main()

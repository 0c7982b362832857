# SPDX-License-Identifier: Apache-2.0
"""A Service for guards without nodes: `balancer.py PORT BACKEND ...` connects each client to a backend that is ready.

As in a cluster, a backend is withdrawn some time after its /readyz has failed, and open connections stay where they are.
"""
import asyncio
import contextlib
import itertools
import ssl
import sys
import urllib.request

PERIOD = 1.0  # of the readiness probe, in seconds


def is_ready(port: int) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", timeout=5,
                                                              context=ssl._create_unverified_context()):
        return True
    return False


async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    sink.close()


class Balancer:
    """The backends, which of them are ready, and whose turn it is."""

    def __init__(self, backends: list[int]) -> None:
        self.backends, self.ready = backends, list[int]()
        self.turns = itertools.count()

    async def probe(self) -> None:
        while True:
            self.ready = [port for port in self.backends if await asyncio.to_thread(is_ready, port)]
            await asyncio.sleep(PERIOD)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            ready = self.ready
            behind = await asyncio.open_connection("127.0.0.1", ready[next(self.turns) % len(ready)]) if ready else None
            if behind:
                await asyncio.gather(copy(reader, behind[1]), copy(behind[0], writer))
        writer.close()

    async def run(self, port: int) -> None:
        server = await asyncio.start_server(self.serve, "127.0.0.1", port)
        await asyncio.gather(server.serve_forever(), self.probe())


if __name__ == "__main__":
    asyncio.run(Balancer([int(one) for one in sys.argv[2:]]).run(int(sys.argv[1])))

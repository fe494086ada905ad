"""A link to a server on loopback: a latency, and one bandwidth for all that it answers.

python -m benchmarks.far_link HOST:PORT LATENCY BYTES_A_SECOND

It relays TCP, so that the server may be any; a new connection waits for one more latency, as its
handshake would. Its first line is its port. `/stats` says how many requests went through, and how
many bytes of answers, since it was asked last.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

_PIECE = 1 << 18


class _Link:
    """The wire that all answers share."""

    def __init__(self, latency: float, bandwidth: float) -> None:
        self.latency = latency
        self._bandwidth = bandwidth
        self._free = 0.0
        self._bytes = self.requests = 0

    def seconds(self, size: int) -> float:
        """How long to wait until so many bytes more have gone through."""
        self._bytes += size
        now = time.monotonic()
        self._free = max(self._free, now) + size / self._bandwidth
        return self._free - now

    def stats(self) -> bytes:
        """What `/stats` answers."""
        found = {"bytes": self._bytes, "requests": self.requests}
        self._bytes = self.requests = 0
        return json.dumps(found).encode()


async def _relay(link: _Link, host: str, port: int) -> asyncio.Server:
    async def connected(near: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        data = await near.read(_PIECE)
        if data.startswith(b"GET /stats "):
            body = link.stats()
            answers.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            answers.close()
            return
        await asyncio.sleep(link.latency)
        far, requests = await asyncio.open_connection(host, port, limit=_PIECE)
        answering = asyncio.create_task(_answer(link, far, answers))
        later = asyncio.get_running_loop().call_later
        while data:
            link.requests += data.startswith((b"GET ", b"HEAD ", b"PUT ", b"POST "))
            later(link.latency, requests.write, data)
            data = await near.read(_PIECE)
        answering.cancel()
        requests.close()

    return await asyncio.start_server(connected, "127.0.0.1", 0, limit=_PIECE, backlog=128)


async def _answer(link: _Link, far: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
    while data := await far.read(_PIECE):
        await asyncio.sleep(link.seconds(len(data)))
        answers.write(data)
        await answers.drain()
    answers.close()


async def _main(address: str, latency: str, bandwidth: str) -> None:
    host, _, port = address.rpartition(":")
    server = await _relay(_Link(float(latency), float(bandwidth)), host, int(port))
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))

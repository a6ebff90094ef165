"""A slow line between a machine and a service: every byte comes late, and not many a second. Standard library only.

python slow_line.py LISTEN_PORT HOST PORT DELAY_S BYTES_PER_S SWITCH

The line is slow while the file SWITCH exists.
"""

import asyncio
import sys
import time
from pathlib import Path


async def pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, delay_s: float, rate: float, switch: Path
) -> None:
    """Carry one direction; order is kept, many pieces may be on their way at once."""
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, piece = await waiting.get()
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if not piece:
                sink.close()
                return
            sink.write(piece)
            await sink.drain()

    delivering = asyncio.create_task(deliver())
    while piece := await source.read(4096):
        slow = switch.exists()
        waiting.put_nowait((time.monotonic() + delay_s * slow, piece))
        await asyncio.sleep(len(piece) / rate * slow)
    waiting.put_nowait((time.monotonic() + delay_s, b""))
    await delivering


async def main(listen: int, host: str, port: int, delay_s: float, rate: float, switch: Path) -> None:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, port)
        await asyncio.gather(
            pump(reader, back, delay_s, rate, switch),
            pump(there, writer, delay_s, rate, switch),
            return_exceptions=True,
        )

    server = await asyncio.start_server(carry, "127.0.0.1", listen)
    await server.serve_forever()


if __name__ == "__main__":
    listen, host, port, delay_s, rate, switch = sys.argv[1:]
    asyncio.run(main(int(listen), host, int(port), float(delay_s), float(rate), Path(switch)))

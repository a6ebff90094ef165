"""A slow line between a machine and a service: every byte comes late, and not many a second. Standard library only.

python slow_line.py LISTEN_PORT HOST PORT DELAY_S BYTES_PER_S
"""

import asyncio
import sys
import time


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, delay_s: float, rate: float) -> None:
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
        waiting.put_nowait((time.monotonic() + delay_s, piece))
        await asyncio.sleep(len(piece) / rate)
    waiting.put_nowait((time.monotonic() + delay_s, b""))
    await delivering


async def main(listen: int, host: str, port: int, delay_s: float, rate: float) -> None:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, port)
        await asyncio.gather(
            pump(reader, back, delay_s, rate), pump(there, writer, delay_s, rate), return_exceptions=True
        )

    server = await asyncio.start_server(carry, "127.0.0.1", listen)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])))

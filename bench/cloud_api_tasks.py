"""Separate processes of `bench.cloud_api`: the clients, and the empty handler that is the baseline."""

import asyncio
import json
import sys
import time
from typing import Final

CONNECTIONS: Final = 8
REQUESTS: Final = 400  # on each connection
WARM: Final = 100


def load(port: int, path: str, key: str) -> None:
    """Send requests on a few connections, one at a time on each, and print how long it took."""
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode()

    async def ask(times: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(times):
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert head.startswith(b"http/1.1 200"), head
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length))
        writer.close()

    async def all_of_them() -> float:
        await ask(WARM)
        began = time.perf_counter()
        await asyncio.gather(*(ask(REQUESTS) for _ in range(CONNECTIONS)))
        return time.perf_counter() - began

    import uvloop

    seconds = uvloop.run(all_of_them())
    requests = CONNECTIONS * REQUESTS
    print(json.dumps({"requests": requests, "sent": requests + WARM, "seconds": seconds}))


def bare(port: int) -> None:
    import uvicorn
    from litestar import Litestar, get

    @get(["/", "/v1/health"], media_type="application/json", sync_to_thread=False)
    def nothing() -> bytes:
        return b"{}"

    app = Litestar([nothing], openapi_config=None, logging_config=None)
    uvicorn.run(app, port=port, log_level="warning", access_log=False, loop="uvloop", http="httptools")


if __name__ == "__main__":
    if sys.argv[1] == "bare":
        bare(int(sys.argv[2]))
    else:
        load(int(sys.argv[2]), sys.argv[3], sys.argv[4])

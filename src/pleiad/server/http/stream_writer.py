"""Answers that are made while they are sent: chunk by chunk, at the pace of the client."""

from __future__ import annotations

import asyncio
import contextlib

from pleiad.server.connections import ConnectionTable
from pleiad.server.http.message import KEEP_LINE_CLOSE, Request, StreamedResponse
from pleiad.server.http.request_reader import RequestReader
from pleiad.server.http.status_lines import StatusLines


class StreamWriter(RequestReader):
    """The streamed answers of a connection, above its reading half."""

    __slots__ = ("_is_stream_begun", "_lines")

    def __init__(self, table: ConnectionTable, secure: bool, lines: StatusLines) -> None:
        super().__init__(table, secure)
        self._lines = lines
        self._is_stream_begun = False

    async def _stream(self, request: Request, response: StreamedResponse) -> bool:
        """Send an answer while it is made; whether the connection is to be kept after it.

        Raises what its source raises, and TimeoutError when it is late; `_is_stream_begun` tells then whether the
        head is out.
        """
        self._is_stream_begun = False
        async with contextlib.aclosing(response.chunks) as chunks, asyncio.timeout(response.seconds):
            first = b"" if request.method == "HEAD" else await anext(chunks, b"")
            is_kept = request.keep_line is not KEEP_LINE_CLOSE and not request.is_http_1_0
            self._begin_stream(request, response, is_kept)
            if request.method == "HEAD":
                return is_kept
            await self._write_chunk(first, request.is_http_1_0)
            async for chunk in chunks:
                await self._write_chunk(chunk, request.is_http_1_0)
        if not request.is_http_1_0:
            self._write(b"0\r\n\r\n")
        return is_kept

    def _begin_stream(self, request: Request, response: StreamedResponse, is_kept: bool) -> None:
        lines = self._lines.made.get(response.status) or self._lines.make(response.status)
        coding = b"" if request.is_http_1_0 else b"Transfer-Encoding: chunked\r\n"
        keep_line = request.keep_line if is_kept else KEEP_LINE_CLOSE
        self._is_stream_begun = True
        self.send()  # the answers before this one
        self._write(b"%b%b%b%b\r\n" % (lines, coding, response.headers, keep_line))

    async def _write_chunk(self, chunk: bytes, is_plain: bool) -> None:
        if chunk:  # an empty one would be taken for the end
            self._write(chunk if is_plain else b"%x\r\n%b\r\n" % (len(chunk), chunk))
        if self._write_paused:
            await self._client_reads()
        else:
            await asyncio.sleep(0)  # others have their turn, whether or not the source ever waits

"""A server that speaks MongoDB's wire protocol: its collections are empty, and it takes every write
and forgets it.

Replies are those of a single MongoDB 8.0; what it does not know it refuses as a real one does.
"""

import asyncio
import contextlib
import struct
from typing import Any

from bson import decode, encode

from tests.stand_ins.server import StandIn

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013
HEADER = struct.Struct("<iiii")
HELLO = {
    "helloOk": True,
    "ismaster": True,
    "isWritablePrimary": True,
    "maxBsonObjectSize": 16 << 20,
    "maxMessageSizeBytes": 48_000_000,
    "maxWriteBatchSize": 100_000,
    "minWireVersion": 0,
    "maxWireVersion": 25,
}
EMPTY = {"cursor": {"id": 0, "ns": "codeinfo.any", "firstBatch": []}}
REPLIES: dict[str, dict[str, Any]] = {
    "hello": HELLO,
    "ismaster": HELLO,
    "ping": {},
    "buildinfo": {"version": "8.0.0", "versionArray": [8, 0, 0, 0]},
    "aggregate": EMPTY,
    "listcollections": EMPTY,
    "insert": {"n": 1},
    "update": {"n": 0, "nModified": 0},
    "delete": {"n": 0},
}


class MongoStandIn(StandIn):
    """`commands`: the names of those that came."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[str] = []

    @property
    def url(self) -> str:
        return f"mongodb://{self.address}/codeinfo"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Drivers keep their connections open, so the end comes here.
        with contextlib.suppress(asyncio.CancelledError):
            await self.converse(reader, writer)

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            length, id, _, opcode = HEADER.unpack(await reader.readexactly(HEADER.size))
            body = await reader.readexactly(length - HEADER.size)
            if opcode == OP_QUERY:
                # flags, the name of a collection, two numbers, a document
                document = body[body.index(b"\0", 4) + 9 :]
                frame = struct.pack("<iqii", 8, 0, 0, 1)
            else:
                # flags, the kind of a section, a document
                document = body[5:]
                frame = struct.pack("<ib", 0, 0)
            (size,) = struct.unpack_from("<i", document)
            frame += encode(self.reply(decode(document[:size])))
            kind = OP_REPLY if opcode == OP_QUERY else OP_MSG
            writer.write(HEADER.pack(HEADER.size + len(frame), 0, id, kind) + frame)
            await writer.drain()

    def reply(self, command: dict[str, Any]) -> dict[str, Any]:
        name = next(iter(command)).lower()
        self.commands.append(name)
        if name not in REPLIES:
            return {"ok": 0, "code": 59, "errmsg": f"no such command: '{name}'"}
        return {**REPLIES[name], "ok": 1}

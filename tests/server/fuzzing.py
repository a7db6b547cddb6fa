"""Messages as a client might send them that is broken, confused or wicked: by the grammar, and then spoiled."""

import struct
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from tests.support.wire import FLUSH, SYNC, bind, describe, execute, message, parse, query

T = TypeVar("T")

TEXTS = (
    *("select 1", "select $1", "select $1::int + $2::int", "select * from own", "select * from guarded", ""),
    *("insert into own values ($1, $2)", "update own set word = $2 where id = $1", "delete from own where id = $1"),
    *("begin", "commit", "rollback", "savepoint s", "rollback to s", "release s", "end; begin; select 1"),
    *("copy own from stdin", "copy own to stdout", "copy own from stdin binary", "copy own to stdout binary"),
    *("declare c cursor for select 1", "fetch 3 from c", "close c", "prepare p as select $1", "execute p(1)"),
    *("set statement_timeout = '5s'", "show all", "select pg_advisory_lock(1)", "select 1/0", "selec", "(((((("),
    *(
        "create temporary table t (id int)",
        "drop table if exists t",
        "deallocate all",
        "discard all",
        "explain select 1",
    ),
    *("select repeat('x', 100000)", "select x from generate_series(1, 2000) s(x)", "select '\\x00'::bytea", ";;;"),
)
NAMES = ("", "", "a", "b", "ünï", "\x01", "x" * 200)
OIDS = (0, 16, 20, 21, 23, 25, 114, 700, 701, 1043, 1082, 1184, 1186, 1700, 2950, 3802, 1007, 4_000_000_000)
VALUES = (None, b"", b"1", b"-1", b"abc", b"\0", b"\0\0\0\1", b"\0" * 8, b"\xff" * 16, b"{1,2}", b"\x01{}", b"\xff\xfe")
LENGTHS = (-(2**31), -1, 0, 3, 4, 5, 100, 65_536, 2**31 - 1)


class Fuzzer:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._makers = (
            *[self._whole] * 10,
            *(self._parse, self._parse, self._bind, self._bind, self._bind),
            *(self._describe, self._execute, self._execute, self._close, self._query, self._query, self._copy),
            *(self._sync, self._sync, self._flush, self._function_call, self._nonsense),
        )

    def conversation(self, count: int) -> bytes:
        """So many messages; now and then one is spoiled, and with it what follows."""
        data = bytearray()
        for _ in range(count):
            made = self._random.choice(self._makers)()
            data += self._spoil(made) if self._random.random() < 0.03 else made
        if self._random.random() < 0.1:
            # In the middle of a message.
            del data[self._random.randrange(len(data)) :]
        return bytes(data)

    def _whole(self) -> bytes:
        """What a sound client sends for one statement."""
        text = self._pick(TEXTS)
        values = [self._pick((b"1", b"2", None)) for _ in range(text.count("$"))]
        told = describe() if self._random.random() < 0.5 else b""
        return parse(text) + bind(values) + told + execute() + (SYNC if self._random.random() < 0.8 else FLUSH)

    def _pick(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)

    def _parse(self) -> bytes:
        return parse(self._text(), self._pick(NAMES), [self._pick(OIDS) for _ in range(self._random.randrange(4))])

    def _text(self) -> str:
        text = self._pick(TEXTS)
        if self._random.random() < 0.2:
            place = self._random.randrange(len(text) + 1)
            text = text[:place] + chr(self._random.randrange(1, 0x2FF)) + text[place:]
        return text

    def _bind(self) -> bytes:
        formats = [self._pick((0, 1, 1, 2)) for _ in range(self._random.randrange(4))]
        values = [self._pick(VALUES) for _ in range(self._random.randrange(4))]
        body = f"{self._pick(NAMES)}\0{self._pick(NAMES)}\0".encode() + struct.pack(
            f">h{len(formats)}h", len(formats), *formats
        )
        body += struct.pack(">h", len(values))
        for value in values:
            body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
        results = [self._pick((0, 1)) for _ in range(self._random.randrange(3))]
        return message(b"B", body + struct.pack(f">h{len(results)}h", len(results), *results))

    def _describe(self) -> bytes:
        return describe(self._pick("SPSPX"), self._pick(NAMES))

    def _execute(self) -> bytes:
        return execute(self._pick(NAMES), self._pick((0, 0, 1, 5, -1, 2**31 - 1)))

    def _close(self) -> bytes:
        return message(b"C", f"{self._pick('SP')}{self._pick(NAMES)}\0".encode())

    def _query(self) -> bytes:
        return query(self._text())

    def _copy(self) -> bytes:
        return self._pick(
            (message(b"d", b"1\tx\n"), message(b"d", b"PGCOPY\n\xff\r\n\0"), message(b"c"), message(b"f", b"no\0"))
        )

    def _sync(self) -> bytes:
        return SYNC

    def _flush(self) -> bytes:
        return FLUSH

    def _function_call(self) -> bytes:
        return message(b"F", struct.pack(">ihhh", 1598, 0, 0, 0))

    def _nonsense(self) -> bytes:
        return message(bytes([self._random.randrange(256)]), self._random.randbytes(self._random.randrange(30)))

    def _spoil(self, data: bytes) -> bytes:
        spoiled = bytearray(data)
        if self._random.random() < 0.5:
            spoiled[1:5] = struct.pack(">i", self._pick(LENGTHS))
        else:
            spoiled[self._random.randrange(len(spoiled))] ^= 1 << self._random.randrange(8)
        return bytes(spoiled)

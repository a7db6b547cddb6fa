"""The randomness port."""

from __future__ import annotations

import os
from typing import Protocol


class Entropy(Protocol):
    def token(self, size_bytes: int) -> bytes: ...


class SystemEntropy:
    def token(self, size_bytes: int) -> bytes:
        return os.urandom(size_bytes)


SYSTEM_ENTROPY = SystemEntropy()

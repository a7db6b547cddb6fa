"""A process of a benchmark that may not answer."""

import threading

from bench.peers.protocol import Answer, serve


class Slow:
    def quick(self) -> Answer:
        return {"text": "x" * 100_000}

    def never(self) -> Answer:
        threading.Event().wait()
        return {}

    def fail(self) -> Answer:
        raise LookupError("nothing here")


if __name__ == "__main__":
    serve(Slow())

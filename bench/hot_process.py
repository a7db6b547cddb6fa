"""A node with clients on hot rows, in a process of its own: started and stopped together with other such processes."""

import threading
from collections import Counter
from pathlib import Path

from bench.hot_rows import Client
from bench.peers.protocol import Answer, serve


class Process:
    def open(self, folder: str, first: int, sessions: int) -> Answer:
        """Clients are numbered from `first` on; each has its own sequence of transactions."""
        self.until = threading.Event()
        self.clients = [Client(Path(folder), first + n, True, self.until) for n in range(sessions)]
        for client in self.clients:
            client.connect()
        return {}

    def start(self) -> Answer:
        for client in self.clients:
            client.start()
        return {}

    def stop(self) -> Answer:
        """The number of transactions, and the errors that clients saw, by SQLSTATE."""
        self.until.set()
        for client in self.clients:
            client.join()
        seen = sum((client.seen for client in self.clients), Counter[str]())
        return {"transactions": sum(client.transactions for client in self.clients), "seen": dict(seen)}


if __name__ == "__main__":
    serve(Process())

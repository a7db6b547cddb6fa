"""Ends the epochs of nodes that are gone, with all that they hold: locks, write marks, jobs, intents."""

from __future__ import annotations

from seachange.catalog.port import Catalog
from seachange.runtime.process import is_gone


def end_dead_nodes(catalog: Catalog) -> None:
    """A node is gone when its epoch has expired, or at once if its process is known to have ended."""
    catalog.expire_nodes()
    for node in catalog.nodes():
        if node.live and is_gone(node.process):
            catalog.end_node(node.epoch)

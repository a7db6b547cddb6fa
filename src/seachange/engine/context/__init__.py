"""State of a node or session that needs no other part of the engine: interrupts, meters, sequences."""

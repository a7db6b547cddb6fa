"""Proofs of consistency: of real data, and later of the protocol."""

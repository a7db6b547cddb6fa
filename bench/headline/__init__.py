"""The same schema changes under the same traffic on several systems; standard library only at this level."""

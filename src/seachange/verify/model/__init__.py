"""The model checker: schema changes as the planner emits them, in all interleavings with transactions, at a small
scale.

**Invariant:** the models copy no table. What a state allows a writer to do comes from `BEHAVIOUR`, what a job does from
the planner's stages; a model adds only the data.
"""

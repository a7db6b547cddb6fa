"""The model checker: schema changes as the planner emits them, in all interleavings with transactions, in small.

**Invariant:** the models copy no table. What a state lets a writer do comes from `BEHAVIOUR`, what a job does from the
planner's stages; a model adds only what data is.
"""

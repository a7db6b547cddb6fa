"""Runs the stages of a plan: jobs, their runner, drains and reverts."""

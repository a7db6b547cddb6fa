"""What has to happen before what, and why, as tables."""

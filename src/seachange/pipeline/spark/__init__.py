"""The crew on Spark. Only `pipeline/halves.py` imports it, so that PySpark is loaded if it is used."""

"""The Spark executor. Only `pipeline/spark_backend.py` imports it, so that PySpark is loaded only if it is used."""

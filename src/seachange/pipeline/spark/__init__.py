"""The crew on Spark. Only `pipeline/spark_backend.py` imports it, so that PySpark is loaded if it is used."""

"""A class that the properties of an Iceberg table name: importing or creating it leaves a mark."""

from pathlib import Path

from pyiceberg.io.pyarrow import PyArrowFileIO


class ChosenFileIO(PyArrowFileIO):
    def __init__(self, properties: dict[str, str]) -> None:
        Path(properties["mark"]).touch()
        super().__init__(properties)

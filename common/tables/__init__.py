"""Files of rows, read in parts: the one reader for nodes, commands and releases alike."""

from common.tables.reader import TableReader
from common.tables.table_file import TableFile, read_table

__all__ = ["TableFile", "TableReader", "read_table"]

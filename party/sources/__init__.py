"""Where a party's rows are: files and databases, read in chunks, pinned for the whole study.

Raw values stay in this package. What leaves it are codes, to the counting kernels next door.
"""

from common.tables.reader import TableReader
from party.sources.settings import SourceSettings
from party.sources.source import Snapshot, Source, TableSource

__all__ = ["Snapshot", "Source", "SourceSettings", "TableReader", "TableSource"]

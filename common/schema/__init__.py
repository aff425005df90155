"""Public domains: what a table may contain, agreed before any data is touched."""

from common.schema.attribute import Attribute, Kind
from common.schema.codes import Codes
from common.schema.hierarchy import Hierarchy, Node
from common.schema.schema import Schema

__all__ = ["Attribute", "Codes", "Hierarchy", "Kind", "Node", "Schema"]

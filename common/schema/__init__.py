"""Public domains: what a table may contain, agreed before any row is read."""

from common.schema.attribute import Attribute
from common.schema.codes import Codes
from common.schema.hierarchy import Node
from common.schema.schema import Schema

__all__ = ["Attribute", "Codes", "Node", "Schema"]

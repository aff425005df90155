"""From the attributes of a schema to the axes of the matrix of counts."""

from __future__ import annotations

from common.schema import Attribute, Node, Schema
from common.wavelet.axes import HaarAxis, NominalAxis
from common.wavelet.axis import Axis
from common.wavelet.tree import Nested, Tree


def axis_of(attribute: Attribute) -> Axis:
    """Haar where intervals mean something, nominal along the hierarchy otherwise."""
    if attribute.ordered:
        return HaarAxis(attribute.size)
    return NominalAxis(Tree.from_nested(_nested(attribute.hierarchy.root), attribute.size))


def axes_of(schema: Schema) -> tuple[Axis, ...]:
    """The axis of every attribute, each with the transform its kind calls for."""
    return tuple(axis_of(attribute) for attribute in schema.attributes)


def _nested(node: Node) -> Nested:
    if node.code is not None:
        return node.code
    return [_nested(child) for child in node.children]

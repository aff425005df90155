"""Charts and pages are well-formed, escape what they show, and ask nothing of the network."""

import itertools

from common.release.report.charts import Series, bar_rows
from common.release.report.network_picture import draw_network
from common.release.report.page import Section, page, table
from tests.unit.release.report.conftest import local, parse

NASTY = '<script>alert("&")</script>'


def test_every_parent_stands_above_its_child():
    names = ["root", "left", "right", "leaf"]
    edges = [("root", "left"), ("root", "right"), ("left", "leaf"), ("right", "leaf")]
    picture = parse(draw_network(names, edges, {edges[0]: 2.0, edges[1]: 1.0}))
    heights = {
        g[0].text: float(next(e for e in g if local(e) == "rect").get("y"))
        for g in picture.iter()
        if local(g) == "g"
    }
    assert set(heights) == set(names)
    assert all(heights[a] < heights[b] for a, b in edges)


def test_boxes_of_one_layer_do_not_overlap():
    names = ["root", *[f"a long attribute name {i}" for i in range(30)]]
    picture = parse(draw_network(names, [("root", n) for n in names[1:]]))
    boxes = sorted(
        (float(r.get("x")), float(r.get("x")) + float(r.get("width")))
        for g in picture.iter()
        if local(g) == "g"
        for r in g
        if local(r) == "rect" and float(r.get("y")) > 60
    )
    assert len(boxes) == 30
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(boxes))


def test_what_is_shown_is_escaped():
    picture = draw_network([NASTY, "b"], [(NASTY, "b")]) + bar_rows(
        NASTY, [NASTY], [Series(NASTY, [1.0])]
    )
    assert "<script" not in picture
    assert "<script" not in page(NASTY, NASTY, [Section(NASTY, table([NASTY], [[NASTY]]))])


def test_strong_edges_carry_their_strength_and_weak_ones_do_not():
    edges = [("a", "c"), ("b", "c")]
    picture = draw_network(["a", "b", "c"], edges, {edges[0]: 0.5, edges[1]: 0.01})
    numbers = [e.text for e in parse(picture).iter() if local(e) == "text" and "." in e.text]
    assert numbers == ["0.50"]

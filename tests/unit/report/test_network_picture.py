"""Charts and pages are well-formed, escape what they show, and ask nothing of the network."""

import itertools

from common.fitted.dependences import Dependences
from common.report.charts import Series, bar_rows
from common.report.network_picture import network_svg
from common.report.page import Section, page, table
from tests.unit.report.conftest import local, parse

NASTY = '<script>alert("&")</script>'


def drawn(names, strengths):
    return network_svg(Dependences(names, strengths, {}))


def test_every_parent_stands_above_its_child():
    names = ["root", "left", "right", "leaf"]
    edges = [("root", "left"), ("root", "right"), ("left", "leaf"), ("right", "leaf")]
    picture = parse(drawn(names, dict(zip(edges, (2.0, 1.0, 0.0, 0.0), strict=True))))
    heights = {
        g[0].text: float(next(e for e in g if local(e) == "rect").get("y"))
        for g in picture.iter()
        if local(g) == "g"
    }
    assert set(heights) == set(names)
    assert all(heights[a] < heights[b] for a, b in edges)


def test_boxes_of_one_layer_do_not_overlap():
    names = ["root", *[f"a long attribute name {i}" for i in range(30)]]
    picture = parse(drawn(names, {("root", n): 0.0 for n in names[1:]}))
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
    picture = drawn([NASTY, "b"], {(NASTY, "b"): 0.0}) + bar_rows(
        NASTY, [NASTY], [Series(NASTY, [1.0])]
    )
    assert "<script" not in picture
    assert "<script" not in page(NASTY, NASTY, [Section(NASTY, table([NASTY], [[NASTY]]))])


def test_strong_edges_carry_their_strength_and_weak_ones_do_not():
    picture = drawn(["a", "b", "c"], {("a", "c"): 0.5, ("b", "c"): 0.01})
    numbers = [e.text for e in parse(picture).iter() if local(e) == "text" and "." in e.text]
    assert numbers == ["0.50"]


def test_a_model_without_arrows_is_drawn_without_them():
    edges = {("a", "b"): 0.5}
    tree = network_svg(Dependences(["a", "b"], edges, {}, directed=False))
    assert "marker-end" in drawn(["a", "b"], edges)
    assert "marker-end" not in tree
    assert "a and b" in tree


def test_a_number_interrupts_its_line():
    picture = parse(drawn(["a", "b"], {("a", "b"): 0.5}))
    order = [(local(e), e.text) for e in picture.iter() if local(e) in ("path", "rect", "text")]
    line = next(place for place, (kind, _) in enumerate(order) if kind == "path" and place)
    assert [kind for kind, _ in order[line + 1 : line + 3]] == ["rect", "text"]
    assert order[line + 2][1] == "0.50"

# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""Charts."""

from xml.etree import ElementTree

import pytest

from method import svg
from method.svg import Chart

SPACE = "{http://www.w3.org/2000/svg}"


def chart(**more):
    lines = {"a & b": [(0, 1.0), (10, 5.0)], "c": [(0, 2.0), (10, 5.1)]}
    return Chart("p99 < 10", "load", "ms", **({"lines": lines} | more))


def test_a_chart_is_well_formed_and_names_its_lines():
    root = ElementTree.fromstring(svg.draw(chart()))
    words = [text.text for text in root.iter(f"{SPACE}text")]
    assert "a & b" in words
    assert "p99 < 10" in words
    assert len(list(root.iter(f"{SPACE}polyline"))) == 2


def test_a_chart_follows_the_colour_scheme_of_its_page():
    assert "prefers-color-scheme: dark" in svg.draw(chart())


def test_names_at_the_same_height_do_not_cover_each_other():
    root = ElementTree.fromstring(svg.draw(chart()))
    names = {t.text: float(t.get("y")) for t in root.iter(f"{SPACE}text")}
    assert abs(names["a & b"] - names["c"]) >= svg.LABEL_GAP


@pytest.mark.parametrize("log_y", [False, True])
def test_every_point_lies_inside_the_axes(log_y):
    root = ElementTree.fromstring(svg.draw(chart(log_y=log_y)))
    dots = list(root.iter(f"{SPACE}circle"))
    assert len(dots) == 4
    for dot in dots:
        assert svg.LEFT <= float(dot.get("cx")) <= svg.WIDTH - svg.RIGHT
        assert svg.TOP <= float(dot.get("cy")) <= svg.HEIGHT - svg.BOTTOM


def test_more_is_drawn_higher():
    _, y = svg.scales(chart(log_y=True))
    assert y(1.0) > y(2.0) > y(5.0)


@pytest.mark.parametrize(
    ("high", "ticks"), [(10, [0, 2, 4, 6, 8, 10]), (0.7, [0, 0.2, 0.4, 0.6, 0.8]), (1, 6)]
)
def test_ticks_are_round_numbers_that_hold_the_highest_value(high, ticks):
    found = svg.linear_ticks(high)
    assert found[-1] >= high
    assert len(found) == ticks if isinstance(ticks, int) else found == pytest.approx(ticks)


def test_a_chart_without_points_is_refused():
    with pytest.raises(ValueError, match="has no points"):
        svg.draw(chart(lines={}))


def test_labels_stay_above_the_axis():
    assert svg.spread([98, 99, 100], 15, 100) == [70, 85, 100]


def test_a_label_that_is_in_nobodys_way_stays_where_its_line_ends():
    assert svg.spread([20, 98, 99, 100], 15, 100) == [20, 70, 85, 100]

# SPDX-FileCopyrightText: The tensord authors
# SPDX-License-Identifier: Apache-2.0
"""What is checked in of a run."""

import json

import pytest

from method import document, rounds
from method.test_report import rounds_of

RUN = {
    "machine": {
        "cpu": "A CPU",
        "cpus_usable": 2,
        "cpu_quota": None,
        "vector": ["avx2"],
        "memory_gib": 8.0,
        "kernel": "6.1",
        "virtual": False,
    },
    "seconds": 2.0,
    "rounds": {"turns_kept": 16, "turns_disturbed": 3, "strict": True},
    "absent": {"bentoml": "it does not install: no network"},
    "cases": [
        rounds.summarise(
            "small", rounds_of({"tensord": 5.0, "bare engine": 2.0, "other": 15.0}), "tensord"
        )
    ],
}


def test_the_summary_is_small_and_keeps_figures_and_intervals():
    found = document.summary(RUN)
    other = found["cases"]["small"]["contestants"]["other"]
    assert other["ratios"]["CPU"] == [3.0, 3.0, 3.0]
    assert other["cpu_us_per_request"] == 15.0
    assert len(json.dumps(found)) < 2000


def test_the_page_gets_its_tables_and_keeps_the_rest():
    page = f"before\n{document.BEGIN}\nold\n{document.END}\nafter\n"
    text = document.with_part(page, document.markdown(RUN))
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "3 made again" in text
    assert "| other | 1,000 | 10.0 | 20.0 | 15.0 | 13.0 | 3.00 [3.00, 3.00] |" in text
    assert "bentoml was not measured: it does not install: no network." in text
    assert document.with_part(text, document.markdown(RUN)) == text


def test_the_readme_names_how_many_times_the_cpu_others_take():
    title = "MLP 64-128-64-10: REST x 64"
    found = rounds_of({"tensord": 5.0, "bare engine": 2.0, "bentoml": 50.0})
    run = RUN | {"cases": [*RUN["cases"], rounds.summarise(title, found, "tensord")]}
    text = document.headline(run)
    assert f"| {title} | 1,000 | 5.00 |  |  |  | 10.0 |  |" in text
    assert "small" not in text
    assert "charts" not in text


def test_a_page_without_marks_is_an_error():
    with pytest.raises(ValueError, match="has no part between"):
        document.with_part("nothing", "")

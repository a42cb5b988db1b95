"""benchmarks/reproduce.py: nothing of the papers is left out, and what differs says why."""

import pytest

from scripts import PROJECT, load_script

# all that the papers number
PRINTED = {
    "ecuas": ["Figure 1", "Figure 2", *(f"Table {k}" for k in range(1, 7))],
    "tps": ["Figure 1", "Figure 2", *(f"Table {k}" for k in range(1, 17))],
    "evaluator": [*(f"Figure {k}" for k in range(1, 8)), "Table 1"],
    "tracer": ["Figure 1", "Figure 2", "Table I", "Table II", "Table III", "Table IV"],
}


@pytest.fixture(scope="module")
def reproduce():
    return load_script("reproduce")


@pytest.fixture(scope="module")
def nothing(reproduce, tmp_path_factory):
    """A folder without data."""
    return reproduce.Data(tmp_path_factory.mktemp("data"), splits=2)


@pytest.fixture(scope="module")
def found(reproduce, nothing):
    return {
        name: {one.name: one.found(nothing) for one in reproduce.PAPERS[name].items}
        for name in PRINTED
    }


@pytest.mark.parametrize("name", PRINTED)
def test_every_table_and_figure_has_an_item_and_a_row_on_the_page(reproduce, name):
    names = [one.name for one in reproduce.PAPERS[name].items]
    assert set(PRINTED[name]) <= set(names)
    assert len(set(names)) == len(names)
    page = (PROJECT / "docs" / "reproduction" / f"{name}.inc").read_text()
    assert [one for one in names if f'"{one}", ' not in page] == []


def test_what_differs_says_why_and_what_cannot_be_had_is_said(reproduce, nothing, found):
    for name, items in found.items():
        assert [
            one for cells in items.values() for one in cells if not one.equal and not one.why
        ] == []
        for item in reproduce.PAPERS[name].items:
            said = reproduce.status(item, items[item.name], nothing)
            assert items[item.name] or item.missing or item.needs or item.how, item.name
            assert ("not run" in said) == bool(item.needs)


def test_what_needs_no_data(found):
    assert sum(map(len, found["tps"].values())) > 110
    wrong = {name for name, cells in found["tps"].items() if not all(one.equal for one in cells)}
    assert wrong == {"Figure 1", "Table 10", "Appendix J"}  # the paper contradicts itself
    assert [one.shown() for one in found["tracer"]["Table II"] if not one.equal] == [
        "**6.1** (printed: 4.7)"
    ]
    assert found["ecuas"]["Table 3"] == []


def test_a_cell_is_equal_to_the_digits_that_are_printed(reproduce):
    for printed, value, equal in (
        ("0.0070", 0.00704, 1),
        ("0.0070", 0.00706, 0),
        ("-.4", -0.41, 1),
    ):
        assert reproduce.Cell("", "", printed, value).equal == equal, (printed, value)


def test_a_public_set_gives_the_printed_table(reproduce, public_file):
    files = [
        public_file("expected_cost", "sst2_gpt2", f"{part}.npy") for part in ("scores", "targets")
    ]
    folder = files[0].parents[2]
    (row,) = reproduce.ecuas.table_3(["sst2_gpt2"])
    cells = list(row(reproduce.Data(folder)))
    assert len(cells) == 22
    assert all(one.equal for one in cells)

"""The page as a browser shows it, on five reports."""

import io
import re

import pytest

from trajscore.report._data import REFERENCES


def shown(page, query):
    return page.locator(query).evaluate_all(
        "all => all.filter(one => one.checkVisibility()).map(one => one.textContent.trim())"
    )


def colour(page, query, of):
    text = page.locator(query).first.evaluate(f"one => getComputedStyle(one).{of}")
    return [float(part) for part in re.findall(r"[\d.]+", text)[:3]]


def test_nothing_leaves_the_page_and_nothing_fails(visit, report_file):
    page = visit()
    page.locator("#acting summary").first.click()
    page.mouse.wheel(0, 20_000)
    assert page.asked == [report_file.as_uri()]
    assert page.said == []
    assert report_file.stat().st_size < 3e6


@pytest.mark.parametrize("width", [1400, 420])
def test_no_overflow(visit, width):
    page = visit(width)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 1400:  # the main table needs no scrolling
        assert page.evaluate(
            "(() => { const one = document.querySelector('#all-numbers').parentElement;"
            " return one.scrollWidth - one.clientWidth; })()"
        ) <= 0  # fmt: skip


def test_sorting_sorts(visit):
    page = visit()
    for query, column in (("#all-numbers", 4), ("#runs table.sortable", 2)):
        table = page.locator(query)
        for direction in ("descending", "ascending"):
            button = table.locator("thead th button").nth(column)
            button.click()
            head = table.locator("thead th").nth(column)
            assert head.get_attribute("aria-sort") == direction
            cells = table.locator(f"tbody tr td:nth-child({column + 1})").all_text_contents()
            numbers = [float(cell) for cell in cells if cell.strip()]
            assert len(numbers) > 1
            assert numbers == sorted(numbers, reverse=direction == "descending")
            assert all(cells[: len(numbers)])  # what is missing stands last


def test_the_picker_picks(visit):
    page = visit()
    names = list(dict.fromkeys(shown(page, "#answer .card h3")))
    if len(names) < 2:
        assert page.locator(".picker").count() == 0
        return
    page.locator(".picker summary").click()
    page.locator("#pick-none").click()
    left = page.locator("main [data-predictor]").evaluate_all(
        "all => all.filter(one => one.checkVisibility()).map(one => one.dataset.predictor)"
    )
    assert set(left) == {*REFERENCES}
    assert shown(page, ".card h3") == []
    page.locator(f'.picker input[value="{names[1]}"]').check()
    assert shown(page, ".card h3") == [names[1]]
    for section in ("comparison", "losses", "runs", "numbers"):
        assert set(shown(page, f"#{section} tr[data-predictor] th[scope=row]")) != set()
    assert {
        one.get_attribute("data-predictor")
        for one in page.locator("#numbers tr[data-predictor]").all()
        if one.is_visible()
    } - {*REFERENCES} == {names[1]}
    page.locator("#pick-all").click()
    assert shown(page, ".card h3") == names


def test_the_price_moves_the_threshold(visit):
    page = visit()
    cheapest = page.locator("table.accepting").first.locator("tr.cheapest")
    share = []
    for price in (1, 50):
        page.locator("#price").evaluate(
            "(one, price) => { one.value = price; one.dispatchEvent(new Event('input')); }", price
        )
        assert cheapest.count() == 1
        costs = page.locator("table.accepting").first.locator("td.cost").all_text_contents()
        assert float(cheapest.locator("td.cost").text_content()) == min(map(float, costs))
        share.append(float(cheapest.get_attribute("data-share")))
    assert share[0] > share[1]


def test_dark_is_dark(visit):
    for scheme, is_dark in (("light", False), ("dark", True)):
        page = visit(color_scheme=scheme)
        for flipped in (False, True):
            paper, ink = colour(page, "body", "backgroundColor"), colour(page, "h1", "color")
            assert (sum(paper) < sum(ink)) == (is_dark != flipped)
            page.locator("#theme").click()


def test_print_holds_every_column(visit):
    pypdf = pytest.importorskip("pypdf")
    page = visit()
    heads = page.locator("#all-numbers thead th").all_text_contents()
    reader = pypdf.PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    assert len(reader.pages) <= 12
    text = ""
    for one in reader.pages:
        width = float(one.mediabox.width)

        def inside(part, cm, tm, _font, _size, width=width):
            assert not part.strip() or cm[0] * tm[4] + cm[4] < width - 20

        text += one.extract_text(visitor_text=inside)
    seen = "".join(text.split())
    for head in heads:
        assert "".join(head.split()) in seen
    # the last number of the first row, too
    row = page.locator("#all-numbers tbody tr").first.locator("td").all_text_contents()
    assert [cell for cell in row if cell.strip()][-1] in text
    assert "Which predictor should I use?".replace(" ", "") in seen


def test_axe_finds_nothing_serious(visit, report_file):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    # the colours of all pages are the same, so that each is looked at in one scheme
    page = visit(color_scheme="dark" if report_file.stem in ("chess", "tau2") else "light")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = axe.Axe().run(page).response["violations"]
    serious = {
        (one["id"], one["nodes"][0]["html"][:200])
        for one in found
        if one["impact"] in ("serious", "critical")
    }
    assert serious == set()


def test_it_can_be_read_without_scripts(visit):
    page = visit(java_script_enabled=False)
    for query in ("#answer .card", "#all-numbers td", "#runs td", "table.accepting td"):
        assert page.locator(query).first.is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.locator("#all-numbers th button").count() == 0

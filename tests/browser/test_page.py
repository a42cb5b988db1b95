"""The page as a browser shows it, on five reports."""

import io
import json
import re

import numpy as np
import pytest

ALL_OPEN = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
DRAWERS_OPEN = "document.querySelectorAll('.drawer').forEach(one => { one.open = true; })"
CHESS, EIGHT, TAU2 = (
    pytest.mark.parametrize("written", [name], indirect=True) for name in ("chess", "eight", "tau2")
)
WITH_REPORT = pytest.mark.parametrize("written", ["chess", "twelve"], indirect=True)


def colour(page, query, of):
    text = page.locator(query).first.evaluate(f"one => getComputedStyle(one).{of}")
    return [float(part) for part in re.findall(r"[\d.]+", text)[:3]]


def bottom(page, query):
    return page.locator(query).last.evaluate("one => one.getBoundingClientRect().bottom")


def height(page):
    return page.evaluate("document.documentElement.scrollHeight")


def words(page, query):
    return " ".join(page.locator(query).first.inner_text().split())


def first(report):
    """The form that is acted on, and the sentences of the first screen."""
    stated = json.loads(report.to_json())["answer"]
    form = "as_given" if stated["action"] == "use as it is" else "recalibrated"
    return (stated["predictor"], form), stated


def collapsed(trace):
    """One number a run: its mean, in which early steps count more."""
    runs = [(run.ravel(), 1 / np.sqrt(np.arange(1, len(run) + 1))) for run in trace]
    return np.array([weight @ run / weight.sum() for run, weight in runs])


def near(text, value, room):
    return abs(float(text) - value) <= room


def test_nothing_leaves_the_page_and_nothing_fails(visit, report_file):
    page = visit()
    page.evaluate(ALL_OPEN)
    page.mouse.wheel(0, 20_000)
    assert page.asked == [report_file.as_uri()]
    assert page.said == []
    assert report_file.stat().st_size < 3e6


@pytest.mark.parametrize("width", [1400, 820, 420, 360])
def test_no_overflow(visit, width):
    page = visit(width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(ALL_OPEN)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 1400:  # the main table needs no scrolling
        assert page.evaluate(
            "(() => { const one = document.querySelector('#all-numbers').parentElement;"
            " return one.scrollWidth - one.clientWidth; })()"
        ) <= 0  # fmt: skip


@CHESS
def test_the_answer_is_on_the_first_screen(visit):
    page = visit(1400)
    for query in ("h1", ".said", ".better", ".tiles", ".light"):
        assert bottom(page, query) <= 1100
    page.evaluate(DRAWERS_OPEN)
    assert height(page) <= 4500
    phone = visit(420)
    assert bottom(phone, "h1") <= 300


@EIGHT
def test_eight_runs_make_a_small_page(visit):
    page = visit(1400)
    assert bottom(page, ".drawer") <= 1200
    assert page.locator(".run").count() == 8


def test_what_is_pressed_is_large_enough(visit):
    page = visit(420)
    page.evaluate(DRAWERS_OPEN)
    sizes = page.evaluate(
        "Array.from(document.querySelectorAll('a.row, summary, select, input, .theme, .all-runs'))"
        ".filter(one => one.checkVisibility()).map(one => one.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 40


@WITH_REPORT
def test_a_price_changes_every_sentence_that_uses_it(visit, report):
    page, shown, stated = visit(), *first(report)
    tile = page.locator("[data-tile=accept]")
    field, said = tile.locator("input"), tile.locator(".say")
    number, labels = collapsed(report.traces[shown]), report.runs.labels
    assert words(tile, ".say") == stated["accept"]
    kinds = set()
    for price in ("1", "2", "3.5", "0.3", "8", "40", "2.25", "0", "1e3"):
        field.fill(price)
        text = words(tile, ".say")
        kinds |= {kind for kind in ("Accept every", "Review every", "Accept runs") if kind in text}
        every = float(price) * (1 - labels).mean()
        if found := re.search(r"score of (\S+) or more", text):
            reached = number >= float(found[1])
            cost = (float(price) * (1 - labels) * reached + ~reached).mean()
            assert cost < min(every, 1) - 0.02 + 1e-6
            share = re.search(r"(\S+)% of runs reach it", text)[1]
            assert near(share, 100 * reached.mean(), 0.51)
            said_cost = re.search(r"costs as much as (\S+) reviews", text)[1]
            assert near(said_cost, 100 * cost, 0.51)
            assert tile.locator(".mark").inner_text() == f"from {found[1]}: {said_cost}"
        else:
            assert ("Accept every" if every <= 1 + 1e-9 else "Review every") in text
        if found := re.search(r"accepting all costs (?:as much as )?(\d\S*?)[,; ]", text):
            assert near(found[1], 100 * every, 0.51)
    assert len(kinds) > 1
    for wrong in ("", "-1"):
        field.fill(wrong)
        assert said.inner_text() == "Type a number, 0 or more."
    field.fill("2")
    assert words(tile, ".say") == stated["accept"]


@WITH_REPORT
def test_a_loss_changes_every_sentence_that_uses_it(visit, report):
    page, shown, stated = visit(), *first(report)
    tile = page.locator("[data-tile=stop]")
    field, said = tile.locator("input"), tile.locator(".say")
    trace, labels = report.traces[shown], report.runs.labels
    assert words(tile, ".say") == stated["stop"]
    lowest, saved = np.minimum.reduceat(trace.cells, trace.offsets[:-1]), []
    for lost in ("0", "1", "5", "12.5", "50", "100"):
        field.fill(lost)
        text = words(tile, ".say")
        if found := re.search(r"falls below (\S+)\. That saves (\S+)% of all steps", text):
            good = 100 * (lowest < float(found[1]))[labels == 1].mean()
            assert good <= float(lost) + 1e-6
            assert near(re.search(r"and (\S+) of 100 good", text)[1], good, 0.51)
            saved.append(float(found[2]))
    assert saved == sorted(saved)
    assert len(saved) > 2
    field.fill("101")
    assert said.inner_text() == "Type a number from 0 to 100."


@WITH_REPORT
def test_a_row_opens_why(visit, report):
    page = visit()
    row = page.locator("a.row").nth(1)
    other = row.locator("b").first.inner_text().replace("\u200b", "")
    first_name = first(report)[0][0]
    assert other != first_name
    row.click()
    assert page.locator("#why").evaluate("one => one.open")
    shown = page.locator(".why:not([hidden])")
    assert shown.count() == 1
    assert shown.locator("h3").inner_text().startswith(other)
    assert page.locator(".choose option:checked").inner_text() == other
    page.locator(".choose").select_option(label=first_name)
    assert page.locator(".why:not([hidden]) h3").inner_text().startswith(first_name)
    page.locator("#why .back a").click()
    assert page.evaluate("document.activeElement.closest('#answer') !== null")


@TAU2
def test_the_worst_run_opens_in_place_with_its_turns(visit):
    page = visit(420)
    name = page.locator(".tile").nth(2).locator("p b").first.inner_text()
    page.locator(".open a").click()
    run = page.locator(".run").first
    assert run.evaluate("one => one.open")
    assert run.locator("summary b").inner_text() == name
    turns = run.locator(".turns > li")
    assert turns.count() > 2
    steps = [text for text in run.locator(".at").all_inner_texts() if text]
    assert steps[0].startswith("step 1")
    assert steps[0].endswith("%")
    assert run.locator(".turns .flagged").count() == 1
    assert "**" not in run.inner_text()
    run.locator("a").last.click()
    assert page.evaluate("document.activeElement.closest('#answer') !== null")


@CHESS
def test_runs_are_found_filtered_and_ordered(visit):
    page = visit()
    page.evaluate(DRAWERS_OPEN)
    rows = page.locator(".run:visible")
    assert rows.count() == 20
    page.locator(".all-runs").click()
    assert rows.count() == 60
    page.locator(".outcomes").select_option(label="failed")
    n = rows.count()
    assert 0 < n < 60
    assert page.locator(".shown").inner_text() == f"{n} shown"
    page.locator(".order").select_option(value="steps")
    steps = [int(row.get_attribute("data-steps")) for row in rows.all()]
    assert steps == sorted(steps, reverse=True)
    name = rows.last.locator("b").inner_text()
    page.locator(".find").fill(name.upper())
    assert rows.count() == 1


def test_sorting_sorts(visit):
    page = visit()
    page.evaluate(DRAWERS_OPEN)
    table = page.locator("#all-numbers")
    for direction in ("descending", "ascending"):
        table.locator("thead th button").nth(4).click()
        assert table.locator("thead th").nth(4).get_attribute("aria-sort") == direction
        cells = table.locator("tbody tr td:nth-child(5)").all_text_contents()
        numbers = [float(cell) for cell in cells if cell.strip()]
        assert len(numbers) > 1
        assert numbers == sorted(numbers, reverse=direction == "descending")
        assert all(cells[: len(numbers)])  # what is missing stands last


def test_the_keyboard_reaches_everything(visit):
    page = visit()
    page.evaluate(DRAWERS_OPEN)
    page.evaluate(
        "Array.from(document.querySelectorAll('a[href], button, input, select, summary,"
        " [data-about]')).filter(one => one.checkVisibility()"
        " && !one.closest('table')).forEach((one, k) => { one.dataset.k = k; })"
    )
    wanted = page.evaluate("Array.from(document.querySelectorAll('[data-k]')).length")
    reached = set()
    for _ in range(4 * wanted + 400):
        page.keyboard.press("Tab")
        k = page.evaluate("(document.activeElement.dataset || {}).k")
        if k is not None:
            reached.add(int(k))
        if len(reached) == wanted:
            break
    assert reached == set(range(wanted))


@CHESS
def test_explanations_by_keyboard_and_by_touch(visit):
    page = visit()
    tip = page.locator(".tip")
    assert not tip.is_visible()
    nats = page.locator(".better [data-about]").first
    nats.focus()
    assert tip.is_visible()
    assert "factor of 1.1" in tip.inner_text()
    assert nats.get_attribute("aria-describedby") == tip.get_attribute("id")
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.evaluate(DRAWERS_OPEN)
    page.locator("#all-numbers th button").nth(4).focus()
    assert "Trajectory Proper Score" in tip.inner_text()
    phone = visit(420, has_touch=True)
    phone.locator(".better [data-about]").first.tap()
    assert "factor of 1.1" in phone.locator(".tip").inner_text()


@CHESS
def test_enter_opens_a_drawer(visit):
    page = visit()
    page.locator("#runs > summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#runs").evaluate("one => one.open")


def test_dark_is_dark(visit):
    for scheme, is_dark in (("light", False), ("dark", True)):
        page = visit(color_scheme=scheme)
        for flipped in (False, True):
            paper, ink = colour(page, "body", "backgroundColor"), colour(page, "h1", "color")
            assert (sum(paper) < sum(ink)) == (is_dark != flipped)
            page.locator(".theme").click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_screen_prints_on_one_page(visit, report_file, scheme):
    pypdf = pytest.importorskip("pypdf")
    page = visit(color_scheme=scheme)
    headline = words(page, "h1")
    reader = pypdf.PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True, print_background=True)))
    # groups are full width, and have a page of their own
    assert len(reader.pages) <= (2 if report_file.stem == "twelve" else 1)
    text = "".join("".join(one.extract_text().split()) for one in reader.pages)
    for part in (headline, words(page, ".light b")):
        assert "".join(part.split()) in text
    assert float(reader.pages[0].mediabox.width) == pytest.approx(595, abs=2)


def test_axe_finds_nothing(visit, report_file):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    # the colours of all pages are the same, so that each is looked at in one scheme
    is_dark = report_file.stem in ("chess", "tau2")
    page = visit(420 if is_dark else 1400, color_scheme="dark" if is_dark else "light")
    page.evaluate(ALL_OPEN)
    found = axe.Axe().run(page).response["violations"]
    assert {(one["id"], one["nodes"][0]["html"][:200]) for one in found} == set()


def test_it_can_be_read_without_scripts(visit, report_file):
    page = visit(java_script_enabled=False)
    is_short = report_file.stem == "eight"
    shown = ".run summary" if is_short else ".tile .say"
    for query in ("h1", ".light", shown):
        assert page.locator(query).first.is_visible()
    for query in ("#all-numbers td", ".run"):
        assert page.locator(query).count() > 0
    for query in (".theme", ".ask input", ".filters", ".choose"):
        assert page.locator(query).count() == 0 or not page.locator(query).first.is_visible()
    if not is_short:
        assert page.locator(".still").first.is_visible()
    assert page.locator("#all-numbers th button").count() == 0

"""The page to label runs, from the first click to the file that it saves."""

import json

import pandas as pd
import pytest

from trajscore.cli.main import main


@pytest.fixture
def page(browser, tmp_path):
    """Open the page of three runs of a log."""
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    log, out, html = (tmp_path / name for name in ("log.jsonl", "to_read.csv", "to_read.html"))
    records = [{"id": f'run "{k}", <i>', "messages": turns} for k in range(3)]
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    words = ["label", log, "--n", "3", "--out", out, "--page", html]
    assert main(list(map(str, words))) == 0
    context = browser.new_context(viewport={"width": 420, "height": 800})
    page = context.new_page()
    page.goto(html.as_uri())
    yield page
    context.close()


def saved(page, folder):
    with page.expect_download() as download:
        page.locator(".save").click()
    assert download.value.suggested_filename == "to_read.csv"
    path = folder / "saved.csv"
    download.value.save_as(path)
    return pd.read_csv(path)


def test_clicks_and_keys_become_outcomes(page, tmp_path):
    chosen = pd.read_csv(tmp_path / "to_read.csv")
    assert page.locator(".choose .small").inner_text() == "run 1, 0 of 3 labelled"
    page.get_by_text("Success (s)").click()
    page.keyboard.press("f")
    assert page.locator(".choose .small").inner_text() == "run 3, 2 of 3 labelled"
    table = saved(page, tmp_path)
    assert table["run"].tolist() == chosen["run"].tolist()
    assert table["label_probability"].tolist() == chosen["label_probability"].tolist()
    assert table["outcome"].tolist()[:2] == [1, 0]
    assert pd.isna(table["outcome"][2])


def test_what_was_labelled_is_there_after_a_reload(page, tmp_path):
    page.keyboard.press("s")
    page.reload()
    assert page.locator(".choose .small").inner_text() == "run 2, 1 of 3 labelled"
    page.locator(".before").click()
    assert page.locator("[data-outcome='1'][aria-pressed=true]").count() == 1
    page.keyboard.press("f")  # a change of mind
    assert saved(page, tmp_path)["outcome"].tolist()[0] == 0


def test_one_run_is_shown_and_fits(page):
    assert page.locator("article:visible").count() == 1
    assert page.locator("article:visible h2").inner_text().startswith('run "')
    assert page.evaluate("document.documentElement.scrollWidth") <= 420

"""Take the picture of the page that the README and the first page of the docs show.

Run it, ``python tools/picture_of_page.py``, after the page changes. It needs chromium and the extra
``browser``.
"""

import shutil
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import sync_playwright

from trajscore.cli.main import main

PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "page.png"
WIDTH, COLOURS = 1400, 256
EDGE = 16  # of white around it


def take(page_file):
    """Return the picture of the first screen and the heads of the drawers."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as browsers:
        browser = browsers.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1000})
        page.goto(page_file.as_uri())
        top = page.locator("#answer").bounding_box()
        last = page.locator("details.drawer").last.bounding_box()
        shot = page.screenshot(
            full_page=True,
            clip={
                "x": top["x"] - EDGE,
                "y": top["y"] - EDGE,
                "width": top["width"] + 2 * EDGE,
                "height": last["y"] + last["height"] - top["y"] + 2 * EDGE,
            },
        )
        browser.close()
    return Image.open(BytesIO(shot)).convert("RGB")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        file = Path(folder) / "chess.html"
        main(["report", "--out", str(file)])
        picture = take(file)
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(PICTURE, optimize=True)
    print(f"{PICTURE.name}: {picture.size}, {PICTURE.stat().st_size / 1000:.0f} kB")

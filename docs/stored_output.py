"""Output of gallery pages whose public data is not at hand when the documentation is built.

After a build with the data, ``python docs/stored_output.py`` stores the output again, and the
sample reports of public data.
"""

import ast
import hashlib
import re
from pathlib import Path
from shutil import copy

DOCS = Path(__file__).resolve().parent
GALLERY, RENDERED, STORED = DOCS / "gallery", DOCS / "auto_gallery", DOCS / "stored"

_CODE = re.compile(r"(?m)^\.\. code-block:: Python\n(?:\n|    .*\n)+")
_END = re.compile(r"(?m)^\.\. (?:GENERATED FROM|rst-class:: sphx-glr-timing)|\Z")
_HEAD = re.compile(r"(?m)^\.\. output of code block (\d+)\n")


def public_data(code):
    """Return what public data an example asks for, as pairs of kind and name."""
    fetched = re.findall(r"fetch_(evaluator|expected_cost)\(\s*\"(\w[\w-]*)\"", code)
    return [*fetched, *(("file", name) for name in re.findall(r"PUBLIC_LOGS / \"(.+?)\"", code))]


def code_hash(text):
    """Return a hash of the code of an example: of its blocks, without comments and docstring."""
    lines = text.splitlines()[ast.parse(text).body[0].end_lineno :]
    code = [line for line in lines if line.strip() and not re.match(r"#(?! %%)", line)]
    return hashlib.sha256("\n".join(code).encode()).hexdigest()


def stored_file(example):
    """Return where the output of an example is stored."""
    return (STORED / example.relative_to(GALLERY)).with_suffix(".inc")


def outputs_of(page):
    """Return the outputs on a rendered page, by the number of the code block."""
    outputs = {}
    for number, code in enumerate(_CODE.finditer(page)):
        text = page[code.end() : _END.search(page, code.end()).start()].strip("\n")
        if text:
            outputs[number] = text
    return outputs


def with_outputs(page, outputs):
    """Return a page with outputs below its code blocks; those that have their own keep it."""
    own, blocks = outputs_of(page), list(_CODE.finditer(page))
    for number in sorted(outputs.keys() - own.keys(), reverse=True):
        end = blocks[number].end()
        page = f"{page[:end].rstrip()}\n\n{outputs[number]}\n\n{page[end:]}"
    return page


def read(file):
    """Return the hash of the code that the stored outputs are of, and the outputs."""
    head, *parts = _HEAD.split(file.read_text(encoding="utf-8"))
    numbers, texts = map(int, parts[::2]), (text.strip("\n") for text in parts[1::2])
    return head.split()[-1], dict(zip(numbers, texts, strict=True))


# -------------------------------------------------------------------- at a build


def place_pictures(names):
    """Put the stored pictures of examples where the gallery looks for its own."""
    for name in names:
        (example,) = GALLERY.rglob(f"plot_{name}")
        folder = RENDERED / example.parent.name / "images"
        folder.mkdir(parents=True, exist_ok=True)
        for picture in stored_file(example).parent.glob(f"sphx_glr_{example.stem}_*.png"):
            copy(picture, folder / picture.name)


def insert_outputs(names, docname, source):
    """Put stored outputs on the page of an example that was not run."""
    part, _, stem = docname.removeprefix("auto_gallery/").partition("/")
    if docname.startswith("auto_gallery/") and f"{stem.removeprefix('plot_')}.py" in names:
        _, outputs = read(stored_file(GALLERY / part / f"{stem}.py"))
        source[0] = with_outputs(source[0], outputs)


# -------------------------------------------------------------------- after one with the data


def store(example):
    """Store the output of an example as the last build rendered it."""
    text = example.read_text(encoding="utf-8")
    rendered, file = RENDERED / example.relative_to(GALLERY), stored_file(example)
    outputs = outputs_of(rendered.with_suffix(".rst").read_text(encoding="utf-8"))
    if not outputs or code_hash(rendered.read_text(encoding="utf-8")) != code_hash(text):
        raise SystemExit(f"{example.name} was not run as it is; build the docs with its data first")
    file.parent.mkdir(parents=True, exist_ok=True)
    for old in file.parent.glob(f"sphx_glr_{example.stem}_*.png"):
        old.unlink()
    lines = [f".. code {code_hash(text)}\n"]
    for number, output in outputs.items():
        one_size = re.sub(r"(:srcset: \S+), .*", r"\1", output)
        lines.append(f".. output of code block {number}\n\n{one_size}\n")
        for picture in re.findall(r":srcset: /auto_gallery/\w+/images/(\S+)", one_size):
            shrink(rendered.parent / "images" / picture, file.parent / picture)
    file.write_text("\n".join(lines), encoding="utf-8")


def shrink(picture, path):
    """Save a picture with 128 colours, which a plot does not exceed."""
    from PIL import Image

    few = Image.open(picture).convert("RGB").quantize(128, Image.Quantize.FASTOCTREE, dither=0)
    few.save(path, optimize=True)


if __name__ == "__main__":
    import samples

    for page in sorted(GALLERY.rglob("plot_*.py")):
        if public_data(page.read_text(encoding="utf-8")):
            store(page)
    samples.store_reports()
    files = [file for file in STORED.rglob("*") if file.is_file()]
    print(f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1000:.0f} kB")

"""`oeb report`, looked at in a browser: from the disk, without a network, whatever the documents hold."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from oeb_ray import storage
from oeb_ray.cli.main import main
from oeb_ray.compare import values_together
from oeb_ray.config import sample_manifest
from oeb_ray.jsontext import visible
from oeb_ray.report.batch import Counts
from oeb_ray.report.build import build
from oeb_ray.report.facts import gather
from oeb_ray.report.site import LICENCES, VENDOR, Site
from oeb_ray.results import read_scores, read_verdicts
from oeb_ray.stored import runs_at
from tests.helpers import corpus_of, manifest_rows, overrides, run_inline, write_manifest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium; apt-get install chromium")
MARKUP = json.loads((Path(__file__).parent / "data" / "report_cases" / "BR-24_markup_values.json").read_text())["texts"]
PAGES = ("index.html", "plots.html", "fields.html", "documents.html", "compare.html")
FAILED = json.dumps({"__error__": "<script>window.pwned=9</script> VendorTimeout"})


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that reports what it should not do: whatever the console says, whatever is asked of a network."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    opened = context.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    opened.on("request", lambda asked: said.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None)
    yield opened
    assert not said
    context.close()


@pytest.fixture(scope="module")
def sample_out(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sample corpus, tagged, as the baseline reads it, and as one reads it that fails at every other document."""
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(Path(sample_manifest()).parent, folder / "corpus")
    from tests.helpers import SmallCorpus

    rows = manifest_rows(SmallCorpus(folder / "corpus", 0))
    write_manifest(folder / "corpus" / "manifest.parquet",
                   [{**row, "tags": ["odd" if at % 2 else "even"]} for at, row in enumerate(rows)])  # fmt: skip
    (folder / "answers" / "half").mkdir(parents=True)
    for at, row in enumerate(rows):
        answer = (folder / "corpus" / row["gt_path"]).read_text() if at % 2 else FAILED
        (folder / "answers" / "half" / f"{row['doc_id']}.json").write_text(answer)
    run_inline([
        "corpus=manifest", f"corpus.manifest='{folder}/corpus/manifest.parquet'", "provider=[pdftext,replay]",
        "providers.replay.options=[{system: half}]", f"providers.replay.folder='{folder}/answers'",
        f"storage.root='{folder}/out'", "cluster=inline",
    ])  # fmt: skip
    return str(folder / "out")


@pytest.fixture(scope="module")
def sample(sample_out: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of it, moved to where nobody made it."""
    folder = tmp_path_factory.mktemp("report")
    assert main(["report", sample_out, "--inline", "-o", str(folder / "made here")]) == 0
    (folder / "made here").rename(folder / "moved [there] 100%")
    return folder / "moved [there] 100%"


def opened(page: Page, folder: Path, name: str) -> None:
    page.goto(f"{(folder / name).as_uri()}")
    page.wait_for_load_state()


def until(page: Page, expression: str) -> None:
    """Waits until it holds; Playwright's own way needs eval, which the pages forbid."""
    for _ in range(500):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(expression)


def number_of(out: str, doc_id: str) -> int:
    return gather(out).numbers[doc_id]


def test_every_page_opens_from_the_disk_in_silence(sample: Path, page: Page) -> None:
    for name in (*PAGES, "documents/0.html", "documents/15.html"):
        opened(page, sample, name)
        assert page.locator("h1").count() == 1 and page.locator("nav a").count() >= len(PAGES)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        unnamed = page.evaluate(
            "[...document.querySelectorAll('input, select')].filter(one => !one.labels.length).length"
        )
        assert unnamed == 0, "everything that takes an answer says what for"


def column(page: Page, number: int) -> list[str]:
    cells: list[str] = page.locator(
        f"section:not([hidden]) tbody tr:not([hidden]) > :nth-child({number})"
    ).all_inner_texts()
    return cells


def test_the_leaderboard_sorts_by_mouse_and_keyboard_and_filters(sample: Path, page: Page) -> None:
    opened(page, sample, "index.html")
    recall = page.locator("section:not([hidden]) thead th", has_text="Recall")
    recall.click()
    until(page, "Boolean(document.querySelector('section:not([hidden]) th[aria-sort]'))")
    page.wait_for_timeout(100)
    first = column(page, 8)
    assert len(first) == 2 and first == sorted(first, reverse=True)
    recall.focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(100)
    assert column(page, 8) == first[::-1]
    page.get_by_label("Runs with").fill("half")
    assert [cell.split("\n")[0] for cell in column(page, 2)] == [column(page, 2)[0].split("\n")[0]]
    page.get_by_label("Runs with").fill("")
    options = page.locator("[data-selection] option").all_text_contents()
    assert options[0] == "all documents" and {"tag: even", "tag: odd"} <= set(options)
    page.locator("[data-selection]").select_option(label="tag: even")
    assert "8 documents" in page.locator("section:not([hidden]) caption").inner_text()
    assert any("0/8" in cell for cell in column(page, 5)), "every document of that tag failed in one run"


def test_plots_show_what_the_summaries_say(sample: Path, sample_out: str, page: Page) -> None:
    opened(page, sample, "plots.html")
    page.wait_for_selector("[data-drawn]")
    shown = set(page.locator("#suites svg title").all_text_contents())
    said = set()
    for run in runs_at(sample_out):
        for suite, block in run.file("summary.json")["per_suite"].items():
            if block["scored"]:
                said.add((suite, run.name, block["accuracy"]))
    assert {(suite, run, float(value)) for suite, run, value in (re.split(", |: ", text) for text in shown)} == said
    positions = page.evaluate(
        "[...document.querySelectorAll('#suites svg circle')].map(one => [Number(one.getAttribute('cx')), "
        "Number(one.querySelector('title').textContent.split(': ')[1])])"
    )
    low, high = min(positions), max(positions)
    for at, value in positions:
        assert (at - low[0]) / (high[0] - low[0]) == pytest.approx((value - low[1]) / (high[1] - low[1]), abs=1e-3)
    mix = {tuple(re.split(", |: ", text)) for text in page.locator("#errors svg title").all_text_contents()}
    for run in runs_at(sample_out):
        assert (run.name, "misread", run.file("summary.json")["misread_rate"]) in {
            (name, kind, float(value)) for name, kind, value in mix
        }
    assert page.locator("#cost").get_by_text("No vendor stated a price").count() == 1
    with page.expect_download() as download:
        page.locator("[data-svg=suites]").click()
    text = Path(download.value.path()).read_text()
    assert text.startswith("<svg") and 'xmlns="http://www.w3.org/2000/svg"' in text and "<circle" in text
    assert (sample / "csv" / "suites.csv").read_text().count("\n") == len(said) + 1


def test_a_documents_page_shows_its_pages_beside_its_verdicts(sample: Path, sample_out: str, page: Page) -> None:
    doc_id = "INV-2024-0093"
    opened(page, sample, f"documents/{number_of(sample_out, doc_id)}.html")
    runs = {run.file("settings.json")["provider"]: run.name for run in runs_at(sample_out)}
    choice = page.locator("[data-run]")
    choice.select_option(label=next(text for text in choice.locator("option").all_text_contents() if "pdftext" in text))
    page.wait_for_selector(".cited", state="attached")
    assert page.evaluate("document.querySelector('figure img').naturalWidth") > 400
    stored = read_verdicts(sample_out, runs["pdftext"], doc_id).to_pylist()
    for kind in ("misread", "unfound", "fabricated", "invented_item", "invented_field"):
        page.locator(f"[data-kind][value={kind}]").set_checked(False)
    page.locator("[data-kind][value=matched]").set_checked(True)
    matched = [row for row in stored if row["verdict"] == "matched"]
    rows = page.locator("table[data-verdicts] tbody tr")
    assert rows.count() == len(matched) > 0
    assert rows.locator("th").all_inner_texts() == [row["path"] for row in matched]
    folded = next(row for row in matched if row["gold_canon"] not in (row["gold_raw"], row["gold_raw"][1:-1]))
    page.get_by_label("Field with").fill(folded["path"])
    cell = rows.first.locator("td").nth(1)
    assert folded["gold_raw"] in cell.inner_text() and f"compared as {folded['gold_canon']}" in cell.inner_text()
    cell.locator("summary").click()
    from oeb_ray.jsontext import from_raw_json
    from oeb_ray.scoring.field_matching.explain import trace

    steps = [f"{step.name}: {step.text}" for step in trace(from_raw_json(folded["gold_raw"])).steps]
    assert cell.locator("li").all_inner_texts() == steps
    cited = page.locator(".cited").first.evaluate("one => [one.dataset.path, one.style.left, one.offsetWidth]")
    record = json.loads((Path(sample_out) / runs["pdftext"] / "records" / f"{doc_id}.json").read_text())
    meant = next(one for one in record["citations"] if one["path"] == cited[0])
    assert float(cited[1].rstrip("%")) == pytest.approx(100 * meant["box"][0], abs=0.01) and cited[2] > 3
    page.get_by_text("Next with errors").click()
    page.wait_for_load_state()
    assert page.url.rsplit("/", 1)[-1].startswith(f"{number_of(sample_out, doc_id) + 1}.html#run=")


def test_two_runs_are_compared_value_by_value(sample: Path, sample_out: str, page: Page) -> None:
    opened(page, sample, "compare.html")
    until(page, "document.querySelector('[data-status]').textContent.includes('documents in both')")
    names = gather(sample_out).names
    a, b = (next(run for run in runs_at(sample_out) if run.name == name) for name in names[:2])
    scored = [
        {row["doc_id"] for row in read_scores(sample_out, run.name).to_pylist() if row["status"] == "scored"}
        for run in (a, b)
    ]
    gained = lost = 0
    for left, right in values_together((a, b), frozenset(scored[0] & scored[1])):
        kinds = ("matched", "misread", "unfound")
        keys = [key for key in left.keys() & right.keys() if left[key].verdict in kinds]
        gained += sum(left[key].verdict != "matched" == right[key].verdict for key in keys)
        lost += sum(left[key].verdict == "matched" != right[key].verdict for key in keys)
    text = page.locator("[data-status]").inner_text()
    assert text.startswith(f"{len(scored[0] & scored[1])} documents in both: {gained:,} values gained, {lost:,} lost")
    assert gained + lost > 0


def test_fields_are_counted_by_run(sample: Path, sample_out: str, page: Page) -> None:
    opened(page, sample, "fields.html")
    page.wait_for_selector("[data-fields] tbody tr")
    name = page.locator("[data-fields] tbody th").first.inner_text()
    run = next(run.name for run in runs_at(sample_out) if run.name.startswith("pdftext"))
    page.locator("[data-run]").select_option(label=next(
        text for text in page.locator("[data-run] option").all_text_contents() if run in text))  # fmt: skip
    page.get_by_label("Field with").fill(name)
    cells = page.locator("[data-fields] tbody tr").first.locator("td").all_inner_texts()
    counts = Counter(read_verdicts(sample_out, run, field=name).column("verdict").to_pylist())
    assert int(cells[1].replace(",", "")) == counts.total() and int(cells[3]) == counts["matched"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Markup as values, golds, names of properties, suites, tags, ids and errors; one value of 10 MB."""
    folder = tmp_path_factory.mktemp("hostile")
    texts = [text for text in MARKUP if "\0" not in text]
    gold = {f"{text} {at}": text for at, text in enumerate(MARKUP)}
    golds = {text.replace("/", "_"): gold for text in texts} | {"large": {"a": "x", "b": "\u202e14.00"}}
    answer = json.dumps({key: f"{value} no" for key, value in gold.items()} | {f"more {MARKUP[0]}": MARKUP[1]})
    answers = dict.fromkeys(golds, answer) | {"large": json.dumps({"a": "<b>" * 3_500_000, "b": "\u202d14.00"})}
    answers[texts[0].replace("/", "_")] = FAILED
    corpus = corpus_of(folder, golds, {"good": answers})
    rows = [{**row, "suite": MARKUP[0], "tags": [MARKUP[1], MARKUP[7]]} for row in manifest_rows(corpus)]
    write_manifest(corpus.manifest, rows)
    run_inline(overrides(corpus, folder / "out", systems=("good",)))
    out = str(folder / "out")
    return out, Path(build(gather(out), str(folder / "report"))).parent


def test_nothing_in_a_document_does_anything(hostile: tuple[str, Path], page: Page) -> None:
    """BR-24: no script runs, nothing is asked for, and the text is seen as it is written."""
    out, folder = hostile
    count = len(gather(out).documents)
    for name in (*PAGES, *(f"documents/{number}.html" for number in range(count))):
        opened(page, folder, name)
        if name.startswith("documents/"):
            until(page, "!document.querySelector('[data-status]').textContent.startsWith('Loading')")
            for box in page.locator("[data-kind]").all():
                box.check()
        assert page.evaluate("window.pwned") is None, name
    number = number_of(out, next(one.doc_id for one in gather(out).documents if one.doc_id.startswith("{{ 7*7")))
    opened(page, folder, f"documents/{number}.html")
    page.wait_for_selector("table[data-verdicts] tbody tr")
    seen = page.locator("table[data-verdicts]").inner_text()
    for text in MARKUP:
        assert visible(text) in seen, "escaped, not stripped"
    assert "\\u202e14.00\\u202c EUR" in seen and "{{ 7*7 }}" in page.locator("h1").inner_text()
    opened(page, folder, f"documents/{number_of(out, 'large')}.html")
    page.wait_for_selector("table[data-verdicts] tbody tr")
    assert "(10,500,002 characters)" in page.locator("table[data-verdicts]").inner_text()
    assert sum(path.stat().st_size for path in (folder / "data").rglob("*large*")) < 1_000_000
    failed = next(one.number for one in gather(out).documents if one.rows[0] and one.rows[0]["status"] == "error")
    opened(page, folder, f"documents/{failed}.html")
    assert "<script>window.pwned=9</script> VendorTimeout" in page.locator("main").inner_text()


def test_600_documents_are_painted_within_two_seconds(sample_out: str, tmp_path: Path, page: Page) -> None:
    facts = gather(sample_out)
    of_each = [replace(facts.documents[at % 16], number=at, doc_id=f"document {at:03}") for at in range(600)]
    site = Site(replace(facts, documents=of_each), Counts())
    for name in site.names():
        if not name.startswith("documents/"):
            storage.put(f"{tmp_path}/{name}", site.render(name) or b"")
    for name in PAGES:
        opened(page, tmp_path, name)
        until(page, "performance.getEntriesByName('first-contentful-paint').length")
        painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        assert painted < 2000, f"{name}: {painted:.0f} ms"


def test_a_second_report_takes_the_place_of_the_first(sample_out: str, tmp_path: Path) -> None:
    facts = gather(sample_out)
    build(facts, str(tmp_path / "report"))
    every = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    build(gather(sample_out), str(tmp_path / "report"))
    assert every == {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    build(gather(sample_out, [facts.names[0]]), str(tmp_path / "report"))
    assert not list((tmp_path / "report" / "data" / "values").glob("*-1.js"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    assert main(["report", sample_out, "--inline", "-o", str(tmp_path / "mine")]) == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_what_is_bundled_has_its_licence(sample: Path) -> None:
    assert {path.name for path in (sample / "static").iterdir()} >= {*VENDOR, *LICENCES}
    for name in LICENCES:
        assert (
            "Copyright" in (sample / "static" / name).read_text()
            or "public domain" in (sample / "static" / name).read_text()
        )


def test_without_the_corpus_there_are_no_images_and_that_is_said(
    sample_out: str, tmp_path: Path, page: Page, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(sample_out, tmp_path / "out")
    about = json.loads((tmp_path / "out" / "corpus.json").read_text())
    about["manifest"] = str(tmp_path / "gone.parquet")
    (tmp_path / "out" / "corpus.json").write_text(json.dumps(about))
    assert main(["report", str(tmp_path / "out"), "--inline", "-o", str(tmp_path / "report")]) == 0
    assert "no page images: no manifest file at" in capsys.readouterr().err
    opened(page, tmp_path / "report", "documents/3.html")
    assert "the document is not at hand" in page.locator("main").inner_text()
    assert main(["report", str(tmp_path / "out"), "--inline", "--corpus", str(tmp_path / "no.parquet")]) == 2


@pytest.mark.skipif(not os.environ.get("OEB_REAL_REPORT"), reason="takes minutes; make real-report")
@pytest.mark.timeout(1500)
def test_the_real_corpus_with_all_systems(outside_data: Path, tmp_path: Path, page: Page) -> None:
    """Below 120 s on a quiet machine, below 200 MB, and it works as the small ones do."""
    systems = tuple(sorted(path.name for path in (outside_data / "predictions").iterdir()))
    words = [
        "corpus=manifest", f"corpus.manifest='{outside_data}/corpus/manifest.parquet'", "provider=[replay]",
        f"providers.replay.options=[{','.join(f'{{system: {name}}}' for name in systems)}]",
        f"providers.replay.folder='{outside_data}/predictions'", f"storage.root='{tmp_path}/out'", "cluster=inline",
    ]  # fmt: skip
    run_inline(words)
    start = time.monotonic()
    assert main(["report", f"{tmp_path}/out", "-o", f"{tmp_path}/report"]) == 0
    print(f"{time.monotonic() - start:.0f} s")
    size = sum(path.stat().st_size for path in (tmp_path / "report").rglob("*") if path.is_file())
    assert size < 200_000_000
    for name in (*PAGES, *(f"documents/{number}.html" for number in range(0, 60, 7))):
        opened(page, tmp_path / "report", name)
    opened(page, tmp_path / "report", "index.html")
    assert len(column(page, 2)) == len(systems)

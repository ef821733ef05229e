"""The pictures of the page in docs/page, taken in Chromium.

    ./dev sh python -m benchmarks.page.screenshots MODEL.askwise [--out docs/page]

One case of the model is answered with values in the middle of what training saw.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tests.web.browser import chromium

from benchmarks.serve.process import serving

DESK, PHONE = {"width": 1120, "height": 760}, {"width": 390, "height": 780}


def answer(page: Any, model: Any, n: int) -> None:
    """Fills in the question that is shown, with a typical value."""
    test = page.locator("h1").inner_text()
    for i, field in enumerate(model.form.fields(test)):
        name = f"[name='value.{i}']"
        if page.locator(f"{name}[type=radio]").count():
            page.locator(f"{name}[type=radio]").nth(n % 2).check()
        elif page.locator(f"select{name}").count():
            page.locator(f"select{name}").select_option(index=1 + n % 2)
        else:
            low, high = (0.0, 1.0) if field.low is None else (field.low, field.high)
            value = low + (high - low) * (0.3 + 0.1 * (n % 4))
            page.locator(name).fill(str(round(value)) if field.whole else f"{value:.3g}")
    press(page, "Answer")


def press(page: Any, words: str) -> None:
    page.evaluate("document.querySelector('main').dataset.old = '1'")
    page.get_by_role("button", name=words, exact=True).click()
    page.wait_for_function("() => !document.querySelector('main').dataset.old")


def shots(browser: Any, url: str, name: str, model: Any, out: Path) -> None:
    def opened(path: str, size: dict[str, int], scheme: str = "light") -> Any:
        page = browser.new_context(base_url=url, viewport=size, color_scheme=scheme).new_page()
        page.goto(path)
        return page

    def take(page: Any, file: str) -> None:
        page.evaluate("document.activeElement.blur()")
        page.wait_for_timeout(400)
        page.screenshot(path=out / f"{file}.png", full_page=True)

    take(opened("/", DESK), "models")
    page = opened(f"/m/{name}", DESK)
    take(page, "start")
    page.get_by_label("Name of the case").fill("A-17")
    press(page, "Start")
    for n in range(2):
        if page.locator("#decision").count() == 0:
            answer(page, model, n)
    take(page, "question")
    press(page, "Answer")
    take(page, "wrong")
    for n in range(2, 100):
        if page.locator("#decision").count():
            break
        answer(page, model, n)
    take(page, "decision")
    page.emulate_media(media="print")
    take(page, "record-printed")
    take(opened(f"/m/{name}/model", DESK), "model")
    take(opened(f"/m/{name}/model", DESK, "dark"), "model-dark")
    phone = opened(f"/m/{name}", PHONE, "dark")
    press(phone, "Start")
    take(phone, "question-phone")
    take(opened("/docs", DESK), "api")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("docs/page"))
    given = parser.parse_args()
    from askwise.store import load

    given.out.mkdir(parents=True, exist_ok=True)
    with serving(*given.model) as (port, _), chromium() as browser:
        shots(browser, f"http://127.0.0.1:{port}", given.model[0].stem, load(given.model[0]), given.out)


if __name__ == "__main__":
    main()

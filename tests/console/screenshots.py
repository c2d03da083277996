"""`make screenshots`: a picture of every page, light and dark, wide and on a phone, in English, Chinese and Japanese.

`python -m tests.console.screenshots --readme` takes those of README.md again.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.console.browser import (
    CHROMIUM,
    SHARED,
    addresses,
    browsing,
    furnished_server,
    public,
    sign_in,
)

WIDTHS = {"wide": {"width": 1280, "height": 860}, "phone": {"width": 390, "height": 844}}
READINGS_SECONDS = 150
LOCALES = {"en": "en-GB", "zh": "zh-CN", "ja": "ja-JP"}


def take(folder: Path) -> int:
    if CHROMIUM is None:
        sys.exit("chromium is not installed: see scripts/browser")
    folder.mkdir(parents=True, exist_ok=True)
    taken = 0
    with tempfile.TemporaryDirectory() as home, furnished_server(Path(home)) as server:
        for width, viewport in WIDTHS.items():
            for theme in ("light", "dark"):
                for language, locale in LOCALES.items():
                    options: dict[str, Any] = {"viewport": viewport, "color_scheme": theme, "locale": locale}
                    with browsing(**options) as page:
                        signed_in = False
                        for name in sorted(addresses(), key=lambda name: not public(name)):
                            if not public(name) and not signed_in:
                                sign_in(page, server)
                                signed_in = True
                            page.goto(server.url + addresses()[name])
                            page.wait_for_timeout(250)
                            path = folder / f"{name}-{width}-{theme}-{language}.png"
                            page.screenshot(path=path, full_page=True)
                            taken += 1
    SHARED.close()
    return taken


README: dict[str, str] = {
    "instance": "/console/projects/default/instances/train",
    "plan": "/console/plan?model=resnet50&batch=64&epochs=90&samples=1281167&precision=amp-fp16&deadline=7d",
    "launch": "/console/projects/default/launch",
}


def take_for_readme(folder: Path) -> int:
    """The three pictures that README.md shows. Charts need a few minutes of readings."""
    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 1180}, "locale": LOCALES["en"]}
    with tempfile.TemporaryDirectory() as home, furnished_server(Path(home)) as server:
        time.sleep(READINGS_SECONDS)
        with browsing(**options) as page:
            sign_in(page, server)
            for name, address in README.items():
                page.goto(server.url + address)
                if name == "plan":
                    page.locator("#plan table").first.wait_for()
                    page.evaluate("document.getElementById('plan').scrollIntoView()")
                page.wait_for_timeout(1000)
                page.screenshot(path=folder / f"{name}.png")
    SHARED.close()
    return len(README)


if __name__ == "__main__":
    if sys.argv[1] == "--readme":
        print(f"{take_for_readme(Path('docs/pictures'))} pictures in docs/pictures")
    else:
        print(f"{take(Path(sys.argv[1]))} pictures in {sys.argv[1]}")

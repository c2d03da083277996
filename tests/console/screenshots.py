"""`make screenshots`: a picture of every page, light and dark, wide and on a phone, in English, Chinese and Japanese."""

import sys
import tempfile
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


if __name__ == "__main__":
    print(f"{take(Path(sys.argv[1]))} pictures in {sys.argv[1]}")

"""Images that instances start from."""

from teraflock.client.noun import PAGE, Noun, pages
from teraflock.wire.image import ImageAnswer, ImagePage, ImageRequest


class Images(Noun):
    def page(self, *, after: str = "", limit: int = PAGE) -> ImagePage:
        return self._get(ImagePage, "images", after=after, limit=limit)

    def list(self) -> tuple[ImageAnswer, ...]:
        return pages(lambda after: self.page(after=after))

    def get(self, ref: str) -> ImageAnswer:
        return self._get(ImageAnswer, "images", ref)

    def create(self, request: ImageRequest, *, idempotency_key: str = "") -> ImageAnswer:
        return self._create(ImageAnswer, "images", body=request, idempotency_key=idempotency_key)

    def delete(self, ref: str) -> None:
        self._send("DELETE", "images", ref)

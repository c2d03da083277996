"""Images: what an instance boots."""

from typing import Any, Final, cast

from teraflock.client.transport import Transport, pages, path_of
from teraflock.wire.image import ImageAnswer, ImagePage, ImageRequest

PAGE: Final = 200


class Images(Transport):
    def images(self, *, after: str = "", limit: int = PAGE) -> ImagePage:
        return self.get(path_of("images"), ImagePage, **self.in_project(after=after, limit=limit))

    def all_images(self) -> list[ImageAnswer]:
        return pages(lambda after: self.images(after=after))

    def image(self, ref: str) -> ImageAnswer:
        return self.get(path_of("images", ref), ImageAnswer, **self.in_project())

    def make_image(self, request: ImageRequest, *, idempotency_key: str = "") -> ImageAnswer:
        query = cast(dict[str, Any], self.in_project())
        return self.create(path_of("images"), ImageAnswer, request, idempotency_key=idempotency_key, **query)

    def delete_image(self, ref: str) -> None:
        return self.act("DELETE", path_of("images", ref), type(None), **self.in_project())

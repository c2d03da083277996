"""Images on the wire."""

from teraflock.image.model import Image
from teraflock.wire.image import ImageAnswer


def image_answer(image: Image) -> ImageAnswer:
    return ImageAnswer(
        id=image.id,
        name=image.name,
        shared=image.shared,
        recipe=image.recipe,
        state=image.state,
        problem=image.problem,
        size_bytes=image.size_bytes,
        created_at=image.created_at,
    )

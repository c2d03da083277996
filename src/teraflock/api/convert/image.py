"""Images on the wire."""

from teraflock.base.filling import filled
from teraflock.image.model import Image
from teraflock.wire.image import ImageAnswer


def image_answer(image: Image) -> ImageAnswer:
    return filled(ImageAnswer, image)

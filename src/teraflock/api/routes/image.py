"""Images: the operator's, and a project's own."""

from teraflock.api.call import Call, cut
from teraflock.api.query import InProject, PageInProject
from teraflock.api.route import Routes, RouteWork, Scope
from teraflock.base.errors import BadInput
from teraflock.base.filling import filled
from teraflock.image.model import Image
from teraflock.tenant.rules import Permission
from teraflock.wire.image import ImageAnswer, ImagePage, ImageRequest

routes = Routes("images", scope=Scope.PROJECT, read=Permission.IMAGE_READ, write=Permission.IMAGE_WRITE)


@routes.get("/v1/images")
def list_images(call: Call, query: PageInProject) -> ImagePage:
    """List the images that instances of the project can start from."""
    found = call.nouns.images.page(call.project.id, after=query.after, limit=query.limit + 1)
    rows, last = cut(found, query.limit)
    return ImagePage(items=tuple(map(image_answer, rows)), next=last.id if last else None)


@routes.post(
    "/v1/images",
    status=202,
    creates=True,
    errors=("refused", "suspended", "quota_reached", "conflict", "unknown_name", "engine_down"),
)
def make_image(call: Call, query: InProject, body: ImageRequest) -> ImageAnswer:
    """Build an image from a recipe, or create one from an instance's disk.

    The response comes immediately; `state` shows when the image is ready.
    """
    if bool(body.recipe) == bool(body.instance):
        raise BadInput(
            "An image needs exactly one source",
            hint="Give either `recipe` or `instance`",
        )
    images = call.nouns.images
    if body.recipe:
        return image_answer(images.build(call.actor, call.project, body.name, body.recipe))
    return image_answer(images.from_instance(call.actor, call.project, body.name, body.instance))


@routes.get("/v1/images/{image}")
def show_image(call: Call, query: InProject, image: str) -> ImageAnswer:
    """Show one image, by id or name."""
    return image_answer(call.nouns.images.image(call.project.id, image))


@routes.delete("/v1/images/{image}", status=204, work=RouteWork.WRITE)
def delete_image(call: Call, query: InProject, image: str) -> None:
    """Delete an image of the project. Instances launched from it keep running."""
    call.nouns.images.delete(call.actor, call.project, image)


def image_answer(image: Image) -> ImageAnswer:
    return filled(ImageAnswer, image)

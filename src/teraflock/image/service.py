"""The image service for the edges. A loop builds images; an operation of the instance makes an image of its disk."""

import os
from collections.abc import Callable

from teraflock.base.clock import Clock
from teraflock.base.errors import Conflict, Forbidden, NotFound, unknown_name
from teraflock.base.ids import new_id
from teraflock.base.quantities import count_text
from teraflock.image import store
from teraflock.image.events import record_deletion
from teraflock.image.model import Image, ImageId, ImageState
from teraflock.image.recipe import known as recipe_names
from teraflock.storage.database import Database, Transaction
from teraflock.tenant.audit.acting import AuditedService
from teraflock.tenant.model import NO_PROJECT, Actor, Project, ProjectId
from teraflock.tenant.organisation.rules import check_active
from teraflock.tenant.quota import rules as quotas
from teraflock.tenant.quota.rules import QuotaAmounts
from teraflock.tenant.quota.store import name_and_quota

Publish = Callable[[Transaction, Actor, Project, str, str], str]
"""Asks an instance, by name, to make the image with this id from its disk. Returns the id of the instance."""


class ImageService(AuditedService):
    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        publish: Publish,
        random_bytes: Callable[[int], bytes] = os.urandom,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(database, clock, random_bytes, wake)
        self._publish = publish

    def page(self, project: ProjectId, *, after: str = "", limit: int) -> tuple[Image, ...]:
        with self._database.read() as tx:
            return store.page(tx, project, after=after, limit=limit)

    def image(self, project: ProjectId, ref: str) -> Image:
        with self._database.read() as tx:
            return _found(tx, project, ref)

    def build(self, actor: Actor, project: Project, name: str, recipe: str) -> Image:
        """Build an image from a recipe. An operator builds it for all projects. A failed build starts again."""
        if recipe not in recipe_names():
            raise unknown_name("recipe", recipe, recipe_names(), see=f"Recipes: {', '.join(recipe_names())}")
        scope = NO_PROJECT if actor.is_operator else project.id

        def work(tx: Transaction) -> Image:
            known = store.find(tx, scope, name)
            if known and known.project_id == scope and known.recipe == recipe:
                store.move(tx, known.id, ImageState.WAITING)
                return _found(tx, project.id, known.id)
            return self._make(tx, actor, project, name, scope, recipe, "")

        return self._write(work)

    def from_instance(self, actor: Actor, project: Project, name: str, instance: str) -> Image:
        """Make an image of an instance's current disk for this project."""
        return self._write(lambda tx: self._make(tx, actor, project, name, project.id, "", instance))

    def delete(self, actor: Actor, project: Project, ref: str) -> Image:
        def work(tx: Transaction) -> Image:
            image = _existing(store.find_to_remove(tx, project.id, ref), ref)
            if image.shared and not actor.is_operator:
                raise Forbidden(
                    f"The image `{image.name}` belongs to all projects", hint="Only an operator can delete it"
                )
            if users := store.users(tx, image.id):
                raise Conflict(
                    f"The image `{image.name}` is in use by {count_text(users, 'instance')}",
                    hint="Delete them first. `tera ps` lists them",
                )
            if store.move(tx, image.id, ImageState.DELETING, size_bytes=image.size_bytes):
                record_deletion(tx, image, self._clock.now(), self._random_bytes)
                self._record(tx, actor, project, "image.delete", image)
            return image

        return self._write_with_locks(work)

    def _make(
        self,
        tx: Transaction,
        actor: Actor,
        project: Project,
        name: str,
        scope: ProjectId,
        recipe: str,
        instance: str,
    ) -> Image:
        now = self._clock.now()
        known = store.find(tx, scope, name)
        if known and known.project_id == scope:
            raise Conflict(
                f"An image `{name}` already exists", hint="Choose another name, or delete the existing image"
            )
        if scope:
            check_active(tx, project.organisation_id)  # a build uses processors and the network
            _check_quota(tx, project)
        id = ImageId(new_id("img", now, self._random_bytes))
        source = self._publish(tx, actor, project, instance, id) if instance else ""
        image = Image(
            id=id,
            project_id=scope,
            name=name,
            recipe=recipe,
            state=ImageState.WAITING,
            source_instance_id=source,
            created_at=now,
            created_by=actor.member_id,
        )
        store.insert(tx, image)
        self._record(tx, actor, project, "image.make", image)
        return image

    def _record(self, tx: Transaction, actor: Actor, project: Project, action: str, image: Image) -> None:
        """Recorded in the actor's project: images that operators build belong to no project."""
        home = actor.organisation_id
        self._audit.record_in(tx, home, actor, action, image.id, project.id, name=image.name)


def _check_quota(tx: Transaction, project: Project) -> None:
    """The size of an image is known only when it is ready, so only an image that starts above the quota is refused."""
    more, hint = QuotaAmounts(images_bytes=1), "Delete an image, or wait until unfinished images are ready"
    used = QuotaAmounts(images_bytes=store.kept_bytes(tx, project.id))
    quotas.check(project.quota, used, more, of=f"project `{project.name}`", hint=hint)
    name, outer = name_and_quota(tx, project.organisation_id)
    used = QuotaAmounts(images_bytes=store.kept_bytes_of_organisation(tx, project.organisation_id))
    quotas.check(outer, used, more, of=f"organisation `{name}`", hint=hint)


def _found(tx: Transaction, project: str, ref: str) -> Image:
    return _existing(store.find(tx, project, ref), ref)


def _existing(image: Image | None, ref: str) -> Image:
    if image is None:
        raise NotFound(f"There is no image `{ref[:80]}`", hint="`tera image list` lists all images")
    return image

"""The loop that builds images on every engine, and removes images that are no longer wanted."""

import logging
from functools import partial
from typing import Final

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.image import store
from teraflock.image.events import record_size
from teraflock.image.model import Image, ImageState
from teraflock.instance.across import store as across
from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.model import InstanceId
from teraflock.instance.states import ENDED
from teraflock.reconcile.surroundings import Surroundings
from teraflock.storage.database import Transaction

LOG: Final = logging.getLogger("teraflock.reconcile")


class ImageLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._complete: set[str] = set()
        """Sites that have every image, as far as this process knows."""

    def turn(self) -> None:
        with self._around.database.read() as tx:
            due = store.to_build_in_all_projects(tx)
        for image in due:
            try:
                if image.state == ImageState.DELETING:
                    self._remove(image)
                else:
                    self._build(image)
            except Unavailable as error:
                LOG.warning("the image %s has to wait: %s", image.name, error.sentence)
            except TeraflockError as error:
                LOG.warning("the image %s failed: %s %s", image.name, error.sentence, dict(error.context))
                self._set(image, ImageState.FAILED, problem=error.sentence)
            except Exception:
                LOG.exception("the image %s failed", image.name)
                self._set(image, ImageState.FAILED, problem="Internal error; see the server's log")
        for driver in self._around.engines:
            if Capability.BUILDS in driver.capabilities and driver.site not in self._complete:
                self._complete_site(driver)
        self._measure()

    def _measure(self) -> None:
        """Ask engines for the size of images made from instances. They are charged from then on."""
        with self._around.database.read() as tx:
            unknown = store.to_measure_in_all_projects(tx)
            # Only the site where it was made has it, and only that site is believed.
            site_of = {each.id: across.site_in_all_projects(tx, each.source_instance_id) for each in unknown}
        if not unknown:
            return
        sizes: dict[str, int] = {}
        for driver in self._around.engines:
            try:
                held = driver.images()
            except TeraflockError as error:
                LOG.warning("%s: cannot read the sizes of images: %s", driver.site, error.sentence)
                continue
            sizes |= {id: held[id] for id, site in site_of.items() if site == driver.site and id in held}
        for image in unknown:
            if image.id in sizes:
                self._around.database.write(partial(self._note_kept, image, sizes[image.id]))

    def _note_kept(self, image: Image, size_bytes: int, tx: Transaction) -> None:
        fresh = store.by_id_in_all_projects(tx, image.id)
        if fresh is None or fresh.state != ImageState.READY or fresh.sequence:
            return  # deleted or measured in the meantime
        if fresh.is_metered:
            record_size(tx, fresh, size_bytes, self._around.clock.now(), self._around.random_bytes)
        else:
            store.set_metered(tx, fresh.id, size_bytes, 1)

    def _build(self, image: Image) -> None:
        """Build an image at every site. Engines keep what they have, so a repeated build costs nothing. A
        site that does not answer gets the image later, unless no site answers."""
        size, away = 0, []
        builders = [each for each in self._around.engines if Capability.BUILDS in each.capabilities]
        for driver in builders:
            try:
                driver.build_image(image.id, image.recipe)
                size = max(size, driver.images().get(image.id, 0))
            except Unavailable as error:
                away.append(error)
                self._complete.discard(driver.site)
        if away and len(away) == len(builders):
            raise away[0]
        if not self._set(image, ImageState.READY, size_bytes=size) and not self._exists(image):
            self._delete(image)  # another server removed it while it was built here

    def _complete_site(self, driver: ComputeDriver) -> None:
        """Build the images that a site lacks because it was added later, or was away."""
        with self._around.database.read() as tx:
            wanted = store.built_in_all_projects(tx)
        try:
            held = driver.images() if wanted else {}
            for image in wanted:
                if image.id not in held:
                    driver.build_image(image.id, image.recipe)
        except TeraflockError as error:
            LOG.warning("%s: cannot complete its images yet: %s", driver.site, error.sentence)
            return
        self._complete.add(driver.site)

    def _remove(self, image: Image) -> None:
        with self._around.database.read() as tx:
            source = across.by_id_in_all_projects(tx, InstanceId(image.source_instance_id))
        if source and source.request and source.request.subject == image.id and source.phase not in ENDED:
            return  # it is being made: what would be deleted now comes back
        self._delete(image)
        self._around.database.write(lambda tx: store.remove(tx, image.id))

    def _delete(self, image: Image) -> None:
        for driver in self._around.engines:
            driver.delete_image(image.id)

    def _exists(self, image: Image) -> bool:
        with self._around.database.read() as tx:
            return store.by_id_in_all_projects(tx, image.id) is not None

    def _set(self, image: Image, state: ImageState, *, problem: str = "", size_bytes: int = 0) -> bool:
        """Write the state. False: the image has another state meanwhile."""
        return self._around.database.write(
            lambda tx: store.move(tx, image.id, state, problem=problem, size_bytes=size_bytes)
        )

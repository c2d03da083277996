"""Datasets on the simulated hosts."""

import io
import tarfile
from collections.abc import Sequence
from hashlib import sha256

from msgspec.structs import replace

from teraflock.dataset.model import FOLDER, DatasetCopy
from teraflock.drivers.simulated.calls import Calls, SimulatedCall
from teraflock.drivers.simulated.model import Guest, SimulatedDataset, dataset_key
from teraflock.instance.driver import Machine
from teraflock.instance.engine_errors import EngineBusy, EngineMissing, EngineRefused


class SimulatedDatasets(Calls):
    def datasets(self) -> Sequence[DatasetCopy]:
        with self._asking("datasets") as call:
            every = call.turn.every(SimulatedDataset)
        return [
            DatasetCopy(dataset_id=each.dataset_id, host=each.host)
            for each in every
            if each.mark == self._mark and each.files is not None and each.host not in call.weather.away
        ]

    def receive_dataset(self, host: str, dataset_id: str, offset: int, piece: bytes) -> None:
        with self._changing("receive_dataset") as call:
            found = self._dataset(call, host, dataset_id)
            if len(found.received) < offset:
                raise EngineRefused("The simulated host has less of the dataset than expected")
            kept = found.received[:offset] + piece[: len(piece) // 2 if call.half else None]
            call.turn.put(replace(found, received=kept))

    def unpack_dataset(self, host: str, dataset_id: str, digest: str, size_bytes: int) -> None:
        with self._changing("unpack_dataset") as call:
            found = self._dataset(call, host, dataset_id)
            if found.files is not None or call.half:
                return
            if sha256(found.received).hexdigest() != digest:
                raise EngineRefused("The simulated host received a different dataset from the announced one")
            with tarfile.open(fileobj=io.BytesIO(found.received)) as archive:
                files = {
                    each.name: content.read() for each in archive if (content := archive.extractfile(each))
                }
            call.turn.put(replace(found, received=b"", files=files))

    def delete_dataset(self, host: str, dataset_id: str) -> None:
        with self._changing("delete_dataset") as call:
            guests = [each for each in call.turn.on_host(Guest, host) if each.mark == self._mark]
            if any(dataset_id == each.id for guest in guests for each in guest.machine.data):
                raise EngineBusy("A simulated instance uses the dataset")
            call.turn.remove(SimulatedDataset, dataset_key(self._mark, host, dataset_id))

    def _dataset(self, call: SimulatedCall, host: str, dataset_id: str) -> SimulatedDataset:
        if host in call.weather.away:
            raise EngineMissing("The simulated host does not answer")
        found = call.turn.get(SimulatedDataset, dataset_key(self._mark, host, dataset_id))
        return found or SimulatedDataset(dataset_id=dataset_id, host=host, mark=self._mark)

    def _mounted(self, call: SimulatedCall, machine: Machine) -> dict[str, bytes]:
        """The files of a machine's datasets, by their paths in the guest."""
        files: dict[str, bytes] = {}
        for each in machine.data:
            held = self._dataset(call, machine.handle.host, each.id)
            if held.files is None:
                raise EngineMissing("The simulated host does not have this dataset")
            files |= {f"{FOLDER}/{each.name}/{path}": content for path, content in held.files.items()}
        return files

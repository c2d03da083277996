"""Public addresses of a project."""

from teraflock.client.noun import Noun
from teraflock.wire.address import AddressAnswer, AddressList, AddressRequest, AddressTargetRequest

_PATH = "addresses"


class Addresses(Noun):
    def list(self) -> tuple[AddressAnswer, ...]:
        return self._get(AddressList, _PATH).items

    def create(self, address: str = "", *, idempotency_key: str = "") -> AddressAnswer:
        """Take a certain address of the pool, or a free one."""
        body = AddressRequest(address=address)
        return self._create(AddressAnswer, _PATH, body=body, idempotency_key=idempotency_key)

    def attach(self, address: str, target: str) -> AddressAnswer:
        body = AddressTargetRequest(target=target)
        return self._act("PUT", AddressAnswer, _PATH, address, "target", body=body)

    def detach(self, address: str) -> AddressAnswer:
        return self._act("DELETE", AddressAnswer, _PATH, address, "target")

    def release(self, address: str) -> None:
        self._send("DELETE", _PATH, address)

"""A fake of Vast's API: a market of machines, each rented once at a time."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from tests.fakes.base import FakeCloud, FakeMachine

COUNTRIES = {"US": 400_000, "DE": 500_000}
"""Price per hour in micro-units."""
MACHINES_PER_COUNTRY = 4


def with_slashes(spec: Any) -> Any:
    """The service needs a slash at the end of every path, and the description has none."""
    for path in list(spec["paths"]):
        if not path.endswith("/"):
            spec["paths"][f"{path}/"] = spec["paths"].pop(path)
    return spec


class FakeVast(FakeCloud):
    spec = "vast-openapi.yaml"
    judged_with: ClassVar = {"change": with_slashes}
    troubles: ClassVar = frozenset({"broke"})
    leaves_low_bids = False
    """Whether a refused launch leaves a machine, as a low bid does."""

    def route(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        if (method, path) == ("GET", "/api/v0/users/current/"):
            return 200, {"id": 1, "balance": 12.5, "email": "a@example.com", "ssh_key": "", "sid": ""}
        if (method, path) == ("POST", "/api/v0/bundles/"):
            return 200, {"offers": self._offers(body)}
        if (method, path) == ("GET", "/api/v1/instances/"):
            return self._page(query)
        if method == "PUT" and (found := re.fullmatch(r"/api/v0/asks/(\d+)/", path)):
            return self._accept(int(found[1]), body)
        if method == "DELETE" and (found := re.fullmatch(r"/api/v0/instances/(\d+)/", path)):
            if self.end(found[1]):
                return 200, {"success": True}
            return 404, {"success": False, "error": "not_found", "msg": "Instance not found"}
        return 404, {"success": False, "error": "not_found", "msg": path}

    def unauthorised(self) -> tuple[int, Any]:
        return 404, {"success": False, "error": "auth_error", "msg": "Invalid user key"}

    def too_many(self) -> Any:
        return {"detail": "API requests too frequent endpoint threshold=4.5"}

    def new_id(self, number: int) -> str:
        return str(5_000_000 + number)

    def _offers(self, body: Any) -> list[Any]:
        wanted = body.get("geolocation", {}).get("in", list(COUNTRIES))
        limit = body.get("dph_total", {}).get("lte", 1e9)
        taken = {each.label["ask"] for each in self.alive}
        return [
            self._offer(country, ask)
            for number, (country, micros) in enumerate(COUNTRIES.items())
            for ask in range(100 * number + 1, 100 * number + 1 + MACHINES_PER_COUNTRY)
            if country in wanted and ask not in taken and micros / 10**6 <= limit
            if not ("geolocation" in body and country in self.sold_out)
        ]

    def _offer(self, country: str, ask: int) -> Any:
        return {
            "id": ask,
            "machine_id": ask,
            "gpu_name": "RTX 4090",
            "num_gpus": 1,
            "gpu_ram": 24564,
            "cpu_cores_effective": 16.0,
            "cpu_ram": 64_000,
            "disk_space": 500.0,
            "dph_total": COUNTRIES[country] / 10**6,
            "min_bid": COUNTRIES[country] / 2 / 10**6,
            "geolocation": f"Somewhere, {country}",
        }

    def _accept(self, ask: int, body: Any) -> tuple[int, Any]:
        if self.broke:
            return 400, {
                "success": False,
                "error": "invalid_args",
                "msg": "Your credit is too low to rent this.",
            }
        country = list(COUNTRIES)[ask // 100]
        if ask in {each.label["ask"] for each in self.alive} or country in self.sold_out:
            return 410, {"success": False, "error": "no_such_ask", "msg": f"no_such_ask {ask}", "ask_id": ask}
        price = round(body["price"] * 10**6) if "price" in body else COUNTRIES[country]
        made = self.launch(
            type="RTX 4090",
            region=country,
            label={"label": body["label"], "ask": ask},
            boot=body["onstart"],
            keys=[],
            gpus=1,
            gpu_memory_bytes=24564 << 20,
            micros_per_hour=price,
        )
        if price < COUNTRIES[country] / 2:
            refused = {
                "success": False,
                "error": "invalid_price",
                "msg": "The bid is too low.",
                "ask_id": ask,
            }
            return 400, {**refused, "new_contract": int(made.id)}
        return 200, {"success": True, "new_contract": int(made.id)}

    def _page(self, query: Mapping[str, str]) -> tuple[int, Any]:
        size, after = int(query.get("limit", "25")), int(query.get("after_token", "0"))
        found = [each for each in self.listed() if int(each.id) > after]
        page = found[:size]
        return 200, {
            "success": True,
            "instances": [self._instance(each) for each in page],
            "instances_found": len(page),
            "total_instances": len(found),
            "label_counts": {},
            "next_token": page[-1].id if len(found) > size else None,
        }

    def _instance(self, each: FakeMachine) -> Any:
        up = self.is_up(each)
        ports = {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": "22"}]} if up else None
        state = "stopped" if each.outbid else "running"
        return {
            "id": int(each.id),
            "label": each.label["label"],
            "actual_status": "exited" if each.dead or each.outbid else "running" if up else "loading",
            "cur_state": state,
            "next_state": state,
            "intended_status": state,
            "status_msg": "success, running" if up else "loading",
            "public_ipaddr": each.address,
            "ports": ports,
            "dph_total": each.micros_per_hour / 10**6,
            "geolocation": f"Somewhere, {each.region}",
            "start_date": self.told(each).timestamp(),
            "extra_env": [],
        }

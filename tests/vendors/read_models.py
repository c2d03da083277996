"""Reads which fields, types and values the models of a provider's SDK have, and writes them as the small tables that
judge the fakes in every run: `.venv-vendors/bin/python -m tests.vendors.read_models`.

A type is `text`, `whole`, `number`, `flag`, `any`, the name of a model, `[TYPE]` for a list, `{TYPE}` for a mapping, or
the values of an enumeration, each with `|` after it. `!` after it: the SDK refuses an answer without this field.
"""

# ruff: noqa: E501 -- names of models

import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "fakes" / "models"
PLAIN = {
    "str": "text", "string": "text", "datetime": "text", "date": "text", "UUID": "text", "int": "whole",
    "long": "whole", "float": "number", "double": "number", "bool": "flag", "object": "any", "dict": "any", "Any": "any",
}  # fmt: skip
Model = dict[str, str]
Reader = Callable[[str], Model | None]
"""From the name of a model to its fields, with its name under the empty field."""


def table(packages: Iterable[str], read: Reader, roots: Iterable[str]) -> dict[str, Any]:
    """The models of an SDK from some on, as deep as they lead to fields that an answer must have, or that we name."""
    models: dict[str, Model] = {}
    waiting = list(roots)
    known = set(roots)
    while waiting:
        found = read(waiting.pop())
        if found is None:
            continue
        name, fields = found.pop(""), found
        models[name] = fields
        for type in fields.values():
            inner = re.sub(r"[\[\]{}!]", "", type)
            if inner[:1].isupper() and "|" not in inner and inner not in known and type.endswith("!"):
                known.add(inner)
                waiting.append(inner)
    return {
        "sdk": [f"{each} {version(each)}" for each in packages],
        "models": {name: _pruned(fields, models) for name, fields in sorted(models.items())},
    }


def _pruned(fields: Model, models: dict[str, Model]) -> Model:
    """The fields with `any` for models that the table does not have."""

    def known(found: re.Match[str]) -> str:
        return found[0] if found[0] in models else "any"

    return {
        name: type if "|" in type else re.sub(r"[A-Z]\w*", known, type)
        for name, type in sorted(fields.items())
    }


def typed(text: str) -> str:
    """A type as SDKs write it, in the words of the tables."""
    text = text.strip().strip("'\"")
    if found := re.fullmatch(r"(?:List|list|Sequence)\[(.*)\]", text):
        return f"[{typed(found[1])}]"
    if found := re.fullmatch(r"(?:Dict|dict)[\[(]\s*\w+\s*,\s*(.*)[\])]", text):
        return f"{{{typed(found[1])}}}"
    text = re.sub(r"^Optional\[(.*)\]$", r"\1", text)
    text = re.sub(r"^ForwardRef\('(\w+)'\)$", r"\1", text).strip("'\"")
    if re.match(r"(?:List|Dict)\[", text):
        return typed(text)
    return PLAIN.get(text.rpartition(".")[2], text.rpartition(".")[2])


def ibm(name: str) -> Model | None:
    module = importlib.import_module("ibm_vpc.vpc_v1")
    kind = getattr(module, name, None)
    if kind is None or not inspect.isclass(kind):
        return None
    fields: Model = {"": name}
    for each in list(inspect.signature(kind.__init__).parameters.values())[1:]:
        words = each.annotation if isinstance(each.annotation, str) else _ibm_text(each.annotation)
        enum = getattr(kind, "".join(part.capitalize() for part in each.name.split("_")) + "Enum", None)
        type = (
            "".join(f"{value}|" for value in sorted(one.value for one in enum))
            if enum and typed(words) == "text"
            else typed(words)
        )
        fields[each.name.rstrip("_")] = type + ("!" if each.default is inspect.Parameter.empty else "")
    return fields if len(fields) > 1 else None


def _ibm_text(annotation: Any) -> str:
    text = annotation.__name__ if inspect.isclass(annotation) else str(annotation)
    return re.sub(r"ForwardRef\('(\w+)'\)", r"\1", text).replace("typing.", "")


def _needed(kind: Any) -> list[str]:
    """The members that a model cannot be made without."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return [each.name for each in parameters if each.default is inspect.Parameter.empty]


def huawei(name: str) -> Model | None:
    for package in ("huaweicloudsdkecs", "huaweicloudsdkevs"):
        kind = getattr(importlib.import_module(f"{package}.v2"), name, None)
        if kind is None:
            continue
        needed = _needed(kind)
        return {"": name} | {
            kind.attribute_map[each]: typed(type) + ("!" if each in needed else "")
            for each, type in kind.openapi_types.items()
        }
    return None


CHOSEN = {
    "PreemptionAction": "TerminatePreemptionAction",
    "InstanceSourceDetails": "InstanceSourceViaImageDetails",
}
"""Models of Oracle that have several forms, and the one that we use."""


def oracle(name: str) -> Model | None:
    for package in ("core", "identity"):
        kind = getattr(importlib.import_module(f"oci.{package}.models"), name, None)
        if kind is None:
            continue
        made = kind()
        made.swagger_types = {key: CHOSEN.get(type, type) for key, type in made.swagger_types.items()}
        fields: Model = {"": name}
        for each, type in made.swagger_types.items():
            setter = inspect.getsource(getattr(kind, each).fset)
            values = re.search(r"allowed_values = \[(.*?)\]", setter)
            words = (
                "".join(f"{value}|" for value in sorted(re.findall(r'"([^"]*)"', values[1])))
                if values
                else typed(type)
            )
            needed = "**[Required]**" in (getattr(kind, each).fget.__doc__ or "")
            fields[made.attribute_map[each]] = words + ("!" if needed else "")
        return fields
    return None


def baidu(name: str) -> Model | None:
    module = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    kind = None
    for package in ("bcc", "eip"):
        try:
            kind = getattr(importlib.import_module(f"baiducloud_python_sdk_{package}.models.{module}"), name)
        except ModuleNotFoundError:
            continue
    if kind is None:
        return None
    types = dict(re.findall(r":type (\w+): (.+?)(?: \(\w+\))?\n", f"{kind.__init__.__doc__}\n"))
    source = inspect.getsource(kind.to_dict)
    wire = {field: key for key, field in re.findall(r"result\['(\w+)'\] = [^\n]*?self\.(\w+)", source)}
    needed = _needed(kind)
    return {"": name} | {
        key: typed(types[field]) + ("!" if field in needed else "")
        for field, key in wire.items()
        if field in types
    }


def alibaba(name: str) -> Model | None:
    kind = getattr(importlib.import_module("alibabacloud_ecs20140526.models"), name, None)
    if kind is None:
        return None
    wire = dict(re.findall(r"self\.(\w+) = m\.get\('([\w.]+)'\)", inspect.getsource(kind.from_map)))
    source = inspect.getsource(kind.to_map)
    wire |= {field: key for key, field in re.findall(r"result\['([\w.]+)'\] = self\.(\w+)", source)}
    wire |= dict(re.findall(r"for \w+ in self\.(\w+):\s+result\['([\w.]+)'\]\.append", source))
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return {"": name} | {
        wire.get(each.name, each.name): typed(_ibm_text(each.annotation)) for each in parameters
    }


SDKS: dict[str, tuple[tuple[str, ...], Reader, tuple[str, ...]]] = {
    "ibm": (
        ("ibm-vpc",),
        ibm,
        (
            "Instance", "InstanceCollection", "InstanceProfile", "InstanceProfileCollection", "FloatingIP",
            "FloatingIPCollection", "Volume", "VolumeCollection", "PageLink",
            "InstancePrototypeInstanceByImageInstanceByImageInstanceByNetworkAttachment",
            "InstanceNetworkAttachmentPrototype", "VolumeAttachmentPrototypeInstanceByImageContext",
            "VolumePrototypeInstanceByImageContext", "InstanceAvailabilityPrototype",
            "InstanceAvailabilityPolicyPrototype", "InstanceReservationAffinityPrototype",
            "FloatingIPPrototypeFloatingIPByTarget", "InstanceNetworkAttachmentReference", "InstanceProfileGPUFixed",
            "InstanceProfileGPUModel", "InstanceProfileGPUMemoryFixed", "InstanceProfileMemoryFixed",
            "InstanceProfileVCPUFixed", "VirtualNetworkInterfaceReferenceAttachmentContext",
            "InstanceNetworkAttachmentPrototypeVirtualNetworkInterfaceVirtualNetworkInterfacePrototypeInstanceNetworkAttachmentContext",
        ),
    ),
    "huawei": (
        ("huaweicloudsdkecs", "huaweicloudsdkevs"),
        huawei,
        (
            "PostPaidServer", "CreatePostPaidServersRequestBody",
            "PostPaidServerNic", "PostPaidServerPublicip", "PostPaidServerEip", "PostPaidServerEipBandwidth",
            "PostPaidServerRootVolume", "PostPaidServerTag", "PostPaidServerExtendParam", "CreatePostPaidServersResponse",
            "DeleteServersRequestBody", "ServerId", "DeleteServersResponse", "ListServersDetailsResponse", "ServerDetail",
            "ServerFlavor", "ServerAddress", "ListFlavorsResponse", "Flavor", "FlavorExtraSpec", "ListVolumesResponse",
            "VolumeDetail", "DeleteVolumeResponse",
        ),
    ),
    "oci": (
        ("oci",),
        oracle,
        (
            "Instance", "LaunchInstanceDetails", "CreateVnicDetails", "InstanceSourceViaImageDetails",
            "PreemptibleInstanceConfigDetails", "TerminatePreemptionAction", "Shape", "VnicAttachment", "PrivateIp",
            "PublicIp", "BootVolume", "BootVolumeAttachment", "AvailabilityDomain",
        ),
    ),
    "baidu": (
        ("baiducloud-python-sdk-bcc", "baiducloud-python-sdk-eip"),
        baidu,
        (
            "CreateInstanceBySpecRequest", "CreateInstanceBySpecResponse", "Billing", "TagModel", "Tag",
            "ListInstancesResponse", "InstanceModel", "ReleaseInstanceByPostRequest", "ZoneResourceDetailSpec",
            "BccResources", "BccFlavorGroup", "BccFlavor", "VolumeModel", "ListVolumesResponse",
            "ListFlavorSpecResponse", "ReleaseVolumeRequest", "VolumeAttachmentModel", "QueryEipListResponse",
            "EipModel",
        ),
    ),
    "alibaba": (
        ("alibabacloud-ecs20140526",),
        alibaba,
        (
            "RunInstancesResponseBody", "RunInstancesResponseBodyInstanceIdSets", "DescribeInstancesResponseBody",
            "DescribeInstancesResponseBodyInstances", "DescribeInstancesResponseBodyInstancesInstance",
            "DescribeInstancesResponseBodyInstancesInstancePublicIpAddress",
            "DescribeInstancesResponseBodyInstancesInstanceEipAddress",
            "DescribeInstancesResponseBodyInstancesInstanceTags",
            "DescribeInstancesResponseBodyInstancesInstanceTagsTag",
            "DescribeInstanceTypesResponseBody", "DescribeInstanceTypesResponseBodyInstanceTypes",
            "DescribeInstanceTypesResponseBodyInstanceTypesInstanceType", "DescribePriceResponseBody",
            "DescribePriceResponseBodyPriceInfo", "DescribePriceResponseBodyPriceInfoPrice",
            "DeleteInstancesResponseBody", "StopInstancesResponseBody", "StartInstancesResponseBody",
            "DescribeDisksResponseBody", "DescribeDisksResponseBodyDisks", "DescribeDisksResponseBodyDisksDisk",
            "DescribeDisksResponseBodyDisksDiskTags", "DescribeDisksResponseBodyDisksDiskTagsTag",
            "DeleteDiskResponseBody",
        ),
    ),
}  # fmt: skip
"""By cloud: packages, how their models are read, and the models that our calls use."""


def written(found: dict[str, Any]) -> str:
    lines = [f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in found["models"].items()]
    return f'{{"sdk": {json.dumps(found["sdk"])}, "models": {{\n' + ",\n".join(lines) + "\n}}\n"


def main() -> None:
    for cloud, (packages, read, roots) in SDKS.items():
        text = written(table(packages, read, roots))
        (FOLDER / f"{cloud}.json").write_text(text)


if __name__ == "__main__":
    main()

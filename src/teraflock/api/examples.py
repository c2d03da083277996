"""Examples of the main requests, for the OpenAPI document. A test decodes every one as the server would."""

from collections.abc import Mapping
from typing import Any, Final

EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "launch_instances": {
        "small": {"name": "web", "shape": {"vcpus": 2, "ram_bytes": 4 << 30}},
        "gpus": {
            "name": "train",
            "shape": {"gpu": "V100", "gpus": 2},
            "image": "pytorch",
            "authorized_keys": [
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJv0m2y0m2y0m2y0m2y0m2y0m2y0m2y0m2y0m2y0m2y0"
            ],
            "labels": {"team": "vision"},
        },
        "notebook": {"name": "lab", "shape": {"name": "V100-SXM2x1"}, "access": "jupyter"},
        "command": {
            "shape": {"gpu": "A100"},
            "access": "command",
            "command": ["python3", "train.py", "--epochs", "90"],
            "environment": {"WANDB_MODE": "offline"},
        },
    },
    "resize_instance": {
        "limits": {"shape": {"vcpus": 8, "ram_bytes": 32 << 30}},
        "cards": {"shape": {"gpus": 4}},
    },
    "exec_in_instance": {"list": {"command": ["nvidia-smi", "-L"], "seconds_max": 10}},
    "create_balancer": {
        "HTTP": {
            "name": "web",
            "port": 80,
            "instances": ["web-1", "web-2"],
            "protocol": "http",
            "check": "http:/health",
        },
        "by label": {"name": "api", "port": 8080, "label": "app=api", "publish": True},
    },
    "make_snapshot": {"before": {"name": "before-upgrade"}},
    "restore_instance": {"back": {"snapshot": "before-upgrade"}},
    "make_image": {
        "recipe": {"name": "pytorch", "recipe": "pytorch"},
        "instance": {"name": "our-tools", "instance": "web"},
    },
    "make_organisation": {"lab": {"name": "vision-lab", "owner": "head@vision.example"}},
    "make_project": {"plain": {"name": "segmentation"}},
    "set_quota": {"quota": {"instances": 20, "vcpus": 128, "gpus": {"V100-SXM2": 8}, "gpus_default": 0}},
    "add_member": {
        "student": {"name": "student@vision.example", "role": "member", "project": "segmentation"}
    },
    "set_role": {"viewer": {"role": "viewer"}, "none": {"role": None, "project": "segmentation"}},
    "make_key": {"for CI": {"name": "ci", "project": "segmentation", "role_max": "member", "days": 90}},
    "change_host": {"maintenance": {"state": "draining"}},
}

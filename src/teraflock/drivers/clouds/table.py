"""The clouds that can be rented from, and where each is written. Loads none of them."""

from collections.abc import Mapping
from typing import Final

CLOUDS: Final[Mapping[str, str]] = {
    "aws": "ec2:Ec2Cloud",
    "azure": "azure:AzureCloud",
    "gcp": "gce:GceCloud",
    "lambda": "lambda_cloud:LambdaCloud",
    "runpod": "runpod:RunPodCloud",
    "vast": "vast:VastCloud",
}
"""Kind of site → module and class."""

"""The clouds that can be rented from, and where each is written. Loads none of them."""

from collections.abc import Mapping
from typing import Final

CLOUDS: Final[Mapping[str, str]] = {
    "alibaba": "alibaba:AlibabaCloud",
    "aws": "ec2:Ec2Cloud",
    "azure": "azure:AzureCloud",
    "baidu": "baidu:BaiduCloud",
    "gcp": "gce:GceCloud",
    "genesis": "genesis:GenesisCloud",
    "huawei": "huawei:HuaweiCloud",
    "ibm": "ibm:IbmCloud",
    "lambda": "lambda_cloud:LambdaCloud",
    "oci": "oracle:OracleCloud",
    "paperspace": "paperspace:PaperspaceCloud",
    "runpod": "runpod:RunPodCloud",
    "tencent": "tencent:TencentCloud",
    "vast": "vast:VastCloud",
}
"""Kind of site → module and class."""

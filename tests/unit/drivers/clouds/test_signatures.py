"""Signatures that the providers' own SDKs made, with made-up keys, compared with ours.

Made with tencentcloud-sdk-python-common 3.1.178, alibabacloud-tea-openapi 0.4.6, huaweicloudsdkcore 3.1.219,
bce-python-sdk 0.9.79, oci 2.189.0 and google-auth 2.62.2. The RSA key exists only in this file.
"""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from teraflock.base.errors import BadInput
from teraflock.drivers.clouds.calls import CloudReply
from teraflock.drivers.clouds.signatures import (
    AlibabaSigner,
    BaiduSigner,
    HuaweiSigner,
    OracleSigner,
    TencentSigner,
)
from teraflock.drivers.clouds.signing import Signer, SigningRequest
from teraflock.drivers.clouds.tokens import AzureSigner, GoogleSigner, IbmSigner

AT = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
RSA_KEY = """\
-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDA1v4pRi44spXr
ba8iQd1Pw8vcGSaEBsyijzeHCLnRv8jRC6qjv/VQ3nQ7NkP1K8EUnuf5XcQxcqH1
z1YeYGClReEngiSuJWLPf9BxFqFmrK+WFSPuBVV49T2fXZhfi367Z2MAyJUNJOaK
5oOj0JNH0i9fLzyC59hucMUR5CxnxQhbDhmQAfD9BHXD5Be/jIvo8ymPxMMBstsD
SIGgZZcUosgQIRVGpVNIRy5Qc3YrqM4++jyJj+P6nwoRIG21ygjW1iSa16ATJorQ
H+hERWZ4lXPUqV0IToUqhtrCP3TG67rqpupivsUcakkTqlvRTqYe/ZcBp9ZJuRul
1/mkXu0DAgMBAAECggEABKZKZjFd1O/NYz9M8o0BqouEg0/h7gYB8ht05x8ZPTWc
FcTrvjCsgrYnuZ5t1gqniE6VNkiB/f/kaCUHJQqwLzFM+U25168UFP+2cBDvyaYj
7QD2fFCJm+CB4LFPhrePfIeaIKngGiXdHyqUBaOg9swvveJJhGMrBJgDJb10KqOl
VUQ6oJmeN2Ozr0mjltS6j5qI8c5WMCGkCtvyks0GTiTY8p0SgSVmmOrNCei49kqv
ZY2Lc4Z8bxo+/jEuqwcQWeK5EZK0BD5wVZOfsAtNgjHdg12Sz1pJ1HRJ4zDW56e5
e8cuQN1C5wpgwcpUloZvV4G0ZVsaQjDdtlMJVI8OPQKBgQDi1mC68jjqFZicW7K6
jWhAJfVajjAAGNVgLWkdwNK2cahnguUQshGU91l/NuoMzG2I+H4fVhP4XwOT7hhb
ZI8XN0rqff1TDwmwDlmhx/xw5erQAQkJxkDuHIHEiH6/8vx9WPlRRPA7aSl2OGG1
RaEtsrW/EGjOXJSnfWUmbjFfjwKBgQDZobGSbsNcAtdGk0L2PpeHPvBvZKFtDOmo
AjzMfYr51B9vaKTz/j+z5WYCXW4Nl489yM2MrazoTKBHfQ1+lfcVANFbYmsRUxlU
6Jv5sYGZf6ap/+T9ACdfsIyGOwn/5H4OJ3tsqjYnJnoEs2plHiEcoLWzbTyb+zeI
TBO6aLBhTQKBgAPqJTM0uOy5QK/6GSSFCjaJMSnF6GgoBY6qWfUMfdZuMbTPmnpm
SE1k02ORpApigMVrXGnYB3Iy2ZH0+vCg1KNW7fEMCZIkYUtrg/p5xA6CuUGrsuc7
R6WUUlz86gsP+3GCVpMjeG3eC7whjvYc5IIwYliQxO5CxMH7NQKrxihbAoGBAIPG
FgD2NDAIQFUpYYg8Sf/IKkkog13GTcw+3pVrBrVSrV4F3KsoLWY95lBURgjQ1hiw
91TQ7DsT+pCOtZcKMrty7VEJ/I5W5KW22oqL4k8RLdcNbJeMekrEWbIFGX7p2TG0
0lTvky6Na6BhCnEDl0UAQkTMRcCkkfFjLybVsMaZAoGAYzkMha94++UY4L1zFEfs
QbnX8beOgF/IcV7L5q6S/uZLksa0JrWe9L1K7btl7M61XGd4wam8znifkLCbwz/u
WJWsuMwyL7cGCYD5yVMVT8Xrh3q6IjIG5nELfQyKKnshxAKEpk6yAAzowCKu00FN
djFDNCvOYh0NjsaxeQT/Qo8=
-----END PRIVATE KEY-----
"""
TENCENT = "c0e29b513c80898df1f7b355eb18616e59b2d4d0135f66220025c5f3618fb928"
ALIBABA = "1d0a139f51859b8620a72cad4277ee787f703af1a7077f43c17a0a73e8b243f1"
HUAWEI = "a050c93819a1d7e5b6f791af1d7f5c433c093fb0d70a5e1dfea3b3b63ad157d6"
BAIDU = "79efbb94def179ae5c7a97b1459bc25ffa6311d0634d00ef53565898f34921e9"
ORACLE_POST = (
    "pIqCPQsPEQOmnH/FOLvYlKU9cgouxHCKcs+c2o1cDd1MAIBx3mA4cVoDfAA7415bJJpek4DDeAdWstlavldNPpYNfpezJTUeM/st"
    "H8zzIMIzhSQaoc5El++RhbNoI+HtnHgmWcbvdIVjcdDuknsnPubFFi9iHnCgDMXh90w+AH+DSEFopaCuMLnqi0f2hpBP0Ya1S+/2"
    "dKvPW5ooLWuI/E6wdvGsSiXZNj9fiCaDbhy4JOdHQTgOiDjweT6n1nxkkosjv5lvIcraXO0ngCF2/PBc9HfwX+Zcl8LgEUTmh4Gw"
    "Co1LsvAxZKuNGXC5LQVDHa/E/q/QkIq0v+u2lhdN4A=="
)
ORACLE_GET = (
    "Db4+YObNHCP4Zk/lu1unl4pq3mF1k52fHlQpDBjiSrVODgx1X3QFDgPRyG2o1zZsksRRmpmeogT13otqhaSDhBOQYA1O+fLL14qe"
    "UQ92rtiMX5SSzeZVbBFRf/pY04hPmSsivRdxZphnFCAiuSnzvLosZBuCZ510E87YxWnbaPvZDnC4X0OE3vaBTjp0eEwd5vaAA/mr"
    "hfwKVVbFQor6qaSIPFiFySQGVG9xMXFZsgNGfThWq+cym/IbU6/1DeSLubO8QhYcRgpdSzAGRZb3HY5m4zldkl+QyQfAP2qBpWjc"
    "R0o+bDs0BTNfAtCgHg7fPLmoxwjigDPpgfDNI32GmA=="
)
KEYS = "akexample:skexample"
ORACLE = f"tenancy=ocid1.tenancy.oc1..aaa\nuser=ocid1.user.oc1..bbb\nfingerprint=20:3b:97\n{RSA_KEY}"
ACCOUNT = {"client_email": "a@p.iam.gserviceaccount.com", "private_key": RSA_KEY, "project_id": "p"}


def request(method: str, url: str, content: bytes = b"", **headers: Any) -> SigningRequest:
    host = {"Host": url.partition("//")[2].partition("/")[0]}
    return SigningRequest(method=method, url=url, headers={**host, **headers}, content=content, at=AT)


JSON: dict[str, Any] = {"Content-Type": "application/json"}


def test_tencent_as_its_sdk() -> None:
    signer = TencentSigner("AKIDexample:secretexample")
    made = signer.headers(request("POST", "https://cvm.tencentcloudapi.com/", b'{"Limit":1}', **JSON))
    assert made["Authorization"].endswith(f"Signature={TENCENT}")
    assert "Credential=AKIDexample/2026-09-21/cvm/tc3_request" in made["Authorization"]


def test_alibaba_as_its_sdk() -> None:
    url = "https://ecs.cn-hangzhou.aliyuncs.com/?Tag.1.Value=a%20b%2Ac~&RegionId=cn-hangzhou&Tag.1.Key=teraflock"
    action = {"x-acs-action": "RunInstances", "x-acs-version": "2014-05-26"}
    made = AlibabaSigner(KEYS, lambda: "nonce").headers(request("POST", url, b"", **action))
    assert made["Authorization"].endswith(f"Signature={ALIBABA}")


def test_huawei_as_its_sdk() -> None:
    url = "https://ecs.cn-north-4.myhuaweicloud.com/v1/p1/cloudservers?tags=a%3Db&limit=1"
    made = HuaweiSigner(KEYS).headers(request("POST", url, b'{"a":1}', **JSON))
    assert made["Authorization"].endswith(f"Signature={HUAWEI}")


def test_baidu_as_its_sdk() -> None:
    url = "https://bcc.bj.baidubce.com/v2/instanceBySpec?clientToken=ins_1.1.0"
    made = BaiduSigner(KEYS).headers(request("POST", url, b"{}", **JSON))
    assert made["Authorization"].endswith(f"/host;x-bce-date/{BAIDU}")


def test_oracle_as_its_sdk() -> None:
    signer, base = OracleSigner(ORACLE), "https://iaas.us-ashburn-1.oraclecloud.com/20160918/instances"
    made = signer.headers(request("POST", base, b'{"a":1}', **JSON))
    assert f'signature="{ORACLE_POST}"' in made["Authorization"]
    assert 'keyId="ocid1.tenancy.oc1..aaa/ocid1.user.oc1..bbb/20:3b:97"' in made["Authorization"]
    read = signer.headers(request("GET", f"{base}?compartmentId=ocid1.tenancy.oc1..aaa&page=2"))
    assert f'signature="{ORACLE_GET}"' in read["Authorization"]


def test_google_s_jwt_is_signed_with_its_key() -> None:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    head, claims, signature = GoogleSigner(json.dumps(ACCOUNT)).assertion(AT).split(".")
    key = serialization.load_pem_private_key(RSA_KEY.encode(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    signed = base64.urlsafe_b64decode(f"{signature}==")
    key.public_key().verify(signed, f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())
    said = json.loads(base64.urlsafe_b64decode(f"{claims}=="))
    assert (said["iss"], said["aud"]) == (ACCOUNT["client_email"], "https://oauth2.googleapis.com/token")
    assert said["exp"] - said["iat"] == 3600


@pytest.mark.parametrize(
    "signer",
    [GoogleSigner(json.dumps(ACCOUNT)), AzureSigner("tenant:client:password"), IbmSigner("apikey")],
    ids=["google", "azure", "ibm"],
)
def test_a_token_is_fetched_once_and_again_before_it_ends(signer: Signer) -> None:
    asked = signer.preparation(AT)
    assert asked is not None
    assert (asked.service, asked.signed, asked.form) == ("token", False, True)
    reply = CloudReply(status=200, body={"access_token": "tok-123", "expires_in": 3600})
    signer.prepared(reply, AT)
    assert signer.preparation(AT + timedelta(minutes=50)) is None
    assert signer.preparation(AT + timedelta(minutes=59)) is not None
    assert signer.headers(request("GET", "https://h/"))["Authorization"] == "Bearer tok-123"
    assert "tok-123" not in signer.scrubbed("it said tok-123")
    signer.refused()
    assert signer.preparation(AT) is not None


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        (TencentSigner, "only-an-id"),
        (AzureSigner, "tenant:client"),
        (GoogleSigner, "{}"),
        (GoogleSigner, "not json"),
        (OracleSigner, "tenancy=a\nuser=b"),
    ],
)
def test_incomplete_credentials_are_refused_without_showing_them(kind: Any, secret: str) -> None:
    with pytest.raises(BadInput) as refused:
        kind(secret)
    assert secret not in refused.value.sentence
    assert refused.value.hint


@pytest.mark.parametrize(
    "signer", [TencentSigner(KEYS), OracleSigner(ORACLE), AzureSigner("tenant:client:password")]
)
def test_secrets_are_removed_from_texts(signer: Signer) -> None:
    text = f"sk skexample password {RSA_KEY}"
    shown = signer.scrubbed(text)
    hidden = {TencentSigner: "skexample", OracleSigner: RSA_KEY.splitlines()[3], AzureSigner: "password"}
    assert hidden[type(signer)] not in shown
    assert "example" not in repr(signer)

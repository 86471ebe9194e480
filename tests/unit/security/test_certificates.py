"""The name of the subject of a certificate, as Java writes it."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.security.certificates import BadCertificate, subject_name

CERTIFICATE = b64decode(
    """
MIIC0jCCAnmgAwIBAgIUFQ1jCJL51ssmgULAr9beiQQCIqIwCgYIKoZIzj0EAwIwgb4xCzAJBgNVBAYTAkRFMQ8w
DQYDVQQIDAZ0cmFpbCAxDjAMBgNVBAcMBSNoYXNoMRcwFQYDVQQKDA4gbGVhZDsgInEiIDx4PjEaMAgGA1UECwwB
YTAOBgNVBAMMB2IrYywgXGQxGDAWBgkqhkiG9w0BCQEWCWpvZUB4Lm9yZzESMBAGCgmSJomT8ixkAQEMAsO8MREw
DwYKCZImiZPyLGQBGRYBZDELMAkGA1UEBRMCNzcxCzAJBgNVBAwMAnRpMB4XDTI2MTExODA2MDAzMFoXDTI2MTIx
ODA2MDAzMFowgb4xCzAJBgNVBAYTAkRFMQ8wDQYDVQQIDAZ0cmFpbCAxDjAMBgNVBAcMBSNoYXNoMRcwFQYDVQQK
DA4gbGVhZDsgInEiIDx4PjEaMAgGA1UECwwBYTAOBgNVBAMMB2IrYywgXGQxGDAWBgkqhkiG9w0BCQEWCWpvZUB4
Lm9yZzESMBAGCgmSJomT8ixkAQEMAsO8MREwDwYKCZImiZPyLGQBGRYBZDELMAkGA1UEBRMCNzcxCzAJBgNVBAwM
AnRpMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEd9exvf5yC+qeeLs3PpJXYaUYJ8cGj2lT547T0446VKbKFy0R
tP8Q5ZuAjx93scHGFwM5HXjhMb5p4HdKZtOjCKNTMFEwHQYDVR0OBBYEFEJi7HHECsNmOJFWOwQHy/2GdyinMB8G
A1UdIwQYMBaAFEJi7HHECsNmOJFWOwQHy/2GdyinMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIg
VdRyzQdgS/YMCbrSpCW+1ItLrXbb8rUV/YnBjHH02CYCIEvNMkj2BtzAHntCyRJpJs0Qpq6acD28twjrmZNEAMrO
"""
)
JAVA = (
    "2.5.4.12=#0c027469,2.5.4.5=#13023737,DC=d,UID=\u00fc,"
    "1.2.840.113549.1.9.1=#16096a6f6540782e6f7267,OU=a+CN=b\\+c\\, \\\\d,"
    'O=\\ lead\\; \\"q\\" \\<x\\>,L=\\#hash,ST=trail\\ ,C=DE'
)
"""X500Principal.getName() of Java 17 for this certificate."""


def test_every_kind_of_attribute_is_written_as_java_writes_it() -> None:
    assert subject_name(CERTIFICATE) == JAVA


@given(st.binary(max_size=300))
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(BadCertificate):
        subject_name(content)


@given(st.integers(0, len(CERTIFICATE) - 1), st.integers(0, 255))
def test_a_damaged_certificate_is_refused_or_has_a_name(position: int, byte: int) -> None:
    damaged = CERTIFICATE[:position] + bytes([byte]) + CERTIFICATE[position + 1 :]
    try:
        assert isinstance(subject_name(damaged), str)
    except BadCertificate:
        assert damaged != CERTIFICATE

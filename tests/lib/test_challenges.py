"""Headers in which foreign servers ask for a proof."""

from aiplatform.lib.challenges import MAX_LENGTH, parse_challenge
from tests.cases import case_table


@case_table(
    ("header", "scheme", "params"),
    [
        (
            'Bearer realm="https://a.example/token",service="a"',
            "bearer",
            {"realm": "https://a.example/token", "service": "a"},
        ),
        ('Basic realm=""', "basic", {"realm": ""}),
        ("Bearer", "bearer", {}),
        ("", "", {}),
        ('Bearer realm="open', "bearer", {}),
        ("Bearer " + "a" * MAX_LENGTH + '="b"', "bearer", {}),
    ],
)
def test_challenge_is_parsed(header, scheme, params):
    assert parse_challenge(header) == (scheme, params)

"""Names of any bytes, as text that can be read, sent and turned back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiplatform.lib import file_names
from aiplatform.lib.errors import Invalid

NAMES = st.binary(min_size=1, max_size=40).filter(lambda name: b"/" not in name and b"\0" not in name and name != b"..")


@given(st.lists(NAMES.filter(lambda name: name != b"."), max_size=4))
def test_shown_path_leads_back_to_its_bytes(parts):
    assert file_names.parse(file_names.shown_path(tuple(parts))) == tuple(parts)


@given(NAMES)
def test_shown_name_is_text_that_turns_nothing(name):
    shown = file_names.shown(name)

    assert shown.encode().decode() == shown
    assert shown.strip() == shown
    assert not set(shown) & set("\n\r\t\x1b\u202e\u2066\ufeff")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("数据 集.csv".encode(), "数据 集.csv"),
        (b"a b", "a b"),
        (b" ", "\\x20"),
        (b"a\\b", "a\\\\b"),
        (b"\xff", "\\xff"),
        ("\u202egpj.exe".encode(), "\\xe2\\x80\\xaegpj.exe"),
        (b"\\xff", "\\\\xff"),
    ],
)
def test_shown_name_keeps_what_can_be_read(name, shown):
    assert file_names.shown(name) == shown


@pytest.mark.parametrize("name", ["..", ".", "", "  ", "a/b", "a\nb", "\x7f", "é" * 128])
def test_new_name_that_nobody_could_use_is_refused(name):
    with pytest.raises(Invalid):
        file_names.check_new(name.encode())


@pytest.mark.parametrize("name", [".bashrc", "a b", "数据", "a\\b", "é" * 127, "-rf"])
def test_new_name_that_can_be_seen_is_taken(name):
    assert file_names.check_new(name.encode()) == name.encode()

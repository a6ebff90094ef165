"""Files of a run directory, also as supervisors of before an upgrade write them."""

from workers.supervisor import records


def test_records_write_request_reaches_a_supervisor_from_before_an_upgrade(tmp_path):
    records.write(tmp_path / records.SUPERVISOR, {"pid": 1})

    records.write_request(tmp_path, "pause")

    assert (records.read_request(tmp_path), (tmp_path / "wish").read_text()) == ("pause", "freeze")


def test_records_read_understands_a_supervisor_from_before_an_upgrade(tmp_path):
    records.write(tmp_path / records.STATUS, {"state": "frozen"})
    records.write(tmp_path / records.EXIT, {"code": 75, "wish": "freeze"})

    assert records.read(tmp_path / records.STATUS)["state"] == "paused"
    assert records.read(tmp_path / records.EXIT)["requested"] == "pause"


def test_read_request_knows_the_pause_of_before_an_upgrade(tmp_path):
    (tmp_path / "wish").write_text("freeze")

    assert records.read_request(tmp_path) == "pause"  # so that continuing is a change, and is written

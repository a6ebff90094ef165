"""Home folders: made for one person and their jobs, reached without following anything."""

import os
import stat

import pytest

from aiplatform import env
from aiplatform.lib import trees
from aiplatform.lib.files import OutsideRoot
from datasets.files import homes
from tests.files.helpers import chain
from training.programs import snapshots


def test_home_is_made_for_one_person_and_passed_by_all(alice, bob):
    home = homes.home_of(alice)

    about = home.stat()
    assert stat.S_IMODE(about.st_mode) == 0o700
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o711
    assert about.st_uid == (env.JOB_UIDS + alice.pk if os.geteuid() == 0 else os.geteuid())
    assert home != homes.home_of(bob)


def test_home_of_an_odd_username_stays_among_homes(alice):
    alice.username = ".."

    assert homes.path_of(alice) == homes.path_of(alice).parent / f"={alice.pk}"


def test_home_belongs_to_its_person_again_after_the_platform_became_root(alice):
    home = homes.home_of(alice)
    (home / "a" / "b").mkdir(parents=True)
    (home / "a" / "b" / "c.txt").write_text("c")
    (home / "out").symlink_to("/etc/hostname")
    if os.geteuid() == 0:
        os.chown(home, 0, 0)
    before = os.stat("/etc/hostname").st_uid

    homes.home_of(alice)

    wanted = home.stat().st_uid
    assert {path.lstat().st_uid for path in home.rglob("*")} == {wanted}
    assert os.stat("/etc/hostname").st_uid == before


def test_home_that_is_a_link_is_no_home(alice, tmp_path):
    path = homes.path_of(alice)
    path.parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(NotADirectoryError):
        homes.home_of(alice)


def test_snapshot_from_home_follows_no_link(alice, bob):
    secret = homes.home_of(bob) / "secret.py"
    secret.write_text("secret")
    home = homes.home_of(alice)
    (home / "code").mkdir()
    (home / "code" / "train.py").write_text("print()")
    (home / "code" / "secret.py").symlink_to(secret)
    (home / "code" / "all").symlink_to(secret.parent)
    (home / "way").symlink_to(secret.parent)
    os.mkfifo(home / "code" / "pipe")

    taken = snapshots.from_home(owner=alice, folder="code")

    assert [path.name for path in taken.path.iterdir()] == ["train.py"]
    with pytest.raises(snapshots.BadCode):
        snapshots.from_home(owner=alice, folder="way")


def test_snapshot_from_home_refuses_what_is_too_deep(alice):
    chain(homes.home_of(alice), 100)

    with pytest.raises(snapshots.BadCode, match=r"Folders are nested more than 64 levels deep."):
        snapshots.from_home(owner=alice, folder="d")


def test_tree_of_200_folders_is_walked_given_and_removed(tmp_path):
    chain(tmp_path, 200)

    with trees.opened(tmp_path) as root:
        assert [(folder.depth, name) for folder, name, _info in trees.walk(root)] == [(200, b"leaf")]
        trees.change_owner(root, os.geteuid())
        assert trees.remove(root, b"d")
        assert list(trees.entries(root)) == []


def test_tree_removal_opens_what_its_owner_closed(tmp_path):
    (tmp_path / "closed" / "inner").mkdir(parents=True)
    (tmp_path / "closed" / "inner" / "file").write_text("x")
    (tmp_path / "closed" / "inner").chmod(0)
    (tmp_path / "closed").chmod(0)

    with trees.opened(tmp_path) as root:
        assert trees.remove(root, b"closed")

    assert list(tmp_path.iterdir()) == []


def test_tree_removal_leaves_what_links_point_at(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("x")
    (tmp_path / "doomed").mkdir()
    (tmp_path / "doomed" / "way").symlink_to(kept)

    with trees.opened(tmp_path) as root:
        assert trees.remove(root, b"doomed")

    assert (kept / "file").exists()


def test_tree_move_replaces_nothing_unasked(tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")

    with trees.opened(tmp_path) as root:
        with pytest.raises(FileExistsError):
            trees.move(root, b"a", root, b"b")
        trees.move(root, b"a", root, b"b", replace=True)

    assert [path.read_text() for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("name", [b"..", b".", b"", b"a/b", b"a\0"])
def test_tree_steps_are_single_names(tmp_path, name):
    with trees.opened(tmp_path) as root, pytest.raises(OutsideRoot):
        trees.open_file(root, name)

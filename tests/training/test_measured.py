"""What presets reached in trainings here, on their page."""

from __future__ import annotations

from tests.factories import training as factory


def test_presets_page_shows_what_a_preset_reached_on_each_dataset_one_may_see(
    as_alice, as_bob, alice, machine, cells, django_assert_max_num_queries
):
    for value in (0.71, 0.934, 0.82):
        training = factory.training(alice, data=cells, state="succeeded")
        training.metrics = {"val/ap50": value, "val/loss": 0.1}
        training.save()

    segmenter = factory.training(alice, data=cells, state="succeeded", preset="instances")
    segmenter.metrics = {"val/ap50": 0.9, "val/mask_ap50": 0.6}  # judged by its masks
    segmenter.save()

    with django_assert_max_num_queries(20):
        mine = as_alice.get("/training/presets/").content.decode()
    theirs = as_bob.get("/training/presets/").content.decode()

    assert "AP50 on validation 0.934" in mine
    assert "Mask AP50 on validation 0.600" in mine
    assert ">AP50 on validation 0.900" not in mine
    assert "0.710" not in mine
    assert "AP50 on validation" not in theirs

"""Experiments in a bucket."""

from __future__ import annotations

import pytest

from support.evaluations import concluded, experiment
from support.s3 import Bucket
from trunchray.errors import UsageError
from trunchray.frontends.evaluation.experiment_file import read_experiment, write_experiment


def test_an_experiment_in_a_bucket(s3: Bucket):
    """Compared with when it is there, replaced as a whole; missing, it means no drops."""
    place = f"{s3.uri}/evals/e.json"
    assert read_experiment(place, name="e") is None
    for found in (experiment({"a": "p"}), experiment({"a": "f", "ü": "p"})):
        write_experiment(place, found)
        assert read_experiment(place, name="e") == found
    dropped = concluded({"a": "p", "ü": "f"}, compare=read_experiment(place, name="e"))
    assert dropped.scorers["S"].drops == 1


def test_a_bucket_that_is_not_there_is_no_missing_file(s3: Bucket):
    """Whoever mistypes it must not lose all drops."""
    with pytest.raises(UsageError, match=r"cannot be read: .*or leave `compare` out"):
        read_experiment("s3://no-such-bucket-anywhere/e.json", name="e")

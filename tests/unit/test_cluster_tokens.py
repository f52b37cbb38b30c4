"""What is said when a cluster that was named as <host>:<port> asks who we are."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunchray.adapters.ray_jobs import how_to_log_in

TOKEN = {"RAY_AUTH_TOKEN": "t" * 32}
MODE = {"RAY_AUTH_MODE": "token"}


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, "wants a token; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, to the cluster's"),
        (TOKEN, "wants a token, and Ray sends the one in RAY_AUTH_TOKEN only if RAY_AUTH_MODE is token: set RAY_AUTH_"),
        (TOKEN | {"RAY_AUTH_MODE": "disabled"}, "sends the one in RAY_AUTH_TOKEN only if RAY_AUTH_MODE is token"),
        ({"RAY_AUTH_TOKEN_PATH": "t"}, "sends the one in RAY_AUTH_TOKEN_PATH only if RAY_AUTH_MODE is token"),
        (MODE, "does not accept a driver without a token; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"),
        (MODE | TOKEN, "does not accept the token in RAY_AUTH_TOKEN; set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"),
    ],
)
def test_what_to_set(environ: dict[str, str], said: str, tmp_path: Path):
    """It is told apart whether no token is known, none is sent or a wrong one is, and what to set is named."""
    message = how_to_log_in("10.0.0.5:6379", environ, tmp_path)
    assert message.startswith("the cluster at 10.0.0.5:6379 ")
    assert said in message
    assert "t" * 32 not in message


def test_a_token_that_ray_has_made_here(tmp_path: Path):
    """The file in which Ray keeps a token is looked at, too: a Ray that was started here has left one."""
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("t" * 32)
    said = how_to_log_in("10.0.0.5:6379", {}, tmp_path)
    assert "Ray sends the one in ~/.ray/auth_token only if RAY_AUTH_MODE is token: set RAY_AUTH_MODE=token" in said
    assert "does not accept the token in ~/.ray/auth_token" in how_to_log_in("10.0.0.5:6379", MODE, tmp_path)

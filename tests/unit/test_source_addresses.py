"""Git addresses: what they must say, and that nothing secret of them is shown."""

import pytest

from trunchray.errors import UsageError
from trunchray.frontends.benchmark.checkout import GitAddress, git_address, is_git_address
from trunchray.frontends.benchmark.source import without_credentials

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_the_parts_of_an_address():
    """URL, commit and path; without a path the root of the repository is meant."""
    text = f"git+https://example.org/team/bench.git@{COMMIT}"
    assert git_address(f"{text}#evals/a") == GitAddress("https://example.org/team/bench.git", COMMIT, "evals/a")
    assert git_address(text).path == ""
    assert git_address(text).name == "bench"
    assert git_address(f"git+file:///srv/my%20bench@{COMMIT}").name == "repository"
    assert git_address(f"git+file://localhost/srv/bench@{COMMIT}").name == "bench"
    assert is_git_address(text)
    assert not is_git_address("s3://bucket/release")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("git+https://example.org/x.git", "it names no commit"),
        ("git+https://example.org/x.git@main", "'main' is a branch, a tag or part of a commit"),
        (f"git+https://example.org/x.git@{COMMIT[:12]}#a", "part of a commit, and could be other code tomorrow"),
        (f"git+https://example.org/x.git@{COMMIT.upper()}", f"has a commit in upper case; write {COMMIT}, as git does"),
        (f"git+file://srv/x.git@{COMMIT}", "names the host 'srv', which git would ignore; write git\\+file:///folder"),
        (f"git+http://example.org/x.git@{COMMIT}", "asks for 'http', and only https and file are allowed"),
        (f"git+ssh://git@example.org/x.git@{COMMIT}", "asks for 'ssh'"),
        (f"git+ext::sh -c whoami@{COMMIT}", "is not the address of a benchmark in git"),
        (f"git+ext://x/y@{COMMIT}", "asks for 'ext'"),
        (f"git+--upload-pack=x@{COMMIT}", "is not the address"),
        (f"git+https://example.org@{COMMIT}", "is not the address"),
        (f"git+https://example.org/x.git@{COMMIT}#../etc", "must be relative to the repository and stay inside it"),
        (f"git+https://[x/x.git@{COMMIT}", "is not the address"),
        (f"git+https://example.org/x.git@{COMMIT}#/etc", "must be relative to the repository and stay inside it"),
    ],
)
def test_refused_addresses(text, message):
    """Every address that could mean other code tomorrow, or another transport, says what to write instead."""
    with pytest.raises(UsageError, match=message):
        git_address(text)


@pytest.mark.parametrize("rest", ["x.git", "x.git@main", f"x.git@{COMMIT}#../up"])
def test_credentials_are_never_shown(rest):
    """A token in the URL is in no message."""
    with pytest.raises(UsageError) as refused:
        git_address(f"git+https://user:t0ken@example.org/{rest}")
    assert "t0ken" not in str(refused.value)
    assert git_address(f"git+https://user:t0ken@example.org/x@{COMMIT}").shown == "https://example.org/x"
    assert without_credentials("https://user:t0ken@example.org/x") == "https://example.org/x"


@pytest.mark.parametrize("remote", ["https://[x", "https://[::1/x.git"])
def test_a_remote_that_is_no_address_is_left_out(remote):
    """What stands in a checkout's configuration need not make sense."""
    assert without_credentials(remote) is None

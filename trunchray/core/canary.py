"""Whether a skill was loaded: its body asks for a word that stands nowhere else, and the transcript has it."""

from __future__ import annotations


class Canary:
    """Looks for one word of ASCII in what comes piece by piece, however it is cut."""

    def __init__(self, word: str) -> None:
        self.word = word
        self.found = False
        self._printed = b""
        self._said = ""

    def see(self, printed: bytes) -> None:
        """The next bytes of the transcript."""
        seen = self._printed + printed
        self.found = self.found or self.word.encode() in seen
        self._printed = seen[-len(self.word) :]

    def hear(self, said: str) -> None:
        """The next piece of what the model says, taken from the events that carry it."""
        heard = self._said + said
        self.found = self.found or self.word in heard
        self._said = heard[-len(self.word) :]

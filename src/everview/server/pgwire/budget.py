"""What all clients together may have sent that was not taken up yet: long messages of many must not fill the memory."""

from __future__ import annotations

import threading


class Budget:
    """So many bytes, for all connections."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def bytes_held(self) -> int:
        return self._bytes

    def account(self) -> Account:
        """One connection's part."""
        return Account(self)

    def _change(self, account: Account, count: int) -> bool:
        with self._lock:
            if count > 0 and (account.closed or self._bytes + count > self._bytes_max):
                return False
            count = max(count, -account.held)
            account.held += count
            self._bytes += count
            return True


class Account:
    """What one connection has of the budget. Any thread may use it."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0
        self.closed = False

    def take(self, count: int) -> bool:
        """So many bytes came; False if there is no room for them."""
        return self._budget._change(self, count)

    def give_back(self, count: int) -> None:
        """So many bytes were taken up."""
        self._budget._change(self, -count)

    def close(self) -> None:
        """Close the account: the connection is over, and bytes taken from now on would never be given back."""
        self.closed = True
        self.give_back(self.held)

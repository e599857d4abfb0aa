"""A file system on which the process dies at a chosen operation, and one that refuses to take more."""

import errno
import os

from node.tcp.log_files import FileSystem


class Crash(BaseException):
    """The process is dead: nothing after this happens."""


class CrashingFiles(FileSystem):
    """Carries out `last` operations that change anything; dies in the next, after `part` of its bytes."""

    def __init__(self, last: int, part: float = 0.0) -> None:
        self.left = last
        self.part = part

    def _step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Crash

    def write(self, descriptor, data, at):
        try:
            self._step()
        except Crash:
            super().write(descriptor, data[: int(self.part * len(data))], at)
            raise
        super().write(descriptor, data, at)


def _after_a_step(name):
    def operation(self, *given, **options):
        self._step()
        return getattr(FileSystem, name)(self, *given, **options)

    return operation


for each in ("open_write", "cut", "sync", "sync_folder", "rename", "unlink"):
    setattr(CrashingFiles, each, _after_a_step(each))


class FailingFiles(FileSystem):
    """A file system that fails at every write (after a part of it) or sync while `error` is set."""

    def __init__(self, error: int | None = None, *, at_sync: bool = False) -> None:
        self.error = error
        self.at_sync = at_sync

    def _fail(self) -> None:
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))

    def write(self, descriptor, data, at):
        if self.error is not None and not self.at_sync:
            super().write(descriptor, data[: len(data) // 2], at)
            self._fail()
        super().write(descriptor, data, at)

    def sync(self, descriptor):
        if self.at_sync:
            self._fail()
        super().sync(descriptor)


ENOSPC = errno.ENOSPC
EIO = errno.EIO

"""The methods of a data source that prove what an epoch handed out."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.orders.certificate import Certificate, EpochReport, RecordName


class _Source(Protocol):
    @property
    def _named(self) -> str: ...

    @property
    def identity(self) -> str: ...

    def digests(self) -> npt.NDArray[np.uint8]: ...

    def record_name(self, position: int) -> RecordName: ...


class MakesProofs:
    """A source whose epochs can be proved."""

    def certificate(self: _Source) -> Certificate:
        """An empty certificate of an epoch of this source: see :meth:`report`.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train", raw=True)
            >>> certificate = source.certificate()
            >>> certificate.add_payloads(source)
            >>> len(certificate)
            200
        """
        return Certificate(self.identity)

    def report(self: _Source, certificate: Certificate) -> EpochReport:
        """Whether an epoch handed out every record of this source exactly once.

        Args:
            certificate: with the digests of all that was handed out, on all hosts.

        Raises:
            UsageError: it is about another source.
            DamagedRecordError: a shard without an index has a damaged record.
            ManifestError: an index is damaged.
            StorageError: a shard or index cannot be read.

        Example:
            >>> source = reg["mnist@1.0.0"].data_source("train", with_digest=True)
            >>> certificate = source.certificate()
            >>> for batch in source.batches(64):
            ...     certificate.add(batch["record/digest"])
            >>> print(source.report(certificate))
            all 200 records of mnist@1.0.0, each once
        """
        return certificate._report(self._named, self.identity, self.digests(), self.record_name)

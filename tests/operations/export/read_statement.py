"""Validates an in-toto statement, and the provenance in it, with in-toto's own library.

Run by an interpreter that has `in-toto-attestation`, which need not have tfrecreg.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from google.protobuf.json_format import ParseDict
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as Proto

document = json.loads(Path(sys.argv[1]).read_text("ascii"))
document["type"] = document.pop("_type")  # its name in the protocol buffer
made = Statement.copy_from_pb(ParseDict(document, Proto()))
made.validate()
predicate = ParseDict(document["predicate"], Provenance())
print(len(made.pb.subject), len(predicate.run_details.byproducts), predicate.run_details.builder.id)

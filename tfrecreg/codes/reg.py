"""``REG``: releases, their numbers and their history."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity

__all__ = [
    "REG001",
    "REG002",
    "REG003",
    "REG004",
    "REG005",
    "REG006",
    "REG007",
    "REG008",
    "REG009",
    "REG010",
]

_NEXT = "release it under a number that no branch has: `tfrecreg release NAME --bump auto`"

REG001 = Code(
    "REG001",
    "understated-number",
    Severity.ERROR,
    "The number of a release says less than what changed",
    "take the smallest legal number: `tfrecreg release NAME --bump auto`",
    """\
Whoever asks for `mnist@1.*` relies on the number: PATCH means the same examples in the same
splits, MINOR that every example is still there, unchanged in the features that it had. A number
that says less than what changed since the parent breaks that promise, and `release` refuses it.

`tfrecreg diff mnist@1.0.0 mnist` shows what changed, example by example, and which number it asks
for. Where what changed cannot be told, because bytes or indexes of the parent are not on this
machine, the number has to be MAJOR; with them here it may become less.

`check` finds it in a release that exists where the change that its manifest records is more than
its number says: such a release was not made by this tool.
""",
)

REG002 = Code(
    "REG002",
    "rewritten-release",
    Severity.ERROR,
    "A file of a release is not the one that was released",
    "restore it from git: `git log -- FILE` names commits, `git checkout COMMIT -- FILE` does it",
    """\
A release never changes. Its manifest has a digest of itself, one of its schema, and the digest of
the build that it was made from, which follows from all else that it says: who rewrites a shard's
digest in it has to rewrite these, too.

It is also found where a release that git has seen is gone. What relies on a release may have been
trained on it: a mistake is withdrawn with `tfrecreg tag REF --yank REASON` and corrected by the
next release, never by changing or removing it.
""",
)

REG003 = Code(
    "REG003",
    "other-parent",
    Severity.ERROR,
    "The parent of a release is gone, or is not the release that it was made after",
    "restore the parent from git: `git log -- registry/NAME/VERSION` shows who changed it",
    """\
Each release names the one before it by number and by the digest of its manifest, so that the
releases of a dataset are a chain. A manifest that was rewritten with all its own digests still
breaks the link of the release that came after it.

Of the two, the parent is the one to look at first. Its successor can only be wrong where its own
digests do not hold, which is REG002.
""",
)

REG004 = Code(
    "REG004",
    "second-commit",
    Severity.ERROR,
    "A file of a release is not as the commit that added it has it",
    "restore it: `git checkout COMMIT -- FILE`, with the commit that added it",
    """\
The files of a release come into git with one commit, and no later one has to do with them. Where a
file differs from what its first commit has, somebody changed it afterwards, in a commit or not yet,
and all digests in it may have been made to fit.

It is looked for where the registry lies in a git work tree. A shallow clone does not know the first
commit and says so: fetch the whole history in CI, for instance with `fetch-depth: 0`.
""",
)

REG005 = Code(
    "REG005",
    "forked-releases",
    Severity.ERROR,
    "A release was made after another one than that which comes before it by number",
    "make one of them again after the other, under the next number, and withdraw the wrong one",
    """\
Two branches released after the same parent: 1.1.0 on one of them and 1.2.0 on the other. Merged,
1.2.0 comes after 1.1.0 by its number, and was never held against it: what 1.1.0 added is not in it,
although MINOR says that every example is still there.

It is found where the releases in between have other content than the parent, and the same MAJOR
number. A correction of an old line (1.0.1 after 2.0.0) forks nothing.

`tfrecreg check --registry --base origin/main` finds it before the merge.
""",
)

REG006 = Code(
    "REG006",
    "duplicate-number",
    Severity.ERROR,
    "Another branch has another release under the same number",
    _NEXT,
    """\
Two branches each made a release of the same number, with other content. Git would stop at the merge
with a conflict in the manifest, in which neither side may be taken in part. One of the two was used
under its number already, perhaps: the other one has to be made again under the next.

It is found by `tfrecreg check --registry --base REV`, `REV` being the branch to merge into.
""",
)

REG007 = Code(
    "REG007",
    "withdrawn-release",
    Severity.WARNING,
    "The release was withdrawn",
    "use a release that was not withdrawn: `tfrecreg log NAME` shows which",
    """\
Somebody withdrew it with `tfrecreg tag REF --yank REASON`, and the reason is in the message. Its
number, its manifest and its bytes stay, so that what was made with it can still be reproduced by
naming it in full; `mnist@latest` and `mnist@1.*` pass it over.
""",
)

REG008 = Code(
    "REG008",
    "unreadable-withdrawals",
    Severity.ERROR,
    "The file that says why a release was withdrawn cannot be read",
    "put it right: each line is one JSON object; a merge may have left its marks in it",
    """\
Beside the folder of a release that was withdrawn lies `VERSION.yanks.jsonl`, one line for each
withdrawal, appended and never changed. If it cannot be read, nobody knows whether `latest` may be
that release, so whatever asks for `latest` stops, too.
""",
)

REG009 = Code(
    "REG009",
    "expired-waiver",
    Severity.ERROR,
    "A waiver has expired, and what it covered is still there",
    "mend what it covered and take the waiver out, or give it a new day in `tfrecreg.toml`",
    """\
A waiver in `tfrecreg.toml` accepts a finding until a day, and has an owner who answers for it. The
finding is still there after that day, so somebody has to look at it again: the gate fails, whatever
the severity of the finding, until the waiver is renewed or the finding is gone.

It is the gate that finds this, not a validator, so neither `severity` nor another waiver changes
it; only `fail_on = "never"` lets it pass. The finding that was covered is listed beside it. An
expired waiver that covers nothing any more fails nothing.

A verdict that depends on the day is nothing for a cache. A pipeline that ran yesterday has nothing
to do today, so CI runs `tfrecreg pipeline --check` or plainly `tfrecreg check`: see docs/ci.md.
""",
)

REG010 = Code(
    "REG010",
    "unusable-schema",
    Severity.ERROR,
    "The schema that a dataset is held against is missing or does not parse",
    "restore it: `git checkout -- schemas/NAME.pbtxt`; or correct it and commit",
    """\
The schema of a dataset is a file in git: `schemas/NAME.pbtxt`, or the one that
`datasets/NAME.toml` names. Without it a check cannot judge the records, and the next build would
take the source's own schema, which may allow more.

`check --registry` finds it for every configured dataset that was built or released, or whose
configuration names a schema. `check` of a build says that the check is incomplete. `gate` and
`release` refuse the build. `build` refuses to put another schema there without `--default-schema`.
""",
)

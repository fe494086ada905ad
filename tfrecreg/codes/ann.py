"""``ANN``: labels and annotations of objects."""

from __future__ import annotations

from tfrecreg.findings import Code, Severity

__all__ = ["ANN001", "ANN002", "ANN003", "ANN004", "ANN005", "ANN006", "ANN007"]

ANN001 = Code(
    "ANN001",
    "lists-differ",
    Severity.ERROR,
    "Lists that belong to the same objects have different lengths",
    "write every list with one value an object, also where a value is not known",
    """\
A record keeps its objects as parallel lists: the first value of `image/object/bbox/xmin` belongs to
the first of `image/object/class/label`, and so on. Where one list is shorter, values belong to
other objects from there on, and nobody can tell which; batching fails at best.

Looked at are the four sides of boxes, labels and their names, `is_crowd`, `area`, `difficult`,
`truncated`, `view`, `weight`, `group_of` and the number of keypoints, which have one value an
object, and the coordinates and visibilities of keypoints, which have as many for every object. A
list that may be left out may be empty as well.
""",
)

ANN002 = Code(
    "ANN002",
    "box-outside",
    Severity.ERROR,
    "A box leaves its picture, or is not finite",
    "write parts of width and height, 0 to 1; clip what sticks out by rounding",
    """\
Sides of boxes are parts of the picture's sides, from 0 to 1. Numbers above 1 are mostly pixels that
were not divided by the picture's width and height, or divided by those of another picture: one that
was resized, or turned by its EXIF orientation. NaN and infinity turn a loss into NaN.

A millionth beyond the border is taken for the rounding of a float32. What a schema finds of
the same sides in the same records (SCH006, SCH007) is not told as well.
""",
)

ANN003 = Code(
    "ANN003",
    "box-empty",
    Severity.ERROR,
    "A box has no area: it is empty or turned inside out",
    "drop the object, or write the smaller side first: `xmin` < `xmax` and `ymin` < `ymax`",
    """\
Boxes without area divide by zero where their overlap is measured, and a target of width zero has a
logarithm that is not finite. Sides in the wrong order come from another order of the four numbers
(x, y, width, height; or y before x), or from an axis that was flipped without its sides.
""",
)

ANN004 = Code(
    "ANN004",
    "label-unknown",
    Severity.ERROR,
    "A label is a number that the label map does not have",
    "add the class to the label map, or mend the label; count from 0 or from 1, not both",
    """\
The label map is that of the manifest, or the file that the option `label_map` of
`limits.annotations` names. A number outside it indexes past the end of a model's output, or falls
on a class that does not exist. Often the numbers count from 1 in one place and from 0 in another,
or are those of another version of the classes.

Numbers without a name in the map (COCO has such gaps) are not in it.
""",
)

ANN005 = Code(
    "ANN005",
    "class-missing",
    Severity.WARNING,
    "A split has no example of some classes",
    "split anew with shares for each class, or take the classes out of the label map",
    """\
A class that `train` lacks cannot be learnt, and one that `test` lacks is in no score. Compared are
all classes that any split has. Classes of the label map that no split has are told once. The count
is that of the classes; the first of them are named.

A split without any label, as published test sets are, is left out.
""",
)

ANN006 = Code(
    "ANN006",
    "class-imbalance",
    Severity.WARNING,
    "Some classes are much rarer in a split than others",
    "collect more of the rare ones, or weigh them: `tf.data.Dataset.sample_from_datasets`",
    """\
How many times as often the commonest class is there as the rarest one of the same split, objects
counted where labels are those of objects. What is too much only its owner knows, so this is judged
where the option `imbalance` of `limits.annotations` says it: `imbalance = 100`.
""",
)

ANN007 = Code(
    "ANN007",
    "label-text-differs",
    Severity.ERROR,
    "The name of a class and its number do not belong together",
    "find out which is right: a label map that changed in between, or lists in another order",
    """\
Records have the class as a number and as a name, and they disagree: with the label map, where there
is one, or else with other records, so that one number has two names or one name two numbers. Then
training by the number and looking at the name are about different classes. The map of another
version, or two datasets that were merged and number their classes differently, are usual causes.

The names of `…/class/label` are in `…/class/text`, those of `species` in `species/text`. Of a
feature that is just called `label`, the names are where the option `text` of `limits.annotations`
says; a feature `text` beside it may be anything.
""",
)

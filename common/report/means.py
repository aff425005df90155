"""The section of the report on the means of its columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from common.analysis.means import Mean
from common.report.charts import forest
from common.report.page import Section, figure, joined, paragraph, readable, table


def means_section(means: Sequence[Mean]) -> list[Section]:
    """Show the means as a picture and a table, if there are any."""
    if not means:
        return []
    words = (
        "The means are those of the released counts of single columns. The 95 % interval is for "
        "the mean of the population: it allows for the noise, for the sampling of the real rows, "
        "and for where numbers are in their bins: by what was measured of it, else by half a bin. "
        "`parley estimate --mean` gives the same; for means by group, and for other statistics, "
        "use it, too."
    )
    picture = forest("Means with their intervals", [(mean.name, *mean.relative) for mean in means])
    caption = "Each line is the range of a column. The mark is the mean, inside its interval."
    lines = [
        [mean.name, readable(mean.mean), f"{readable(mean.low)} .. {readable(mean.high)}"]
        for mean in means
    ]
    listed = table(["column", "mean", "95 % interval"], lines)
    return [Section("Means", joined([paragraph(words), figure(picture, caption=caption), listed]))]

"""All kinds of charts: a block goes in, its picture and its rows come out."""

from whatif.report.blocks import (
    Lines,
    Ranges,
    Scatter,
    StackedBars,
    Timeline,
    Waterfall,
)
from whatif.report.charts import lines, ranges, scatter, stacked_bars, timeline, waterfall
from whatif.report.charts.frame import Drawing

Chart = StackedBars | Lines | Ranges | Waterfall | Scatter | Timeline


def draw(chart: Chart) -> Drawing:
    """The picture of a chart."""
    match chart:
        case StackedBars():
            return stacked_bars.draw(chart)
        case Lines():
            return lines.draw(chart)
        case Ranges():
            return ranges.draw(chart)
        case Waterfall():
            return waterfall.draw(chart)
        case Scatter():
            return scatter.draw(chart)
        case Timeline():
            return timeline.draw(chart)

"""A report as one HTML page (`html.py`) and as Markdown for pull requests (`markdown.py`)."""

"""From a study to what people and programs read: the JSON answer and the text answer.

`answer.py` is the contract (`schema/answer.schema.json` says the same), `findings.py` gathers what
was found, `view.py` fills the contract from it, `text.py` writes one screen.
"""

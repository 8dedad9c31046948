"""Questions to a recorded run: cost models, transforms of the graph, scenarios, answers.

Read `README.md` in this folder for the tour.
"""

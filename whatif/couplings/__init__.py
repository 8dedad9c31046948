"""Durations that follow from what runs at the same time: links that are shared, cores, devices.

Each module builds one coupling from the unchanged run; `registry.py` lists them.
"""

"""One file a section: `section(material) -> Section`; `postmortem.build` has their order."""
